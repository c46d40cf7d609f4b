// A number of permits, for which coroutines wait.

#pragma once

#include <lade/detail/coroutines/mutex.hpp>
#include <lade/detail/coroutines/waiter.hpp>

#include <coroutine>
#include <cstddef>
#include <mutex>

namespace lade {

// A fair semaphore: permits are acquired in the order of the calls of acquire().
class semaphore {
 public:
  class awaiter;

  explicit semaphore(std::size_t permits) noexcept : permits_(permits) {}

  // Ends the process if coroutines wait for a permit.
  ~semaphore() { waiters_.require_empty("a semaphore was destroyed while coroutines wait for it"); }

  // `co_await acquire()` takes one permit, and suspends until one is free. Throws error(stopped) if
  // the awaiting coroutine is asked to stop; it then holds no permit.
  [[nodiscard]] awaiter acquire() noexcept;

  // Takes a permit and returns true if one is free. Never suspends. Any thread.
  bool try_acquire() {
    std::lock_guard lock(mutex_);
    return take();
  }

  // Returns permits and resumes coroutines that wait for them, each on its executor. A coroutine
  // outside a runtime resumes inline, inside this call. Any thread. Throws error(invalid_argument),
  // and returns no permit, if the number of free permits would exceed a std::size_t.
  void release(std::size_t permits = 1);

 private:
  bool take() noexcept {
    if (permits_ == 0) return false;
    --permits_;
    return true;
  }

  detail::mutex mutex_;
  detail::wait_list waiters_;
  std::size_t permits_;
};

class semaphore::awaiter : private detail::waiter {
 public:
  explicit awaiter(semaphore& awaited) noexcept : semaphore_(awaited) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return park(coroutine, semaphore_.mutex_, semaphore_.waiters_,
                [this] { return semaphore_.take(); });
  }
  void await_resume() { finish("acquire a semaphore"); }

 private:
  semaphore& semaphore_;
};

inline semaphore::awaiter semaphore::acquire() noexcept { return awaiter(*this); }

}  // namespace lade
