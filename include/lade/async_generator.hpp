// async_generator<T>: a coroutine that yields many values.

#pragma once

#include <lade/detail/gcc12.hpp>
#include <lade/detail/promise.hpp>
#include <lade/detail/rendezvous.hpp>
#include <lade/held.hpp>

#include <cassert>
#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace lade {

namespace detail {

[[noreturn]] void refuse_generator();

}  // namespace detail

// A coroutine that yields values of type T, each awaited with `co_await generator.next()`:
//
//   async_generator<image> at_least(async_generator<image> in, int width) {
//     while (auto image = co_await in.next())
//       if (image->width() >= width) co_yield std::move(*image);
//   }
//
// next() runs the generator up to its next co_yield, as a plain call on the awaiting thread if
// nothing in between suspends, and gives the address of the yielded value, or null at the end.
// The value lives in the generator until the next call of next() and may be moved out. What the
// generator throws, next() throws, once; after that the generator is at its end.
//
// The lineage of what a generator consumes through next() becomes the lineage of what it yields
// next. `co_await generator.next().held()` takes the value together with its lineage instead, as a
// std::optional<held<T>>, to be kept and yielded later; see held.hpp. A generator must not be
// destroyed while next() is awaited.
template <class T>
class [[nodiscard]] async_generator {
 public:
  class promise_type;
  class next_awaiter;
  class held_awaiter;
  using value_type = T;

  async_generator(async_generator&& other) noexcept
      : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  async_generator& operator=(async_generator&& other) noexcept {
    std::swap(coroutine_, other.coroutine_);
    return *this;
  }
  ~async_generator() {
    if (coroutine_) coroutine_.destroy();
  }

  // Throws error(invalid_argument) if the generator has been moved from.
  [[nodiscard]] next_awaiter next() {
    if (!coroutine_) detail::refuse_generator();
    return next_awaiter(coroutine_);
  }

  // Whether the last next() had to be waited for: the generator has awaited something meanwhile.
  bool awaited() const noexcept { return coroutine_.promise().awaited_; }

  // The lineage of the value that next() gave last.
  const lineage& origin() const noexcept { return coroutine_.promise().yielded_lineage_; }

  // The lineage of what it has consumed and not yielded. While it does not run.
  const lineage& unyielded() const noexcept { return coroutine_.promise().pending_; }

 private:
  explicit async_generator(std::coroutine_handle<promise_type> coroutine) noexcept
      : coroutine_(coroutine) {}

  std::coroutine_handle<promise_type> coroutine_;
};

namespace detail {

// What a source yields: `co_yield at(position, value)`.
template <class T>
struct positioned {
  std::uint64_t position;
  T& value;
};

// What a stage yields that passes on a lineage which it kept itself.
template <class T>
struct with_lineage {
  const lineage& origin;
  T& value;
};

}  // namespace detail

template <class T>
class async_generator<T>::promise_type : public detail::promise_base {
 public:
  promise_type() noexcept { consumed = &pending_; }

  async_generator get_return_object() noexcept {
    return async_generator(std::coroutine_handle<promise_type>::from_promise(*this));
  }
  std::suspend_always initial_suspend() noexcept { return {}; }
  auto final_suspend() noexcept { return hand_over(nullptr); }

  auto yield_value(T& value) noexcept {
    yielded_lineage_.take(pending_);
    return hand_over(std::addressof(value));
  }
  auto yield_value(T&& value) noexcept {
    static_assert(detail::safe_in_await<T>,
                  "GCC 12 destroys an aggregate built inside co_yield twice: give the type a "
                  "constructor, or yield a named object with std::move.");
    return yield_value(value);
  }
  auto yield_value(held<T>&& item) noexcept {
    pending_.merge(item.origin());
    return yield_value(*item);
  }
  auto yield_value(detail::positioned<T> item) noexcept {
    pending_.add(item.position);
    return yield_value(item.value);
  }
  auto yield_value(detail::with_lineage<T> item) noexcept {
    pending_.merge(item.origin);
    return yield_value(item.value);
  }

  void return_void() noexcept {}
  void unhandled_exception() noexcept { failure_ = std::current_exception(); }

 private:
  friend class async_generator;

  struct hand_over_awaiter {
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<promise_type> self) const noexcept {
      auto& promise = self.promise();
      if (!promise.rendezvous_.arrive()) return;
      promise.awaited_ = true;
      detail::resume_at_home(promise.consumer_, promise.context);
    }
    void await_resume() const noexcept {}
  };

  hand_over_awaiter hand_over(T* value) noexcept {
    value_ = value;
    return {};
  }

  // Runs up to the next value. Returns whether it is there; otherwise resumes `consumer` with it.
  bool start(std::coroutine_handle<> consumer) {
    consumer_ = consumer;
    awaited_ = false;
    return rendezvous_.call(std::coroutine_handle<promise_type>::from_promise(*this));
  }

  T* end() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return nullptr;
  }

  T* end(std::exception_ptr& failure) {
    if (context && context->stop.stop_requested()) return end();
    if (failure_) failure = std::exchange(failure_, nullptr);
    return nullptr;
  }

  T* value_ = nullptr;
  std::coroutine_handle<> consumer_;
  lineage pending_;  // of what has been consumed since the last value
  lineage yielded_lineage_;
  std::exception_ptr failure_;
  bool awaited_ = false;
  detail::rendezvous rendezvous_;
};

template <class T>
class async_generator<T>::next_awaiter {
 public:
  explicit next_awaiter(std::coroutine_handle<promise_type> producer) noexcept
      : producer_(producer) {}

  // For stages that hold items back: the lineage of this value does not count to what the awaiting
  // generator yields next.
  next_awaiter apart() && noexcept {
    apart_ = true;
    return *this;
  }

  // The same: what the generator throws ends it as if there were no more values, and is kept in
  // `failure`, to be thrown when what is held back has been yielded. Not where the awaiting
  // coroutine is asked to stop: nobody wants what it holds.
  next_awaiter deferring(std::exception_ptr& failure) && noexcept {
    deferred_ = &failure;
    return *this;
  }

  // The value moved out, with its lineage.
  held_awaiter held() && noexcept { return held_awaiter(std::move(*this).apart()); }

  bool await_ready() const noexcept { return producer_.done(); }

  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> consumer) {
    if (auto* base = detail::base_of(consumer)) {
      producer_.promise().context = base->context;
      consumed_ = apart_ ? nullptr : base->consumed;
    }
    return !producer_.promise().start(consumer);
  }

  T* await_resume() const {
    auto& promise = producer_.promise();
    if (!promise.value_) return deferred_ ? promise.end(*deferred_) : promise.end();
    if (consumed_) consumed_->merge(promise.yielded_lineage_);
    return promise.value_;
  }

 private:
  std::coroutine_handle<promise_type> producer_;
  lineage* consumed_ = nullptr;
  std::exception_ptr* deferred_ = nullptr;
  bool apart_ = false;

  friend class held_awaiter;
};

template <class T>
class async_generator<T>::held_awaiter : private next_awaiter {
 public:
  explicit held_awaiter(const next_awaiter& next) noexcept : next_awaiter(next) {}

  using next_awaiter::await_ready;
  using next_awaiter::await_suspend;
  std::optional<lade::held<T>> await_resume() const {
    auto* value = next_awaiter::await_resume();
    if (!value) return std::nullopt;
    return lade::held<T>(std::move(*value), this->producer_.promise().yielded_lineage_);
  }
};

}  // namespace lade
