// Which source positions an item came from.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lade {

// A set of source positions. A source numbers what it yields; every item carries the positions of
// all that was consumed to make it: one for an image, 256 for a batch of 256. Kept as ranges, so
// that a batch of consecutive samples costs no more than one sample.
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
        latest_(other.latest_) {}
  lineage& operator=(lineage other) noexcept {
    one_ = other.one_;
    many_ = std::move(other.many_);
    latest_ = other.latest_;
    return *this;
  }

  bool empty() const noexcept { return !many_ && one_ == nothing; }
  bool contains(std::uint64_t position) const noexcept;
  std::uint64_t size() const noexcept;

  // The ranges in ascending order, disjoint and not adjacent.
  std::span<const range> ranges() const noexcept {
    return many_ ? std::span<const range>(*many_) : std::span(&one_, empty() ? 0 : 1);
  }

  // What was added last, which tells an item from those that were dropped before it. 0 if empty.
  std::uint64_t latest() const noexcept { return empty() ? 0 : latest_; }

  void add(std::uint64_t position) { add(range{position, position}); }
  void add(range added) {
    latest_ = added.last;
    if (!many_ && one_ == nothing)
      one_ = added;
    else if (!many_ && one_.last + 1 == added.first)
      one_.last = added.last;
    else
      insert(added);
  }

  // Adds all positions of `other`, the latest of which is then the latest.
  void merge(const lineage& other) {
    if (other.empty()) return;
    if (other.many_)
      merge_many(other);
    else
      add(other.one_);
    latest_ = other.latest_;
  }

  // Becomes what `other` was and leaves it empty.
  void take(lineage& other) noexcept {
    one_ = std::exchange(other.one_, nothing);
    if (many_ || other.many_) many_ = std::move(other.many_);
    latest_ = other.latest_;
  }

 private:
  static constexpr range nothing{1, 0};

  void merge_many(const lineage& other);
  void insert(range added);

  range one_ = nothing;
  std::unique_ptr<std::vector<range>> many_;  // when set, holds all ranges and one_ is not used
  std::uint64_t latest_ = 0;
};

bool operator==(const lineage& a, const lineage& b) noexcept;

std::string to_string(const lineage& positions);  // "3-7, 9"

}  // namespace lade
