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

// In which order a stage yields its items.
enum class stage_ordering : std::uint8_t {
  kept,     // that of the items that it takes
  changed,  // another: shuffled, as items finish, as inputs come
  custom,   // whatever a coroutine of the user does
};

// A stage of a pipeline, or a source.
struct stage_description {
  std::string kind;                 // "map", "batch_into": the function that makes such stages
  std::string name;                 // as in statistics, traces and errors
  std::vector<std::size_t> inputs;  // the stages whose items it takes: indices of `stages`
  lade::cardinality cardinality = lade::cardinality::one;
  stage_executor executor = stage_executor::in_place;
  stage_ordering ordering = stage_ordering::kept;

  // Options that say what it does and how much it works on at a time, by their names; of `from`,
  // "order" and "shard" for each stage that orders its list. Not all: those for failures, limits of
  // time, memory and fields are left out, and most that have their default.
  std::vector<std::pair<std::string, std::string>> options;

  // How many items it yields in an epoch, if no item fails and is dropped. Nothing if only a run
  // can tell.
  std::optional<std::uint64_t> size;

  // How many items it may hold at a time, and how many bytes of them. Nothing if that depends on
  // the run, as on the threads of the runtime, or if nothing limits it.
  std::optional<std::uint64_t> held_items = {};
  std::optional<std::uint64_t> held_bytes = {};

  // Why a run with this stage has no exact state, whatever the other stages are; empty if it has
  // one as far as the stage is concerned. run::state() then throws an error with this text.
  std::string refuses_state = {};
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
// and "reordered" for one that changes the order, "no state" for one that refuses it.
//
//   {"stages":[{"name":"source","kind":"from","inputs":[],"cardinality":"source",
//               "executor":"in_place","ordering":"kept","options":{},"size":50000,
//               "held_items":null,"held_bytes":null,"refuses_state":null}, ...]}
//
// The lines count from 1, the inputs of JSON from 0. A size that is not known is left out of a
// line, and null in JSON.
std::string to_string(const pipeline_description& pipeline);
std::string to_json(const pipeline_description& pipeline);

}  // namespace lade
