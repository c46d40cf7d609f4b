// lineage: the source positions that an item was made from.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lade {

class lineage;

namespace detail {

class part_lineage;

// `origin` with all positions shifted by `to - from`: position `from` becomes `to`.
lineage moved(const lineage& origin, std::uint64_t from, std::uint64_t to);

}  // namespace detail

// A set of source positions. A source numbers the items that it yields. Every item carries the
// positions of all source items that were consumed to make it: one for an image, 256 for a batch of
// 256. Positions are stored as ranges, so a batch of consecutive samples costs no more than one
// sample.
class lineage {
 public:
  // Positions first, first + 1, ..., last.
  struct range {
    std::uint64_t first;
    std::uint64_t last;

    friend bool operator==(const range&, const range&) = default;
  };

  lineage() = default;
  explicit lineage(std::uint64_t position) noexcept : one_{position, position}, latest_(position) {}
  lineage(const lineage& other);
  lineage(lineage&& other) noexcept
      : one_(std::exchange(other.one_, nothing)),
        many_(std::move(other.many_)),
        latest_(other.latest_),
        part_(other.part_),
        digests_(other.digests_) {}
  lineage& operator=(lineage other) noexcept {
    one_ = other.one_;
    many_ = std::move(other.many_);
    latest_ = other.latest_;
    part_ = other.part_;
    digests_ = other.digests_;
    return *this;
  }

  bool empty() const noexcept { return !many_ && one_ == nothing; }
  bool contains(std::uint64_t position) const noexcept;
  std::uint64_t size() const noexcept;

  // The ranges in ascending order. They are disjoint and not adjacent.
  std::span<const range> ranges() const noexcept {
    return many_ ? std::span<const range>(*many_) : std::span(&one_, empty() ? 0 : 1);
  }

  // The position added last; 0 if empty. It distinguishes an item from the items dropped before it.
  std::uint64_t latest() const noexcept { return empty() ? 0 : latest_; }

  // The number of a part, if flat_map or unbatch made several items from one: from 1, in the order
  // of the parts. 0 for an item that is no part, and for the first of several items that a custom
  // stage makes from the same input.
  std::uint64_t part() const noexcept { return empty() ? 0 : part_; }

  void add(std::uint64_t position) { add(range{position, position}); }
  void add(range added) {
    latest_ = added.last;
    part_ = 0;
    digests_ = empty() ? 0 : digests(members(), 0);
    if (!many_ && one_ == nothing) {
      one_ = added;
    } else if (!many_ && one_.last + 1 == added.first) {
      one_.last = added.last;
    } else {
      insert(added);
    }
  }

  // Adds all positions of `other`, and takes over its latest() and part(). Does nothing if it is
  // empty.
  void merge(const lineage& other) {
    if (other.empty()) return;
    const auto merged = empty() ? other.digests_ : digests(members_with(other), other.whole());
    if (empty() && !other.many_)
      one_ = other.one_;
    else
      merge_ranges(other);
    latest_ = other.latest_;
    part_ = other.part_;
    digests_ = merged;
  }

  // Moves `other` into this lineage, whose own positions are lost, and leaves `other` empty.
  void take(lineage& other) noexcept {
    one_ = std::exchange(other.one_, nothing);
    if (many_ || other.many_) many_ = std::move(other.many_);
    latest_ = other.latest_;
    part_ = other.part_;
    digests_ = other.digests_;
  }

 private:
  friend class detail::part_lineage;
  friend lineage detail::moved(const lineage& origin, std::uint64_t from, std::uint64_t to);

  static constexpr range nothing{1, 0};

  // members(): a digest of the lineages that were merged, in their order: of their latest() and
  // members(). Groups of different members have different digests. Groups of the same members may
  // have different digests too, if different stages have dropped the items between the members.
  // whole(): for a part, the digest of the item that it was split from, with the item's size; 0 if
  // that item is no group.
  std::uint32_t members() const noexcept { return static_cast<std::uint32_t>(digests_); }
  std::uint32_t whole() const noexcept { return static_cast<std::uint32_t>(digests_ >> 32); }
  static std::uint64_t digests(std::uint32_t members, std::uint32_t whole) noexcept {
    return std::uint64_t{whole} << 32 | members;
  }

  // The digest of the members with one more. It does not change if all positions are shifted alike.
  std::uint32_t members_with(const lineage& other) const noexcept {
    const auto mixed = (members() ^ (members() >> 15)) * 0x85ebca6bU;
    const auto distance = static_cast<std::uint32_t>(other.latest_ - latest_);
    return mixed + other.members() * 0xc2b2ae35U + distance;
  }

  void merge_ranges(const lineage& other);
  void insert(range added);

  range one_ = nothing;
  std::unique_ptr<std::vector<range>> many_;  // when set, holds all ranges and one_ is not used
  std::uint64_t latest_ = 0;
  std::uint64_t part_ = 0;
  std::uint64_t digests_ = 0;  // members() and whole(); one number, which is copied at once
};

bool operator==(const lineage& a, const lineage& b) noexcept;

std::string to_string(const lineage& positions);  // "3-7, 9"

namespace detail {

// The lineages of the parts of one item, in order.
class part_lineage {
 public:
  // `size`: number of members, if the item is a group such as a batch; otherwise 0.
  part_lineage(const lineage& whole, std::size_t size);

  // Returns the lineage of the next part. The reference is valid until the next call.
  const lineage& next() noexcept;

  // A digest of the members of the item that a part was split from, if that is a group such as a
  // batch; otherwise 0. Groups with the same positions have different members if different items
  // were dropped. For a part of a part: that of the outermost item.
  static std::uint32_t members_of_whole(const lineage& part) noexcept {
    return part.empty() ? 0 : part.whole();
  }

  // Whether `part` is `whole`, or a part of it. Both must have the same positions.
  static bool is_of(const lineage& part, const lineage& whole) noexcept {
    return whole.part() == 0 || part.part() == whole.part() ||
           part.part() / inner == whole.part() || !is_ordered(part);
  }

  // Whether part numbers are in the order of the parts. They are for parts of an item, and for the
  // first 2^32 - 1 parts of each of its first 2^31 - 1 parts. Others are distinct but not ordered.
  static bool is_ordered(const lineage& part) noexcept { return part.part_ < unordered; }

  // Describes the parts up to that number: "3 parts", or "part 2.1" for a part of a part.
  static std::string in_words(std::uint64_t part);

 private:
  static constexpr std::uint64_t inner = std::uint64_t{1} << 32;  // numbers per outer part
  static constexpr std::uint64_t unordered = std::uint64_t{1} << 63;

  static std::uint64_t number(std::uint64_t outer, std::uint64_t n) noexcept;
  static std::uint32_t members(const lineage& group, std::size_t size) noexcept;

  lineage part_;
  std::uint64_t outer_;      // part number of the item; 0 if it is no part
  std::uint64_t given_ = 0;  // parts so far
};

// Distinguishes consecutive items that a stage makes from the same positions: all but the first are
// numbered as parts of the first.
class distinct_lineage {
 public:
  // `origin`: lineage of the next item; empty if it is made from the same input as the item before.
  // The reference is valid until the next call.
  const lineage& of(const lineage& origin);

 private:
  lineage first_;
  std::optional<part_lineage> others_;
};

// The positions of `all` that are not in `gone`.
lineage without(const lineage& all, const lineage& gone);

}  // namespace detail

}  // namespace lade
