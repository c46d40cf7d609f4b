#include <lade/bucket.hpp>
#include <lade/support/require.hpp>

#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lade::detail {

static constexpr auto no_limit = ~std::size_t{0};

void require_buckets(const bucket_options& options, const std::string& stage) {
  auto refuse = [&](std::string_view why) { throw error(errc::invalid_argument, stage, why); };
  if (options.size != no_limit)
    support::require_count(stage, "size", options.size,
                           {.least = 1, .most = support::most_in_batch});
  if (options.padded != no_limit)
    support::require_count(stage, "padded", options.padded,
                           {.least = 1, .most = support::most_elements});
  require_budget(stage, options.error_budget, options.on_error);
  if (options.size == no_limit && options.padded == no_limit)
    refuse("neither a batch size nor a budget of padded elements");
  auto& ends = options.boundaries;
  if (std::ranges::adjacent_find(ends, std::greater_equal()) != ends.end())
    refuse("boundaries that do not ascend");
}

// A bucket is yielded when it has `size` items. `padded` does not limit items of length 0.
static std::optional<std::uint64_t> held_in_buckets(const bucket_options& options) {
  if (options.size == no_limit) return std::nullopt;
  return options.size + options.boundaries.size() * (options.size - 1);
}

node_facts bucket_facts(node_ptr in, const bucket_options& options, const std::string& stage) {
  auto facts = node_facts::behind(std::move(in), "bucket", stage)
                   .yielding(cardinality::group)
                   .reordering("bucket")
                   .holding(held_in_buckets(options));
  if (!options.boundaries.empty())
    facts =
        std::move(facts).with("boundaries", fmt::format("{}", fmt::join(options.boundaries, " ")));
  if (options.size != no_limit) facts = std::move(facts).with("size", options.size);
  if (options.padded != no_limit) facts = std::move(facts).with("padded", options.padded);
  return std::move(facts)
      .with_flag("drop_last", options.drop_last)
      .with({.finally = options.on_error, .budget = options.error_budget});
}

bool exceeds(const bucket_options& options, std::size_t items, std::size_t longest) noexcept {
  return items > options.size || longest > options.padded / items;
}

}  // namespace lade::detail
