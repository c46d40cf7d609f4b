// A one-time signal for any number of coroutines.

#pragma once

#include <lade/detail/coroutines/mutex.hpp>
#include <lade/detail/coroutines/waiter.hpp>

#include <coroutine>
#include <mutex>

namespace lade {

// `co_await event` suspends until the event is set, and not at all if it is set already. Throws
// error(stopped) if the awaiting coroutine is asked to stop.
class event {
 public:
  class awaiter;

  // Ends the process if coroutines wait for the event.
  ~event() { waiters_.require_empty("an event was destroyed while coroutines wait for it"); }

  awaiter operator co_await() noexcept;

  // Sets the event and resumes all coroutines that wait for it, each on its executor. A coroutine
  // outside a runtime resumes inline, inside this call. Any thread.
  void set();

  bool is_set() const {
    std::lock_guard lock(mutex_);
    return set_;
  }

 private:
  mutable detail::mutex mutex_;
  detail::wait_list waiters_;
  bool set_ = false;
};

class event::awaiter : private detail::waiter {
 public:
  explicit awaiter(event& awaited) noexcept : event_(awaited) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return park(coroutine, event_.mutex_, event_.waiters_, [this] { return event_.set_; });
  }
  void await_resume() { finish("wait for an event"); }

 private:
  event& event_;
};

inline event::awaiter event::operator co_await() noexcept { return awaiter(*this); }

}  // namespace lade
