// How one pass over a pipeline is made.

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
  std::chrono::nanoseconds every = std::chrono::seconds(10);  // more than 0

  // Called every so often, and once at the end of the run with what is left; by one thread at a
  // time, of the CPU pool. What it throws ends the run.
  std::function<void(const run_report&)> to = {};

  // Reads process.pss_bytes too, which takes milliseconds for every gigabyte; see process.hpp.
  bool pss = false;
};

// When a run is reported to hang, and to whom. Off unless `after` is given: only the program knows
// how long a source or a function may take.
struct stall_options {
  // How long the consumer waits for one item; 0 or more. It is noticed at most a quarter later.
  std::chrono::nanoseconds after{};

  // Called once for every stall, with the counters of all stages and with what each of their items
  // waits for; and, whatever `after` is, once for every stage that blocks a reactor for more than
  // 50 ms, with what it was doing. Called on the thread of a watchdog, since those of the pool and
  // of the reactors may be what hangs; of what is noticed last, on the thread that destroys the
  // run. What it throws ends the run. Standard error if not given.
  std::function<void(const std::string&)> to = {};
};

// The hook objects of a run, in the order of entering: `&one` or `{&first, &second}`. Null pointers
// are left out.
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

// What functions here refer to, `trace` and `hooks` must outlive the run, which nothing checks: the
// last calls are made while the run ends.
//
// With GCC 12, not to be written in braces inside of a co_await expression: it holds more than
// numbers.
struct run_options {
  // Shuffles, draws and random transformations differ from epoch to epoch; 0 if not given. A second
  // run of a pipeline that has them, without an epoch, is the first one again: on_warning says so,
  // unless the pipeline is made anew for each run, or only draws by `seed` and that is another.
  std::optional<std::uint64_t> epoch = {};

  std::uint64_t seed = 0;  // of random transformations; a shuffle has a seed of its own

  // Finished items that may wait for the consumer, beyond those inside of the stages: 1 to
  // 1,048,576. Raise it where items are small and many: the run is then woken once for half of
  // them.
  std::size_t ready = 2;

  // What an earlier run had delivered: this one delivers the rest, with the epoch and the seed of
  // the state instead of those above.
  std::optional<lade::state> state = {};

  // Goes on from a state though its sources now have another identity: the names of a listing or
  // from_options::identity. Positions then stand for what the sources have there now.
  bool other_data = false;

  // Fails at the start, with the reason, if run.state() would be refused; and when that turns out
  // later, at the item where it does.
  bool require_state = false;

  // What is to become of items that fail in stages that do not say it, how often those stages that
  // can call again do so, and how many may fail in all stages together that have no budget of their
  // own (see error_budget). Where there are retries, no map or filter works in place.
  lade::on_error on_error = lade::on_error::fail;
  lade::retry retry = {};
  lade::error_budget error_budget = {};

  // Called for every item that fails, also for the one that ends the run, in the order of the
  // failures: by one thread at a time, of the CPU pool, which it may block, and without a lock. It
  // runs beside the consumer's loop; after the loop, run::failures() has the last of them. While a
  // thousand failures wait for it, or for the failure log, stages begin no further item. The run
  // ends after the last call. A run that is stopped or destroyed calls it no more: those that still
  // wait are in the statistics and the log. What it throws stops the run and is rethrown to the
  // consumer.
  std::function<void(const failure_record&)> on_failure = {};

  // Called with one sentence for what is no failure but most likely a mistake of the program.
  // Called on a thread of the CPU pool; what it throws ends the run. If not given, the sentence is
  // written to standard error.
  std::function<void(const std::string&)> on_warning = {};

  // Reports of the run's statistics: of each interval, and of the whole run so far.
  report_options report = {};

  // Reports of a run that hangs: which stages and items wait, and for what.
  stall_options stall = {};

  // Bounds for stages whose concurrency is automatic.
  tune_options tune = {};

  // Where every item's way through the stages is recorded; see trace.hpp.
  lade::trace* trace = nullptr;

  // Called around stages and their calls for items; see hooks.hpp.
  hook_list hooks = {};

  // A file to which a line of JSON is added for every item that fails, before on_failure is called
  // for it. The run throws if it cannot be opened, and ends if it cannot be written.
  std::string failure_log = {};
};

}  // namespace lade
