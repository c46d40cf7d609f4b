#include <lade/bucket.hpp>

#include <functional>

namespace lade::detail {

void require_buckets(const bucket_options& options, const std::string& stage) {
  auto refuse = [&](std::string_view why) { throw error(errc::invalid_argument, stage, why); };
  constexpr auto unlimited = ~std::size_t{0};
  if (options.size == 0) refuse("a batch size of 0");
  if (options.padded == 0) refuse("a budget of 0 padded elements");
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
