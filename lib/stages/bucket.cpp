#include <lade/bucket.hpp>
#include <lade/detail/common/require.hpp>

#include <functional>

namespace lade::detail {

void require_buckets(const bucket_options& options, const std::string& stage) {
  auto refuse = [&](std::string_view why) { throw error(errc::invalid_argument, stage, why); };
  constexpr auto unlimited = ~std::size_t{0};
  if (options.size != unlimited)
    require_count(stage, "size", options.size, {.least = 1, .most = most_in_batch});
  if (options.padded != unlimited)
    require_count(stage, "padded", options.padded, {.least = 1, .most = most_elements});
  require_budget(stage, options.error_budget);
  if (options.size == unlimited && options.padded == unlimited)
    refuse("neither a batch size nor a budget of padded elements");
  auto& ends = options.boundaries;
  if (std::ranges::adjacent_find(ends, std::greater_equal()) != ends.end())
    refuse("boundaries that do not ascend");
}

bool exceeds(const bucket_options& options, std::size_t items, std::size_t longest) noexcept {
  return items > options.size || longest > options.padded / items;
}

}  // namespace lade::detail
