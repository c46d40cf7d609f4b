// What a pipeline consists of, without running it; see pipeline::describe().

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lade {

// How many items a stage yields for those that it takes.
enum class cardinality : std::uint8_t {
  source,       // it takes none
  one,          // one for each item
  at_most_one,  // one for each item, or none
  several,      // any number for each item
  group,        // one for several items: a batch, a window, a row of several inputs
  custom,       // whatever a coroutine of the user yields
};

// On which threads the function of a stage computes. A stage without a function, or with one that
// is called when the next stage asks for an item, computes in place: on the thread that asks.
enum class stage_executor : std::uint8_t {
  in_place,
  cpu_pool,  // of the runtime
  own_pool,  // the thread_pool of its options
  reactor,   // an I/O thread of the runtime
};

// A stage of a pipeline, or a source.
struct stage_description {
  std::string kind;                 // "map", "batch_into": the function that makes such stages
  std::string name;                 // as in statistics, traces and errors
  std::vector<std::size_t> inputs;  // the stages whose items it takes: indices of `stages`
  lade::cardinality cardinality = lade::cardinality::one;
  stage_executor executor = stage_executor::in_place;

  // Options that say what it does and how much it works on at a time, by their names; of `from`,
  // "order" and "shard" for each stage that orders its list. Not all: those for failures, limits of
  // time, memory and fields are left out, and most that have their default.
  std::vector<std::pair<std::string, std::string>> options;

  // How many items it yields in an epoch, if no item fails and is dropped. Nothing if only a run
  // can tell.
  std::optional<std::uint64_t> size;
};

// The stages of a pipeline, from the sources on. Stages that a run counts have the order and the
// names of its statistics. The paths of a route or tee take items of its stage, and the stage
// behind them takes items of each path.
struct pipeline_description {
  std::vector<stage_description> stages;
};

// A line for each stage, and the same as JSON:
//
//   1 source: from, 50000 items
//   2 read: map of 1, on the reactor, concurrency 64, 50000 items
//   3 decode_image: batch_into of 2, on the CPU pool, size 256, drop_last, 195 items
//
//   {"stages":[{"name":"source","kind":"from","inputs":[],"cardinality":"source",
//               "executor":"in_place","options":{},"size":50000}, ...]}
//
// The lines count from 1, the inputs of JSON from 0. A size that is not known is left out of a
// line, and null in JSON.
std::string to_string(const pipeline_description& pipeline);
std::string to_json(const pipeline_description& pipeline);

}  // namespace lade
