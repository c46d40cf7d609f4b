// Results that code outside of lade delivers: a driver's callback, a thread of another library.

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

// Shared by a promise and its future. `outcome` belongs to the promise until it is delivered, then
// to the future. So no mutex guards it.
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
// A library that copies its callbacks, as a std::function is copied, takes a std::shared_ptr of the
// promise. A callback of C takes a pointer: `new promise<int>(std::move(promise))`, which the
// callback owns.
//
// Thread: any, one at a time. Nothing here blocks for longer than a mutex is held, or calls back
// into the other library: an awaiting coroutine is posted to the threads of its runtime. Outside of
// a runtime it resumes inside of the call.
//
// A promise that is destroyed without a result delivers error(abandoned), so that no coroutine
// waits for ever. Keep no copy of it beside the awaiting coroutine: move it to the other library.
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

  // The one future. Must be called before a result is set. Throws error(closed) the second time.
  future<T> get_future();

  // Delivers the result. Throws error(closed) if there was one before, and what a move of the value
  // throws; then none is delivered.
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

  // Delivers an exception, which the awaiting coroutine throws; not null. Throws error(closed) as
  // set_value.
  void set_exception(std::exception_ptr failure) {
    require_unset();
    shared_->outcome.set_exception(std::move(failure));
    std::exchange(shared_, nullptr)->deliver();
  }

 private:
  void require_unset() const {
    if (!shared_) throw error(errc::closed, "set the result of a promise", "it has one already");
  }

  std::shared_ptr<detail::promised<T>> shared_;  // null once there is a result
};

// The result of a promise. Awaited once:
//
//   co_await std::move(future)                    a stop ends the wait: throws error(stopped)
//   co_await std::move(future).uninterruptible()  returns when there is a result, and not before
//
// After a stop the promise may still deliver; its result is dropped. Wait without interruption
// where the other library uses memory of the awaiting coroutine until it delivers. Such a wait
// delays the end of a run.
//
// A future that is not awaited drops its result. One that was awaited before, or moved away, throws
// error(closed).
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

  std::shared_ptr<detail::promised<T>> shared_;  // null once it is awaited
};

template <class T>
future<T> promise<T>::get_future() {
  if (!shared_ || std::exchange(shared_->has_future, true))
    throw error(errc::closed, "get the future of a promise", "it has been taken, or is too late");
  return future<T>(shared_);
}

}  // namespace lade
