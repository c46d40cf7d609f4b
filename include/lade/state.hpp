// Where a pass over a pipeline is: to be kept, and to go on from.

#pragma once

#include <lade/lineage.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lade {

// What a run has delivered, in a few numbers: its size does not depend on that of the data set but
// on how many items were in flight out of order.
//
//   auto saved = to_json(run.state());                                   // after any item
//   auto rest = runtime.run(batches, {.state = lade::state_from_json(saved)});
//
// The rest delivers every item exactly once that the first run has not: with other threads,
// concurrency and buffers, on the same rank or, from the merged states of all ranks, on any
// number of ranks. Where the stages keep the input's order, in the order of an uninterrupted run.
struct state {
  // One source of the pipeline.
  struct source {
    std::uint64_t begin = 0;  // the position of its first item, which tells it from others
    std::uint64_t items = 0;  // 0 if it does not know

    // Which data set it is; empty if it does not know. Of a listing that comes item by item, it is
    // that of the first so many items.
    std::string identity = {};
    std::uint64_t listed = 0;

    // What is done with them at the source, but for sharding: "shuffle 7", "take 100".
    std::vector<std::string> order = {};

    // On one of several ranks: which of the rank's own items it has delivered since its run began,
    // by their number among those, and the number of the first of them among the undelivered
    // items of all ranks.
    std::uint64_t first = 0;
    lineage since = {};
  };

  // A stage that chooses which item comes next: a merge by turns or weights, a window shuffle. The
  // rest makes the choices that remain, so that it comes in the order of an uninterrupted run.
  struct choices {
    std::string of = {};      // "shuffle 7 in a window of 1024"
    lineage delivered = {};   // those whose items have been delivered, by their number
    std::uint64_t items = 0;  // that there are, once the last has been seen; 0 before
  };

  std::uint64_t epoch = 0;
  std::uint64_t seed = 0;

  // The names of the stages, from the source on; of batches that are taken apart with their size.
  std::vector<std::string> stages = {};

  // The positions of all sources that no rank has to deliver any more, as far as this rank knows:
  // what had been delivered when its run began and, if it is the only rank, since then.
  lineage delivered = {};

  // On one of several ranks, the positions that it has delivered since then of sources that assign
  // whole shards to ranks (io::from_shards). Of other sources, source::since has the same.
  lineage own = {};

  std::uint64_t rank = 0;
  std::uint64_t world = 1;
  std::vector<source> sources = {};  // by their first positions
  std::vector<choices> chosen = {};  // by stages, from the consumer on

  // An item that is delivered in parts: the positions it is made of, and the number of the last
  // part (lineage::part).
  lineage open = {};
  std::uint64_t parts = 0;
  std::uint64_t open_size = 0;  // members of that item, if it is a group such as a batch

  // With equal_steps: the number of steps of the epoch, how many of them the consumer has taken,
  // and how many of these were repeats. 0 without.
  std::uint64_t steps = 0;
  std::uint64_t steps_taken = 0;
  std::uint64_t steps_repeated = 0;
};

// One line of JSON.
std::string to_json(const state& saved);

// Reads what to_json has written. Throws error(invalid_argument) that tells where the text is
// something else.
state state_from_json(std::string_view text);

// The states of all ranks, taken after the same number of steps or not, but after the first, as
// that of one run, from which any number of ranks may go on. Throws error(invalid_argument) that
// names the difference if they are not those of one run, or if a rank is missing; if a rank is amid
// the parts of an item (flat_map, unbatch), which the others do not know; with equal_steps, if the
// ranks have taken different numbers of steps; and if what some ranks have delivered and others
// have not is more than 1,048,576 items, other than those of whole shards.
state merge(std::span<const state> ranks);

}  // namespace lade
