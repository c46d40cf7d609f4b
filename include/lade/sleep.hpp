// Waiting for a duration, and limiting the duration of a task.

#pragma once

#include <lade/detail/runtime/alarm.hpp>
#include <lade/detail/runtime/operation.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/support/later.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace lade {

// Suspends for `duration`. nanoseconds::max() sleeps until the caller is asked to stop; 0 or less
// does not suspend. Requires a runtime. Throws error(stopped) if the caller is asked to stop.
//
// C++ converts hours and other units without an overflow check: nanoseconds hold at most 292 years.
inline task<> sleep(std::chrono::nanoseconds duration) {
  bool slept = co_await detail::sleep_until(support::later(detail::clock::now(), duration));
  if (!slept) throw error(errc::stopped, "sleep");
}

// Awaits `work` with a timeout. If `work` has not finished after `limit`, it is asked to stop;
// with_timeout waits until it has ended and throws error(timed_out, doing). If `work` nevertheless
// returns, or throws anything but error(stopped), so does with_timeout.
//
// - `limit`: nanoseconds::max() means none. Under 0 or less, work that need not wait still
//   finishes.
// - Thread: the stop is requested on the reactor's thread, so also while the work blocks every
//   thread of its pool.
// - Errors: requires a runtime. Outside one it throws error(no_runtime, doing) and does not start
//   the work.
template <class T>
task<T> with_timeout(std::chrono::nanoseconds limit, task<T> work,
                     std::string doing = "wait for a task") {
  auto& outer = co_await this_context_reference();
  if (!outer.runtime) throw error(errc::no_runtime, doing);
  detail::alarm late(outer, limit);
  context inner = outer;
  inner.stop = late.stop_token();
  try {
    co_return co_await with_context(inner, std::move(work));
  } catch (const error& failure) {
    if (failure.code() != errc::stopped || !late.has_expired()) throw;
  }
  throw error(errc::timed_out, doing);
}

}  // namespace lade
