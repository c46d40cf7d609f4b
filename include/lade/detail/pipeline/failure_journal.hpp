// The failures of a run.

#pragma once

#include <lade/failure.hpp>
#include <lade/lineage.hpp>
#include <lade/run_options.hpp>
#include <lade/scope.hpp>
#include <lade/stats.hpp>
#include <lade/task.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace lade::detail {

class stage_registry;

// Decides what becomes of items that fail, records them, and tells the failure log and on_failure
// of them: on the CPU pool, one after the other, so that neither a slow disk nor a blocking
// listener delays the thread on which the item failed. Any thread.
class failure_journal {
 public:
  // All must outlive it. `children`: the scope in which the coroutine runs that tells of failures.
  // Throws error if the failure log cannot be opened.
  failure_journal(const run_options& options, const stage_registry& stages, scope& children);
  ~failure_journal();

  // Applies the failure policy to the exception that is being handled, so it must be called in a
  // catch block. Returns the exception that ends the run, with the names of stage and item, or null
  // if the item is dropped. `attempts`: how many calls have failed for the item.
  std::exception_ptr fail(stage_counters& stage, const failure_policy& policy, std::string item,
                          const lineage& origin, unsigned attempts = 1);

  // The last thousand.
  std::vector<failure_record> records() const;

  // Whether so many failures wait to be told that stages begin no further item:
  //   if (journal.is_behind()) co_await journal.room();
  // The wait ends early when the awaiting coroutine is asked to stop.
  bool is_behind() const noexcept { return behind_.load(std::memory_order_relaxed); }
  task<> room();

  // Has on_failure called no more: the consumer wants no more of the run.
  void tell_no_more() noexcept { tells_ = false; }

  // The exception that the consumer gets, when all children have ended. `failure`: the first
  // exception of a child. The result is an exception of on_failure or of the failure log, if there
  // is one; else `failure` together with all others that would have ended the run; else
  // error(stopped), whichever stage noticed the stop first.
  std::exception_ptr outcome(const std::exception_ptr& failure) const;

 private:
  struct contents;

  // Returns its number among those that count in the run's budget, from 1 on; 0 if it does not.
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
  std::atomic<bool> tells_ = true;
};

}  // namespace lade::detail
