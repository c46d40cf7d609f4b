// state: the position of a run in its pipeline (a checkpoint), to save it and to resume from it.

#pragma once

#include <lade/lineage.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lade {

// The state of a run (a checkpoint): the items that the run has delivered. Its size depends on the
// number of items in flight out of order, not on the size of the data set.
//
//   auto saved = to_json(run.state());                                   // after any item
//   auto rest = runtime.run(batches, {.state = lade::state_from_json(saved)});
//
// The resumed run delivers every item exactly once that the first run has not delivered. It may
// have other threads, concurrency and buffers. It may be on the same rank or, with the merged
// states of all ranks, on any number of ranks. If the stages keep the input's order, the items are
// delivered in the order of an uninterrupted run.
struct state {
  // One source of the pipeline.
  struct source {
    std::uint64_t begin = 0;  // position of its first item, which identifies the source
    std::uint64_t items = 0;  // number of its items; 0 if unknown

    // Identity of the data set; empty if unknown. For a listing that arrives item by item: the
    // identity of its first `listed` items.
    std::string identity = {};
    std::uint64_t listed = 0;

    // Steps at the source other than sharding: "shuffle 7", "take 100".
    std::vector<std::string> order = {};

    // If there are several ranks, they take the undelivered positions in turn. Each rank numbers
    // its own items from 0. `first`: index of this rank's item 0 among the undelivered positions.
    // `since`: numbers of the items that this rank has delivered.
    //
    // For example, 2 ranks begin with 10 items of which 4 are delivered. Positions 4 to 9 are left.
    // Rank 1 has `first` 1: its items 0, 1 and 2 are at positions 5, 7 and 9. When it has delivered
    // those at 5 and 7, its `since` is 0 to 1.
    //
    // A run that resumes from this state without a merge continues these numbers.
    std::uint64_t first = 0;
    lineage since = {};
  };

  // A stage that chooses the next item: a merge by turns or weights, or a window shuffle. A resumed
  // run makes the remaining choices, so its order is that of an uninterrupted run.
  struct choices {
    std::string of = {};      // "shuffle 7 in a window of 1024"
    lineage delivered = {};   // numbers of the choices whose items are delivered
    std::uint64_t items = 0;  // number of choices in all; 0 until the end is seen
  };

  std::uint64_t epoch = 0;
  std::uint64_t seed = 0;

  // Names of the stages, from the source on. Batches that are split later have their size in the
  // name.
  std::vector<std::string> stages = {};

  // The delivered positions. `before`: by any rank, up to the state from which all ranks began,
  // which is of one rank or merged. `since then`: by this rank alone.
  //
  //   ranks     source         before      since then
  //   one       any            delivered   delivered
  //   several   from_shards    delivered   own
  //   several   others         delivered   source::since, numbers instead of positions
  lineage delivered = {};
  lineage own = {};

  std::uint64_t rank = 0;
  std::uint64_t world = 1;           // number of ranks
  std::vector<source> sources = {};  // ordered by `begin`
  std::vector<choices> chosen = {};  // by stage, from the consumer on

  // An item that is delivered in part. `open`: the positions it is made from. `parts`: number of
  // the last delivered part (lineage::part).
  lineage open = {};
  std::uint64_t parts = 0;

  // A digest of its members, and of the stages that have dropped others, if it is a group such as a
  // batch; otherwise 0.
  std::uint64_t open_members = 0;

  // With equal_steps: number of steps of the epoch, steps that the consumer has taken, and repeats
  // among them. Otherwise 0.
  std::uint64_t steps = 0;
  std::uint64_t steps_taken = 0;
  std::uint64_t steps_repeated = 0;
};

// One line of JSON.
std::string to_json(const state& saved);

// Parses the result of to_json. Throws error(invalid_argument) naming the place where the text is
// malformed.
state state_from_json(std::string_view text);

// Merges the states of all ranks into the state of one run, from which any number of ranks may
// resume. The ranks may have taken different numbers of steps, but at least their first item,
// unless they are at their end.
//
// Throws error(invalid_argument) if
// - the states differ in a way that shows that they are of different runs (the message names the
//   difference), or a rank is missing,
// - a rank has delivered an item in part (flat_map, unbatch), since the other ranks do not know
//   which parts,
// - with equal_steps, the ranks have taken different numbers of steps,
// - the ranks are more than 1,048,576 items apart. These are items at steps that not all ranks have
//   delivered; items of whole shards do not count.
state merge(std::span<const state> ranks);

}  // namespace lade
