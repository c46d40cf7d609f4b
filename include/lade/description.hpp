// description: the stages of a pipeline, without running it; see pipeline::describe().

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lade {

// How many items a stage yields for the items that it takes.
enum class cardinality : std::uint8_t {
  source,       // takes no items
  one,          // one for each item
  at_most_one,  // one for each item, or none
  several,      // any number for each item
  group,        // one for several items: a batch, a window, a row of several inputs
  custom,       // as many as a user's coroutine yields
};

// The threads on which a stage calls its function. If it has none: the threads on which it works
// ahead of the next stage.
enum class stage_executor : std::uint8_t {
  caller,    // the thread of the next stage: the stage works when that asks for an item
  cpu_pool,  // the runtime's pool
  own_pool,  // a dedicated pool: the thread_pool of its options
  reactor,   // an I/O thread of the runtime
};

// The order in which a stage yields its items.
enum class stage_ordering : std::uint8_t {
  kept,     // the order of the items that it takes
  changed,  // another order: shuffled, as items finish, as inputs are ready
  custom,   // the order in which a user's coroutine yields
};

// A stage or a source of a pipeline.
struct stage_description {
  std::string kind;                 // function that makes such stages: "map", "batch_into"
  std::string name;                 // name in statistics, traces and errors
  std::vector<std::size_t> inputs;  // stages whose items it takes, as indices of `stages`
  lade::cardinality cardinality = lade::cardinality::one;
  stage_executor executor = stage_executor::caller;
  stage_ordering ordering = stage_ordering::kept;

  // Names and values of options that define the stage's work and its concurrency. For `from`, also
  // "order" for each step that orders its list, and "shard" with "items", the number of items that
  // are divided, if that is known. Excluded are options for memory and
  // fields, options that the run determines, and most options with their default value.
  std::vector<std::pair<std::string, std::string>> options;

  // The number of items that it yields in an epoch, if no item fails and is dropped. Nothing if it
  // is known only in a run.
  std::optional<std::uint64_t> size;

  // Upper bounds on the items that the stage holds at a time, and on their bytes. Items in queues,
  // slots and unfinished groups count; copies for further attempts do not. Not set if there is no
  // limit, or if the run or custom code determines it; nor for most sources.
  // - 0: the stage passes each item on before it takes the next one.
  // - Results in a queue count, such as the parts of a flat_map and the rows of pack_rows.
  // - A route or tee holds the items before its paths and the results behind them. The stages of
  //   the paths have their own numbers. The unit of a route_batches is one batch in flight, with
  //   all its parts and results.
  std::optional<std::uint64_t> held_items = {};
  std::optional<std::uint64_t> held_bytes = {};

  // The reason why no run with this stage has an exact state, with any other stages. run::state()
  // then throws an error with this text. Empty if the stage allows a state.
  std::string refuses_state = {};
};

// The stages of a pipeline, from the sources on. Stages with statistics have the same order and
// names there. The paths of a route or tee take items from its stage, and the stage behind them
// takes items from each path.
struct pipeline_description {
  std::vector<stage_description> stages;
};

// The description as text, with one line per stage, and as JSON:
//
//   1 source: from, 50000 items
//   2 read: map of 1, on the reactor, concurrency 64, 50000 items
//   3 decode_image: batch_into of 2, on the CPU pool, size 256, drop_last, 195 items
//
// A line has "reordered" for a stage that changes the order, and "no state" for one that refuses
// it.
//
//   {"stages":[{"name":"source","kind":"from","inputs":[],"cardinality":"source",
//               "executor":"caller","ordering":"kept","options":{},"size":50000,
//               "held_items":null,"held_bytes":null,"refuses_state":null}, ...]}
//
// The lines are printable: a control character in a name or an option is an escape there. They
// count stages from 1, the inputs of JSON from 0. A line omits an unknown size; in JSON it is null.
std::string to_string(const pipeline_description& pipeline);
std::string to_json(const pipeline_description& pipeline);

}  // namespace lade
