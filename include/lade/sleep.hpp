// Waiting for a time, and giving up after one.

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

// Waits for a duration: until it is asked to stop for nanoseconds::max(), and not at all for 0 or
// less. C++ converts hours and the like without a check: nanoseconds hold no more than 292 years.
// Needs a runtime. Throws error(stopped) when asked to stop.
inline task<> sleep(std::chrono::nanoseconds duration) {
  bool slept = co_await detail::sleep_until(detail::later(detail::clock::now(), duration));
  if (!slept) throw error(errc::stopped, "sleep");
}

namespace detail {

// How long coroutines of these surroundings have waited for memory, for the item that they work on
// and those before it.
std::chrono::nanoseconds waited_for_memory(const context& surroundings, clock::time_point now);

// Time in which memory is waited for does not count. Sleeps at least once: what need not wait is
// done before a limit of 0 is over. Then for a sixteenth of the limit at least: while memory is
// waited for, the time that is left does not get less, however short it is.
inline task<> stop_after(std::chrono::nanoseconds duration, const context& surroundings,
                         std::stop_source& late, bool& rang) {
  duration = std::max(duration, std::chrono::nanoseconds());
  auto begun = clock::now();
  auto waited = waited_for_memory(surroundings, begun);
  auto least = std::max<std::chrono::nanoseconds>(duration / 16, std::chrono::milliseconds(1));
  co_await sleep(duration);
  while (true) {
    auto now = clock::now();
    auto left = duration - (now - begun) + (waited_for_memory(surroundings, now) - waited);
    if (left.count() <= 0) break;
    co_await sleep(std::max<std::chrono::nanoseconds>(left, least));
  }
  rang = true;
  late.request_stop();
}

// Ends the alarm of stop_after when the work is done, whichever way.
class disarm {
 public:
  explicit disarm(std::stop_source& alarm) noexcept : alarm_(alarm) {}
  disarm(const disarm&) = delete;
  ~disarm() { alarm_.request_stop(); }

 private:
  std::stop_source& alarm_;
};

template <class T>
task<T> disarm_after(task<T> work, const context& surroundings, std::stop_source& alarm) {
  disarm at_the_end(alarm);
  co_return co_await under(surroundings, std::move(work));
}

inline task<> set_alarm(const context& surroundings, task<> alarm) {
  try {
    co_await under(surroundings, std::move(alarm));
  } catch (const error& failure) {
    if (failure.code() != errc::stopped) throw;
  }
}

}  // namespace detail

// Awaits `work`, but asks it to stop when it has not finished after `limit`, waits until it has
// ended, and then throws error(timed_out, doing). What finishes all the same gives its result. A
// limit of nanoseconds::max() is none; one of 0 or less still lets work finish that need not wait.
// The work is asked to stop on the reactor's thread, also while it blocks every thread of its pool.
// Needs a runtime: throws error(no_runtime, doing) outside of one, and does not begin the work.
template <class T>
task<T> with_timeout(std::chrono::nanoseconds limit, task<T> work,
                     std::string doing = "wait for a task") {
  auto& outer = co_await detail::this_context_reference();
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
    auto results = co_await when_all(  // the alarm first: the work may go on without ever waiting
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
