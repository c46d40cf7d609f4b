// Lists of items that are reached by their index, and the orders in which runs visit them.

#pragma once

#include <lade/detail/common/alias_table.hpp>
#include <lade/detail/common/name_digest.hpp>
#include <lade/lineage.hpp>
#include <lade/remainder.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lade {

namespace detail {

// "keep"
std::string_view remainder_name(remainder how) noexcept;

// Items of type T, complete and immutable. Any thread.
template <class T>
class item_list {
 public:
  virtual ~item_list() = default;
  virtual std::uint64_t size() const = 0;
  virtual T at(std::uint64_t index) const = 0;

  // Identifies the items in states. Empty: states compare only their number.
  virtual std::string identity() const { return {}; }
};

// One step of an order: which position of the sequence before it a position stands for.
struct shuffle_step {
  std::uint64_t seed;
};
struct draw_step {
  std::shared_ptr<const alias_table> table;
  std::uint64_t count;
  std::uint64_t seed;
};
struct shard_step {
  std::uint64_t rank;
  std::uint64_t world;
  lade::remainder remainder;
};
struct take_step {
  std::uint64_t count;
};
struct skip_step {
  std::uint64_t count;
};
struct repeat_step {
  std::uint64_t count;
};

// The positions that are not in a lineage: the n-th of them, and how many there are before one.
class gaps {
 public:
  gaps() = default;
  explicit gaps(const lineage& taken);

  std::uint64_t at(std::uint64_t n) const noexcept;
  std::uint64_t before(std::uint64_t position) const noexcept;

 private:
  struct gap {
    std::uint64_t first;   // position
    std::uint64_t before;  // how many positions all gaps before it have
  };
  std::vector<gap> gaps_{{0, 0}};
};

// What is left of a sequence that has been delivered in part. Its first item has the position
// `first`, and each further one the next position.
struct rest_step {
  std::shared_ptr<const gaps> undelivered;
  std::uint64_t first;
};

using order_step =
    std::variant<shuffle_step, draw_step, shard_step, take_step, skip_step, repeat_step, rest_step>;

// What each step does, in words by which states tell orders apart. None for a shard: the ranks of
// the rest may be others.
std::vector<std::string> texts_of(const std::vector<order_step>& steps);

// The items of a list from `first` on, up to and without `end`.
struct stretch {
  std::uint64_t first = 0;
  std::uint64_t end = ~std::uint64_t{0};
};

// How many items are behind the steps, of so many before them. Nothing if that is not known, or if
// a run would refuse them.
std::optional<std::uint64_t> size_behind(const std::vector<order_step>& steps,
                                         std::optional<std::uint64_t> items);

// The stretch that is left of a list by steps that only take and skip; nothing for other steps.
std::optional<stretch> stretch_of(const std::vector<order_step>& steps);

// Why the order of what is left may be of another part than was left; empty if it is not.
std::string why_inexact(const std::vector<order_step>& steps);

// Which part of all items an order is of; all of them if its last step is not a shard.
shard_step part_of(const std::vector<order_step>& steps);

// An item's index in its list, and its position: the place it has in the epoch's order across all
// ranks, which is its place behind the last shuffle or draw.
struct place {
  std::uint64_t index;
  std::uint64_t position;
};

// The order in which one run visits a list. Takes constant memory, however long the list.
class visit_order {
 public:
  // Throws error(invalid_argument) if there are other than `items` weights to draw them by.
  visit_order(std::vector<order_step> steps, std::uint64_t items, std::uint64_t epoch);

  std::uint64_t size() const noexcept { return sizes_.back(); }
  place at(std::uint64_t k) const;

  // The order of what is left of the items of all ranks, where all positions count from `first`.
  visit_order rest(std::shared_ptr<const gaps> undelivered, std::uint64_t first) const;

  // The position of the first item of all ranks; 0 if there is none.
  std::uint64_t first_position() const;

 private:
  visit_order undealt() const;  // that of all ranks

  std::vector<order_step> steps_;
  std::vector<std::uint64_t> sizes_;  // before each step, and at the end
  std::uint64_t epoch_;
};

// Where a permutation of [0, size) that depends on `key` takes `i`. A Feistel network over the
// next even power of two, walked until it comes back into the range (Black and Rogaway: Ciphers
// with Arbitrary Finite Domains, 2002).
std::uint64_t permute(std::uint64_t i, std::uint64_t size, std::uint64_t key) noexcept;

}  // namespace detail
}  // namespace lade
