// The options of a run: one pass over a pipeline.

#pragma once

#include <lade/autotune.hpp>
#include <lade/failure.hpp>
#include <lade/state.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace lade {

class run_hooks;
class trace;
struct run_report;

// Periodic reports of a run's statistics; see run_report in stats.hpp.
struct report_options {
  std::chrono::nanoseconds every = std::chrono::seconds(10);  // interval, more than 0

  // Called after each interval, and once at the end of the run for the rest. Called on the CPU
  // pool, by one thread at a time. An exception ends the run. No reports if not given.
  std::function<void(const run_report&)> to = {};

  // Whether to read process.pss_bytes too, which takes milliseconds per gigabyte; see process.hpp.
  bool pss = false;
};

// Reports of a run that hangs (stalls). Off unless `after` is set, because only the program knows
// how long a source or a function may take.
struct stall_options {
  // How long the consumer must wait for one item until the run counts as stalled; 0: never. The
  // watchdog notices a stall at most a quarter of `after` late.
  std::chrono::nanoseconds after{};

  // Receives the reports as text. If not given, they are written to standard error.
  // - Once per stall: the counters of all stages, and the state of each of their items, such as
  //   waiting for a worker.
  // - Once per stage that blocks a reactor for more than 50 ms, for any value of `after`: the work
  //   that the stage was doing.
  //
  // Called on the thread of the watchdog, because the threads of the pool and of the reactors may
  // be the ones that hang. The last reports may be made on the thread that destroys the run. An
  // exception ends the run.
  std::function<void(const std::string&)> to = {};
};

// The hook objects of a run, in the order in which they are entered: `&one` or `{&first, &second}`.
// Null pointers are ignored. Does not own the hooks.
class hook_list {
 public:
  hook_list() = default;
  hook_list(run_hooks* one) { add(one); }
  hook_list(std::initializer_list<run_hooks*> several) {
    for (auto* each : several) add(each);
  }

  void add(run_hooks* next) {
    if (next) all_.push_back(next);
  }
  const std::vector<run_hooks*>& all() const noexcept { return all_; }

 private:
  std::vector<run_hooks*> all_;
};

// The options of a run.
//
// `trace`, the hooks, and all objects that the functions here refer to must outlive the run: the
// last calls are made while the run ends. Nothing checks this.
//
// With GCC 12, do not write these options in braces inside a co_await expression: they hold more
// than numbers.
struct run_options {
  // The number of the epoch; 0 if not given. Shuffles, draws and random transformations differ from
  // epoch to epoch. A second run of the same pipeline without an epoch makes the random choices of
  // the first one again, and reports that to on_warning. Exceptions:
  // - A pipeline that is constructed anew for each run does not know of other runs: no report.
  // - If only random transformations make choices, another `seed` makes other choices.
  std::optional<std::uint64_t> epoch = {};

  std::uint64_t seed = 0;  // seed of random transformations; a shuffle has its own seed

  // Capacity of the output queue: finished items that may wait for the consumer, in addition to the
  // items inside the stages. 1 to 1,048,576, or `automatic`. Raise it for many small items: when
  // the queue is full, the run suspends until half of it is free.
  std::size_t ready = 2;

  // The limit in bytes of the finished items that wait for the consumer, as for
  // prefetch_options::bytes.
  std::uint64_t ready_bytes = ~std::uint64_t{0};  // no limit

  // The state of an earlier run (a checkpoint). This run delivers the items that the earlier run
  // had not delivered. It uses the epoch and the seed of the state instead of those above.
  std::optional<lade::state> state = {};

  // Whether to resume from a state although a source now has another identity: the names of a
  // listing, or from_options::identity. The positions in the state then refer to the present items
  // of the source.
  bool other_data = false;

  // Whether the run fails, with the reason, if run.state() would throw: at the start, or at the
  // item from which on there is no exact state.
  bool require_state = false;

  // Defaults for stages whose options do not set them; see failure.hpp:
  // - `on_error`: the policy for an item that fails.
  // - `retry`: how often a stage that can retry calls its function for one item. With retries, no
  //   map or filter runs inline.
  // - `error_budget`: how many items may fail in all stages together that do not set this option.
  lade::on_error on_error = lade::on_error::fail;
  lade::retry retry = {};
  lade::error_budget error_budget = {};

  // Called for every item that fails, including the item that ends the run, in the order of the
  // failures.
  // - Thread: the CPU pool, one call at a time, without a lock. Runs concurrently with the
  //   consumer; after the consumer's loop, run::failures() returns the last failures.
  // - Blocking: allowed. While a thousand failures wait for this function or for the failure log,
  //   stages start no further item. The run ends after the last call.
  // - Errors: an exception stops the run and is rethrown to the consumer.
  //
  // After a run is stopped or destroyed, the function is not called for the failures that still
  // wait. They are in the statistics and in the log.
  std::function<void(const failure_record&)> on_failure = {};

  // Called with one sentence about a likely mistake of the program that is not a failure. Called on
  // a thread of the CPU pool. An exception ends the run. If not given, the sentence is written to
  // standard error.
  std::function<void(const std::string&)> on_warning = {};

  // Reports of the run's statistics: of each interval, and of the whole run so far.
  report_options report = {};

  // Reports of a run that hangs: the stages and items that wait, and the reason of each wait.
  stall_options stall = {};

  // Limits for stages with automatic concurrency.
  tune_options tune = {};

  // Records the path of every item through the stages; see trace.hpp.
  lade::trace* trace = nullptr;

  // Called around stages and their calls for items; see hooks.hpp.
  hook_list hooks = {};

  // The path of a file. For every item that fails, the run appends one line of JSON before it calls
  // on_failure. The run's constructor throws if the file cannot be opened. A failed write ends the
  // run.
  std::string failure_log = {};
};

}  // namespace lade
