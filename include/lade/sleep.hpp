// Waiting for a duration, and limiting the duration of a task.

#pragma once

#include <lade/detail/common/later.hpp>
#include <lade/detail/runtime/operation.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>
#include <lade/when_all.hpp>

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>

namespace lade {

// Suspends for `duration`. nanoseconds::max() sleeps until the caller is asked to stop; 0 or less
// does not suspend. Requires a runtime. Throws error(stopped) if the caller is asked to stop.
//
// C++ converts hours and other units without an overflow check: nanoseconds hold at most 292 years.
inline task<> sleep(std::chrono::nanoseconds duration) {
  bool slept = co_await detail::sleep_until(detail::later(detail::clock::now(), duration));
  if (!slept) throw error(errc::stopped, "sleep");
}

namespace detail {

// How long coroutines of this context have been suspended in memory allocations, for their current
// item and all items before it.
std::chrono::nanoseconds waited_for_memory(const context& execution, clock::time_point now);

// The alarm of with_timeout: requests a stop of `late` after `duration`, and sets `rang`. Time in
// which the work waits for memory does not count.
//
// It sleeps at least once, so that work that need not wait finishes even under a limit of 0. Each
// further sleep lasts at least a sixteenth of the limit and 1 ms: while the work waits for memory
// the remaining time does not shrink, and short sleeps would spin.
inline task<> stop_after(std::chrono::nanoseconds duration, const context& execution,
                         std::stop_source& late, bool& rang) {
  duration = std::max(duration, std::chrono::nanoseconds());
  auto begun = clock::now();
  auto waited = waited_for_memory(execution, begun);
  auto least = std::max<std::chrono::nanoseconds>(duration / 16, std::chrono::milliseconds(1));
  co_await sleep(duration);
  while (true) {
    auto now = clock::now();
    auto left = duration - (now - begun) + (waited_for_memory(execution, now) - waited);
    if (left.count() <= 0) break;
    co_await sleep(std::max<std::chrono::nanoseconds>(left, least));
  }
  rang = true;
  late.request_stop();
}

// Stops the alarm of stop_after when the work ends, also by an exception.
class disarm {
 public:
  explicit disarm(std::stop_source& alarm) noexcept : alarm_(alarm) {}
  disarm(const disarm&) = delete;
  ~disarm() { alarm_.request_stop(); }

 private:
  std::stop_source& alarm_;
};

template <class T>
task<T> disarm_after(task<T> work, const context& execution, std::stop_source& alarm) {
  disarm at_the_end(alarm);
  co_return co_await with_context(execution, std::move(work));
}

inline task<> set_alarm(const context& execution, task<> alarm) {
  try {
    co_await with_context(execution, std::move(alarm));
  } catch (const error& failure) {
    if (failure.code() != errc::stopped) throw;
  }
}

}  // namespace detail

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
  std::stop_source late;
  std::stop_source alarm;
  auto pass_on = [&late] { detail::request_stop(late); };
  std::stop_callback on_outer_stop(outer.stop, pass_on);
  context inner = outer;
  inner.stop = late.get_token();
  context alarm_context = outer;
  alarm_context.stop = alarm.get_token();
  alarm_context.home = &outer.runtime->reactor();
  bool rang = false;
  try {
    auto results = co_await when_all(  // the alarm first: the work may run to its end inline
        detail::set_alarm(alarm_context, detail::stop_after(limit, alarm_context, late, rang)),
        detail::disarm_after(std::move(work), inner, alarm));
    if constexpr (!std::is_void_v<T>)
      co_return std::get<1>(std::move(results));
    else
      co_return;
  } catch (const error& failure) {
    if (!rang || failure.code() != errc::stopped) throw;
  }
  throw error(errc::timed_out, doing);
}

}  // namespace lade
