// Results that code outside lade delivers, such as a callback of a driver.

#pragma once

#include <lade/detail/coroutines/mutex.hpp>
#include <lade/detail/coroutines/result.hpp>
#include <lade/detail/coroutines/waiter.hpp>
#include <lade/error.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

namespace lade {

template <class T = void>
class future;

namespace detail {

// Shared by a promise and its future. No mutex guards `outcome`: the promise owns it until the
// result is delivered, then the future does.
template <class T>
struct promised {
  lade::detail::mutex mutex;
  wait_list waiters;       // the coroutine that awaits the future, if any; guarded by the mutex
  bool delivered = false;  // guarded by the mutex
  bool has_future = false;
  result<T> outcome;

  void deliver() {
    wait_list woken;
    {
      std::lock_guard lock(mutex);
      delivered = true;
      woken = waiters.settle_all();
    }
    woken.resume_all();
  }
};

}  // namespace detail

// Delivers one result to the coroutine that awaits its future:
//
//   lade::promise<int> promise;
//   auto answer = promise.get_future();
//   library.submit(request, [to = std::move(promise)](int value) mutable { to.set_value(value); });
//   int value = co_await std::move(answer);
//
// Callbacks that are copied, such as a std::function, hold a std::shared_ptr to the promise. A
// callback of C owns a pointer: `new promise<int>(std::move(promise))`.
//
// - Thread: any, one at a time.
// - Blocking: no longer than a mutex is held. An awaiting coroutine is posted to the threads of its
//   runtime, so no call reenters the other library. Outside a runtime the coroutine resumes inline.
// - Lifetime: destroying a promise without a result delivers error(abandoned), so that no coroutine
//   waits forever. Move the promise to the other library: keep no copy beside the awaiting
//   coroutine.
template <class T = void>
class promise {
 public:
  promise() : shared_(std::make_shared<detail::promised<T>>()) {}
  promise(promise&&) noexcept = default;
  promise& operator=(promise other) noexcept {
    std::swap(shared_, other.shared_);
    return *this;
  }
  ~promise() {
    if (!shared_) return;
    try {
      throw error(errc::abandoned, "wait for a promise", "it was destroyed without a result");
    } catch (...) {  // or std::bad_alloc
      set_exception(std::current_exception());
    }
  }

  // Returns the only future. Call it before a result is set. A second call throws error(closed).
  future<T> get_future();

  // Delivers the result. Throws error(closed) if a result was delivered before. If moving the value
  // throws, that exception propagates and no result is delivered.
  template <class U = T>
    requires(std::convertible_to<U, T> && !std::is_void_v<T>)
  void set_value(U&& value) {
    require_unset();
    shared_->outcome.return_value(std::forward<U>(value));
    std::exchange(shared_, nullptr)->deliver();
  }
  void set_value()
    requires(std::is_void_v<T>)
  {
    require_unset();
    std::exchange(shared_, nullptr)->deliver();
  }

  // Delivers an exception, which the awaiting coroutine throws. `failure` must not be null. Throws
  // error(closed) if a result was delivered before.
  void set_exception(std::exception_ptr failure) {
    require_unset();
    shared_->outcome.set_exception(std::move(failure));
    std::exchange(shared_, nullptr)->deliver();
  }

 private:
  void require_unset() const {
    if (!shared_) throw error(errc::closed, "set the result of a promise", "it has one already");
  }

  std::shared_ptr<detail::promised<T>> shared_;  // null once a result is delivered
};

// The result of a promise, to be awaited once:
//
//   co_await std::move(future)                    a stop ends the wait: throws error(stopped)
//   co_await std::move(future).uninterruptible()  returns when there is a result, and not before
//
// After a stop the promise may still deliver; the result is dropped. Use uninterruptible() if the
// other library accesses memory of the awaiting coroutine until it delivers. Such a wait delays the
// end of a run.
//
// A future that is never awaited drops its result. Awaiting a future again, or after it was moved
// from, throws error(closed).
template <class T>
class future {
  template <bool Interruptible>
  class awaiter : private detail::waiter {
   public:
    explicit awaiter(std::shared_ptr<detail::promised<T>> shared) noexcept
        : shared_(std::move(shared)) {}
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> coroutine) {
      auto& shared = *shared_;
      auto is_delivered = [&shared] { return shared.delivered; };
      if constexpr (Interruptible)
        return park(coroutine, shared.mutex, shared.waiters, is_delivered);
      else
        return park_unstoppable(coroutine, shared.mutex, shared.waiters, is_delivered);
    }
    T await_resume() {
      finish("wait for a promise");
      return shared_->outcome.take();
    }

   private:
    std::shared_ptr<detail::promised<T>> shared_;
  };

 public:
  future(future&&) noexcept = default;
  future& operator=(future&&) noexcept = default;

  auto operator co_await() && { return awaiter<true>(take()); }
  auto uninterruptible() && { return awaiter<false>(take()); }

 private:
  friend class promise<T>;
  explicit future(std::shared_ptr<detail::promised<T>> shared) noexcept
      : shared_(std::move(shared)) {}

  std::shared_ptr<detail::promised<T>> take() {
    if (shared_) return std::move(shared_);
    throw error(errc::closed, "wait for a promise", "its future was awaited before, or moved away");
  }

  std::shared_ptr<detail::promised<T>> shared_;  // null once awaited
};

template <class T>
future<T> promise<T>::get_future() {
  if (!shared_ || std::exchange(shared_->has_future, true))
    throw error(errc::closed, "get the future of a promise", "it has been taken, or is too late");
  return future<T>(shared_);
}

}  // namespace lade
