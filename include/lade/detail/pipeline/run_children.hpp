// run_children: the coroutines of a run beside its generators.

#pragma once

#include <lade/context.hpp>
#include <lade/detail/runtime/executor.hpp>
#include <lade/scope.hpp>
#include <lade/task.hpp>

#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

namespace lade::detail {

// Starts the coroutines of the stages, and keeps the executors in use on which they run. Any
// thread.
class run_children {
 public:
  // `children` must outlive the object.
  explicit run_children(lade::scope& children) : scope_(children) {}  // std::deque allocates

  lade::scope& scope() noexcept { return scope_; }

  // Starts a coroutine of a stage. `execution`: its context, a part of the stage. The stage is kept
  // alive until the coroutine has ended, and its executor until ended() is called, since other
  // coroutines may follow.
  void start(std::shared_ptr<const void> stage, const context& execution, task<> work);

  // Cancels all children; see scope::fail().
  void fail(std::exception_ptr failure) noexcept { scope_.fail(std::move(failure)); }

  // Releases the executors. Must be called when all children have ended.
  void ended() noexcept;

 private:
  void use(executor& home);

  lade::scope& scope_;
  std::mutex mutex_;               // guards used_
  std::deque<executor_use> used_;  // each executor once
};

}  // namespace lade::detail
