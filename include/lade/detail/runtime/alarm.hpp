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

// A time limit that leaves out the time in which the work waits for memory.
class limited_time {
 public:
  // `waited`: the result of waited_for_memory() now.
  limited_time(std::chrono::nanoseconds limit, clock::time_point now,
               std::chrono::nanoseconds waited) noexcept;

  // What is left of the limit. Not positive: it has passed.
  std::chrono::nanoseconds left(clock::time_point now,
                                std::chrono::nanoseconds waited) const noexcept;

  // The time to look again while some time is left: at least a sixteenth of the limit and 1 ms from
  // now. While the work waits for memory the time left does not shrink, and short timers would
  // spin.
  clock::time_point next_look(clock::time_point now, std::chrono::nanoseconds left) const noexcept;

 private:
  std::chrono::nanoseconds limit_;
  clock::time_point begun_;
  std::chrono::nanoseconds waited_;
};

// Requests a stop when a time limit has passed, or when a stop is requested in the context.
//
// - Ownership: the reactor shares the timer with this object, so the destructor does not wait for
//   the reactor.
// - Thread: the limit requests the stop on the thread of a reactor, also while the work blocks all
//   threads of its pool. The object itself belongs to one coroutine.
class alarm {
 public:
  // Begins the time. `limit`: see with_timeout(). `execution` must outlive the alarm, and needs a
  // runtime.
  alarm(const context& execution, std::chrono::nanoseconds limit);
  alarm(const alarm&) = delete;

  // The limit requests no stop that begins afterwards.
  ~alarm();

  std::stop_token stop_token() const noexcept { return late_.get_token(); }

  // Whether the limit has passed and has requested the stop.
  bool rang() const;

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
