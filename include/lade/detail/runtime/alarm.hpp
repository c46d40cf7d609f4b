// The timer of with_timeout.

#pragma once

#include <lade/context.hpp>
#include <lade/detail/runtime/reactor.hpp>

#include <chrono>
#include <memory>
#include <stop_token>

namespace lade::detail {

// How long coroutines of this context have been suspended in memory allocations, for their current
// item and all items before it.
std::chrono::nanoseconds waited_for_memory(const context& execution, clock::time_point now);

// A time limit. The time in which the work waits for memory does not count.
class limited_time {
 public:
  // `waited`: the result of waited_for_memory() now.
  limited_time(std::chrono::nanoseconds limit, clock::time_point now,
               std::chrono::nanoseconds waited) noexcept;

  // The time left; 0 or less if the limit has passed.
  std::chrono::nanoseconds left(clock::time_point now,
                                std::chrono::nanoseconds waited) const noexcept;

  // When to check the limit again: after `left`, but at least a sixteenth of the limit and 1 ms
  // from now. While the work waits for memory, `left` stays the same, and shorter timers would
  // spin.
  clock::time_point next_check(clock::time_point now, std::chrono::nanoseconds left) const noexcept;

 private:
  std::chrono::nanoseconds limit_;
  clock::time_point begun_;
  std::chrono::nanoseconds waited_;
};

// Requests a stop when a time limit has passed, or when a stop is requested in the context.
//
// - Ownership: the reactor shares the timer with this object, so the destructor does not wait for
//   the reactor. It withdraws a timer that the reactor has not started.
// - Thread: the object belongs to one coroutine. When the limit has passed, a reactor's thread
//   requests the stop. So this also works while the work blocks every thread of its pool. The
//   thread that stops the context passes that stop on.
class alarm {
 public:
  // Starts the timer. `limit`: see with_timeout(). `execution` must have a runtime and outlive the
  // alarm. Throws std::bad_alloc.
  alarm(const context& execution, std::chrono::nanoseconds limit);
  alarm(const alarm&) = delete;

  // If the limit has passed, the reactor may still request the stop afterwards. It then accesses
  // only the state that it shares with the stop tokens.
  ~alarm();

  std::stop_token stop_token() const noexcept { return late_.get_token(); }

  // Whether the limit has passed. The stop is requested right afterwards.
  bool has_expired() const;

 private:
  class shared_timer;
  struct pass_on_stop {
    alarm& self;
    void operator()() const noexcept { request_stop(self.late_); }
  };

  std::stop_source late_;
  std::shared_ptr<shared_timer> timer_;
  std::stop_callback<pass_on_stop> on_outer_stop_;
};

}  // namespace lade::detail
