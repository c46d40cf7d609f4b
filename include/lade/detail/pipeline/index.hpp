// Lists of items with access by index, and the orders in which runs visit them.

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

namespace lade::detail {

// The name of the enumerator: "keep".
std::string_view remainder_name(remainder how) noexcept;

// A complete, immutable list of items. Any thread.
template <class T>
class item_list {
 public:
  virtual ~item_list() = default;
  virtual std::uint64_t size() const = 0;
  virtual T at(std::uint64_t index) const = 0;

  // Identifies the items in states (checkpoints). Empty: states compare only the number of items.
  virtual std::string identity() const { return {}; }
};

// The steps of an order. Each maps a position in its own sequence to a position in the sequence
// before it; the first sequence is the list.
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

// The positions that are not in a lineage. Both functions take logarithmic time. at(): the n-th of
// them, from 0. before(): how many of them are less than a position.
class gaps {
 public:
  gaps() = default;
  explicit gaps(const lineage& taken);

  std::uint64_t at(std::uint64_t n) const noexcept;
  std::uint64_t before(std::uint64_t position) const noexcept;

 private:
  struct gap {
    std::uint64_t first;   // position
    std::uint64_t before;  // number of positions in all gaps before it
  };
  std::vector<gap> gaps_{{0, 0}};
};

// The undelivered rest of a sequence whose items have the positions from `first` on.
struct rest_step {
  std::shared_ptr<const gaps> undelivered;
  std::uint64_t first;
};

using order_step =
    std::variant<shuffle_step, draw_step, shard_step, take_step, skip_step, repeat_step, rest_step>;

// A description of each step, by which states compare orders. Shard steps have none: the rest of a
// run may be sharded among other ranks.
std::vector<std::string> texts_of(const std::vector<order_step>& steps);

// The indices [first, end) of a list.
struct stretch {
  std::uint64_t first = 0;
  std::uint64_t end = ~std::uint64_t{0};
};

// The number of items after the steps, given the number before them. Nothing if it is unknown, or
// if a run would refuse the steps.
std::optional<std::uint64_t> size_behind(const std::vector<order_step>& steps,
                                         std::optional<std::uint64_t> items);

// The indices that the steps select, if all of them are take or skip; otherwise nothing.
std::optional<stretch> stretch_of(const std::vector<order_step>& steps);

// Why a run that resumes with these steps may visit other items than those left; empty if it
// cannot.
std::string why_inexact(const std::vector<order_step>& steps);

// The last step, if it is a shard; otherwise the only shard of all items.
shard_step part_of(const std::vector<order_step>& steps);

// The index of an item in its list, and its position in the order of the epoch across all ranks.
// The last shuffle or draw determines that order.
struct place {
  std::uint64_t index;
  std::uint64_t position;
};

// The order in which one run visits a list. Its memory does not depend on the length of the list.
class visit_order {
 public:
  // Throws error(invalid_argument) if a draw step has another number of weights than items.
  visit_order(std::vector<order_step> steps, std::uint64_t items, std::uint64_t epoch);

  std::uint64_t size() const noexcept { return sizes_.back(); }
  place at(std::uint64_t k) const;

  // The order of the undelivered items of all ranks, sharded as this order is. `first`: added to
  // all positions of this source.
  visit_order rest(std::shared_ptr<const gaps> undelivered, std::uint64_t first) const;

  // The position of the first item of all ranks; 0 if there is none.
  std::uint64_t first_position() const;

 private:
  visit_order of_all_ranks() const;  // the order of all ranks

  std::vector<order_step> steps_;
  std::vector<std::uint64_t> sizes_;  // number of items before each step, and after the last
  std::uint64_t epoch_;
};

// The image of `i` under a permutation of [0, size) that depends on `key`: a Feistel network over
// the next even power of two, applied until the result is in the range. See Black and Rogaway,
// Ciphers with Arbitrary Finite Domains, 2002.
std::uint64_t permute(std::uint64_t i, std::uint64_t size, std::uint64_t key) noexcept;

}  // namespace lade::detail
