// A count of permits that coroutines wait for.

#pragma once

#include <lade/detail/coroutines/mutex.hpp>
#include <lade/detail/coroutines/waiter.hpp>

#include <coroutine>
#include <cstddef>
#include <mutex>

namespace lade {

// Permits are given in the order in which they were asked for.
class semaphore {
 public:
  class awaiter;

  explicit semaphore(std::size_t permits) noexcept : permits_(permits) {}

  // Ends the process if coroutines wait for it.
  ~semaphore() { waiters_.require_empty("a semaphore was destroyed while coroutines wait for it"); }

  // `co_await acquire()` takes one permit, waiting for it if need be. Throws error(stopped) when
  // the awaiting coroutine is asked to stop; it then has no permit.
  [[nodiscard]] awaiter acquire() noexcept;

  // Takes a permit if one is free.
  bool try_acquire() {
    std::lock_guard lock(mutex_);
    return take();
  }

  // Gives permits back. Those who waited for them go on where they belong; outside of a runtime,
  // inside of this call. Any thread. Throws error(invalid_argument), and gives none back, if more
  // were free than a std::size_t can count.
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
