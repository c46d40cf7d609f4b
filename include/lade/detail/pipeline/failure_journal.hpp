// failure_journal: applies the failure policy of a run, and records and reports its failures.

#pragma once

#include <lade/detail/observability/stage_counters.hpp>
#include <lade/failure.hpp>
#include <lade/lineage.hpp>
#include <lade/run_options.hpp>
#include <lade/scope.hpp>
#include <lade/task.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace lade::detail {

class stage_registry;

// Decides whether a failure ends the run, records it, and reports it to the failure log and to
// on_failure. Reports are made by one child of the run, on the CPU pool and in order. So neither a
// slow disk nor a blocking listener delays the thread on which an item failed.
//
// Thread: any. The mutex in `contents` guards its members, except the log, which only the reporting
// child uses.
class failure_journal {
 public:
  // All arguments must outlive the journal. `children`: the scope of the reporting coroutine.
  // Throws error if the failure log cannot be opened.
  failure_journal(const run_options& options, const stage_registry& stages, scope& children);
  ~failure_journal();

  // Applies the failure policy to the exception that is being handled, so it must be called in a
  // catch block. Returns the exception that ends the run, with the names of stage and item, or null
  // if the item is dropped. `attempts`: how many calls have failed for the item.
  std::exception_ptr fail(stage_counters& stage, const failure_policy& policy, std::string item,
                          const lineage& origin, unsigned attempts = 1);

  // Returns the first exception returned by fail(), or `failure` if there is none. Stages are
  // destroyed while that exception is on its way to the consumer. Their exceptions then, such as
  // the exception of a hook, must not replace it.
  std::exception_ptr reason_to_end(std::exception_ptr failure) const noexcept;

  // The last thousand failures.
  std::vector<failure_record> records() const;

  // Back-pressure of reports. While a thousand or more failures are not reported, stages start no
  // further item: `if (journal.is_behind()) co_await journal.caught_up();`. The wait ends when at
  // most 500 are left, or, without an exception, when the awaiting coroutine is asked to stop.
  bool is_behind() const noexcept { return behind_.load(std::memory_order_relaxed); }
  task<> caught_up();

  // Ends the calls of on_failure, except one in progress: the consumer has left the run.
  void stop_reporting() noexcept { reports_ = false; }

  // Returns the exception for the consumer, once all children have ended. `failure`: the first
  // exception of a child. The result is the first of these that exists:
  // - the exception of on_failure or of the failure log
  // - `failure`, if it was returned by fail(), together with all other failures that ended the run
  // - error(stopped), if `failure` is a stop; std::bad_alloc becomes error(not_enough_memory)
  // - `failure`
  std::exception_ptr outcome(const std::exception_ptr& failure) const;

 private:
  struct contents;

  // `counts`: whether the failure counts in the error budget of the run. Returns its number among
  // the counted failures, from 1; otherwise 0.
  std::uint64_t record(failure_record failure, bool counts);
  static task<> report_all(failure_journal& self);
  bool take_unreported(failure_record& next);
  void report(const failure_record& failure) noexcept;
  bool has_ended_by(const std::exception_ptr& failure) const;
  std::exception_ptr end_run(stage_error failure);

  const run_options& options_;
  const stage_registry& stages_;
  scope& children_;
  std::unique_ptr<contents> in_;
  std::atomic<bool> behind_ = false;
  std::atomic<bool> reports_ = true;
};

}  // namespace lade::detail
