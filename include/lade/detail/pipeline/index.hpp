// Lists of items with access by index, and the orders in which runs visit them.

#pragma once

#include <lade/detail/common/alias_table.hpp>
#include <lade/lineage.hpp>
#include <lade/remainder.hpp>
#include <lade/support/name_digest.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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

// One of `world` disjoint parts of a sequence: every world-th position from `rank` on.
struct shard_part {
  std::uint64_t rank = 0;
  std::uint64_t world = 1;
  lade::remainder remainder = remainder::drop;
};

// A step of an order. It maps a position in its own sequence to a position in the sequence before
// it; the first sequence is the list. Of its members, only those of its kind have a meaning.
struct order_step {
  enum class kind : std::uint8_t { shuffle, draw, shard, take, skip, repeat, rest };

  static order_step shuffle(std::uint64_t seed);
  static order_step draw(std::shared_ptr<const alias_table> weights, std::uint64_t count,
                         std::uint64_t seed);
  static order_step shard(const shard_part& part);
  static order_step take(std::uint64_t count);
  static order_step skip(std::uint64_t count);
  static order_step repeat(std::uint64_t count);

  // The undelivered rest of a sequence whose items have the positions from `first` on.
  static order_step rest(std::shared_ptr<const gaps> undelivered, std::uint64_t first);

  kind what;
  std::uint64_t seed = 0;                                // shuffle, draw
  std::uint64_t count = 0;                               // draw, take, skip, repeat
  std::shared_ptr<const alias_table> weights = nullptr;  // draw
  shard_part part = {};                                  // shard
  std::shared_ptr<const gaps> undelivered = nullptr;     // rest
  std::uint64_t first = 0;                               // rest
};

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

// The part of the last step, if it is a shard; otherwise all items.
shard_part part_of(const std::vector<order_step>& steps);

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
