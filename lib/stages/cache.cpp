#include <lade/cache.hpp>
#include <lade/error.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace lade {

static std::optional<std::uint64_t> limit_of(std::uint64_t most) {
  return most == ~std::uint64_t{0} ? std::nullopt : std::optional(most);
}

detail::node_facts cache_stage::facts(detail::node_ptr in) const {
  const auto items = limit_of(options_.items);
  const auto bytes = limit_of(options_.bytes);
  auto facts = detail::node_facts::behind(std::move(in), "cache")
                   .caching()
                   .holding(items, bytes)
                   .refusing_state("cache yields the kept items before the others");
  if (items) facts = std::move(facts).with("items", *items);
  if (bytes) facts = std::move(facts).with("bytes", *bytes);
  return facts;
}

namespace detail {

bool meet(const lineage& a, const lineage& b) noexcept {
  auto overlaps = [&](const lineage::range& one) {
    return std::ranges::any_of(b.ranges(), [&](const lineage::range& other) {
      return one.first <= other.last && other.first <= one.last;
    });
  };
  return std::ranges::any_of(a.ranges(), overlaps);
}

}  // namespace detail
}  // namespace lade
