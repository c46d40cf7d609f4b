#include <lade/lineage.hpp>

#include <algorithm>

namespace lade {

lineage::lineage(const lineage& other) : one_(other.one_), latest_(other.latest_) {
  if (other.many_) many_ = std::make_unique<std::vector<range>>(*other.many_);
}

bool lineage::contains(std::uint64_t position) const noexcept {
  auto all = ranges();
  auto found = std::ranges::lower_bound(all, position, {}, &range::last);
  return found != all.end() && found->first <= position;
}

std::uint64_t lineage::size() const noexcept {
  std::uint64_t count = 0;
  for (auto& r : ranges()) count += r.last - r.first + 1;
  return count;
}

void lineage::merge_many(const lineage& other) {
  for (auto& r : other.ranges()) add(r);
}

void lineage::insert(range added) {
  if (!many_) many_ = std::make_unique<std::vector<range>>(1, one_);
  auto& all = *many_;
  // [from, to) are the ranges that overlap the added one or touch it.
  auto from =
      std::ranges::lower_bound(all, added.first, {}, [](const range& r) { return r.last + 1; });
  auto to = from;
  for (; to != all.end() && to->first <= added.last + 1; ++to) {
    added.first = std::min(added.first, to->first);
    added.last = std::max(added.last, to->last);
  }
  if (from == to) {
    all.insert(from, added);
    return;
  }
  *from = added;
  all.erase(from + 1, to);
  if (all.size() > 1) return;
  one_ = all.front();
  many_.reset();
}

bool operator==(const lineage& a, const lineage& b) noexcept {
  return std::ranges::equal(a.ranges(), b.ranges());
}

std::string to_string(const lineage& positions) {
  std::string text;
  for (auto& r : positions.ranges()) {
    if (!text.empty()) text += ", ";
    text += std::to_string(r.first);
    if (r.last != r.first) text.append("-").append(std::to_string(r.last));
  }
  return text;
}

}  // namespace lade
