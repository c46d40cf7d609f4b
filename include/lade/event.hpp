// Something that happens once and that any number of coroutines wait for.

#pragma once

#include <lade/detail/coroutines/mutex.hpp>
#include <lade/detail/coroutines/waiter.hpp>

#include <coroutine>
#include <mutex>

namespace lade {

// `co_await event` goes on when the event has been set, at once if it already is. Throws
// error(stopped) when the awaiting coroutine is asked to stop.
class event {
 public:
  class awaiter;

  // Ends the process if coroutines wait for it.
  ~event() { waiters_.require_empty("an event was destroyed while coroutines wait for it"); }

  awaiter operator co_await() noexcept;

  // Wakes all who wait: they go on where they belong; outside of a runtime, inside of this call.
  // Any thread.
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
