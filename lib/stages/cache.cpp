#include <lade/cache.hpp>
#include <lade/error.hpp>

#include <algorithm>

namespace lade {

void cache_stage::require_no_bytes() const {
  if (options_.bytes != cache_options().bytes)
    throw error(errc::invalid_argument, "cache",
                "a limit in bytes of items that do not tell theirs: give them a member bytes()");
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
