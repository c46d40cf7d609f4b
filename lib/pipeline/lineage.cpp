#include <lade/lineage.hpp>
#include <lade/random.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace lade {

lineage::lineage(const lineage& other)
    : one_(other.one_), latest_(other.latest_), part_(other.part_), digests_(other.digests_) {
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

void lineage::merge_ranges(const lineage& other) {
  for (auto& r : other.ranges()) add(r);
}

void lineage::insert(range added) {
  if (!many_) many_ = std::make_unique<std::vector<range>>(1, one_);
  auto& all = *many_;
  // [from, to): the ranges that overlap the added one or are adjacent to it.
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
    if (r.last != r.first) text += fmt::format("-{}", r.last);
  }
  return text;
}

namespace detail {

// The number of a part of a part combines both numbers. If one is too large, the result is a random
// number with the bit `unordered`.
std::uint64_t part_lineage::number(std::uint64_t outer, std::uint64_t n) noexcept {
  if (outer == 0) return n;
  if (outer < inner / 2 && n < inner) return outer * inner + n;
  return random(outer, n)() | unordered;
}

part_lineage::part_lineage(const lineage& whole, std::size_t size)
    : part_(whole), outer_(whole.part()) {
  if (outer_ == 0) part_.digests_ = lineage::digests(whole.members(), members(whole, size));
}

std::uint32_t part_lineage::members(const lineage& group, std::size_t size) noexcept {
  if (size == 0) return 0;
  const auto digest = static_cast<std::uint32_t>(random(group.members(), size)());
  return digest > 0 ? digest : 1;
}

std::string part_lineage::in_words(std::uint64_t part) {
  if (part < inner) return fmt::format("{} {}", part, part == 1 ? "part" : "parts");
  return fmt::format("part {}.{}", part / inner, part % inner);
}

const lineage& part_lineage::next() noexcept {
  part_.part_ = number(outer_, ++given_);
  return part_;
}

lineage moved(const lineage& origin, std::uint64_t from, std::uint64_t to) {
  auto result = origin;
  if (origin.empty()) return result;
  auto distance = to - from;  // modulo 2^64
  for (auto& r : result.many_ ? std::span(*result.many_) : std::span(&result.one_, 1))
    r = {r.first + distance, r.last + distance};
  result.latest_ += distance;
  return result;
}

const lineage& distinct_lineage::of(const lineage& origin) {
  bool is_again = origin.empty() || (!first_.empty() && origin.latest() == first_.latest() &&
                                     origin.part() == first_.part());
  if (is_again && !others_) others_.emplace(first_, 0);
  if (is_again) return others_->next();
  others_.reset();
  return first_ = origin;
}

lineage without(const lineage& all, const lineage& gone) {
  lineage left;
  for (auto& range : all.ranges()) {
    auto first = range.first;
    bool more = true;
    for (auto& each : gone.ranges()) {
      if (each.last < first || each.first > range.last) continue;
      if (each.first > first) left.add({first, each.first - 1});
      more = each.last < range.last;
      if (!more) break;
      first = each.last + 1;
    }
    if (more) left.add({first, range.last});
  }
  return left;
}

}  // namespace detail
}  // namespace lade
