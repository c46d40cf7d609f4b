// async_generator<T>: a coroutine that yields many values.

#pragma once

#include <lade/detail/common/gcc12.hpp>
#include <lade/detail/coroutines/promise.hpp>
#include <lade/detail/coroutines/rendezvous.hpp>
#include <lade/held.hpp>

#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace lade {

namespace detail {

[[noreturn]] void refuse_generator();

// The promise of a generator, whatever its values are.
class generator_promise : public promise_base {
 public:
  generator_promise() noexcept { consumed = &pending_; }

  std::suspend_always initial_suspend() noexcept { return {}; }
  auto final_suspend() noexcept { return hand_over(nullptr); }
  void return_void() noexcept {}
  void unhandled_exception() noexcept { failure_ = std::current_exception(); }

 protected:
  // Gives the value away, with the lineage of what has been consumed since the one before.
  auto yield(void* value) noexcept {
    yielded_lineage_.take(pending_);
    return hand_over(value);
  }
  auto yield(void* value, const lineage& origin) {
    pending_.merge(origin);
    return yield(value);
  }
  void count_to_next(std::uint64_t position) { pending_.add(position); }

 private:
  friend class generator;

  struct hand_over_awaiter {
    generator_promise& promise;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<>) const noexcept {
      if (!promise.rendezvous_.arrive()) return;
      promise.awaited_ = true;
      resume_at_home(promise.consumer_, promise.context);
    }
    void await_resume() const noexcept {}
  };

  hand_over_awaiter hand_over(void* value) noexcept {
    value_ = value;
    return {*this};
  }

  // Runs up to the next value. Returns whether it is there; otherwise resumes `consumer` with it.
  bool start(std::coroutine_handle<> consumer) {
    consumer_ = consumer;
    awaited_ = false;
    return rendezvous_.call(self_);
  }

  // What the generator has ended with.
  void end() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  void end(std::exception_ptr& failure) {
    if (context && context->stop.stop_requested()) return end();
    if (failure_) failure = std::exchange(failure_, nullptr);
  }

  std::coroutine_handle<> self_;
  std::coroutine_handle<> consumer_;
  void* value_ = nullptr;
  lineage pending_;  // of what has been consumed since the last value
  lineage yielded_lineage_;
  std::exception_ptr failure_;
  bool awaited_ = false;
  rendezvous rendezvous_;
};

// A generator that gives the addresses of its values: the base of async_generator<T>, and the type
// of coroutines that pass values on without knowing their type. Movable only. A value is valid
// until the next next(), and may be moved from.
class [[nodiscard]] generator {
 public:
  class promise_type;
  class next_awaiter;

  generator(generator&& other) noexcept : promise_(std::exchange(other.promise_, nullptr)) {}
  generator& operator=(generator&& other) noexcept {
    std::swap(promise_, other.promise_);
    return *this;
  }
  ~generator() {
    if (promise_) promise_->self_.destroy();
  }

  // Throws error(invalid_argument) if the generator has been moved from.
  [[nodiscard]] next_awaiter next();

  // Whether the last next() had to be waited for: the generator has awaited something meanwhile.
  bool awaited() const noexcept { return promise_->awaited_; }

  // The lineage of the value that next() gave last.
  const lineage& origin() const noexcept { return promise_->yielded_lineage_; }

  // The lineage of what it has consumed and not yielded. While it does not run.
  const lineage& unyielded() const noexcept { return promise_->pending_; }

 protected:
  generator(generator_promise& promise, std::coroutine_handle<> self) noexcept
      : promise_(&promise) {
    promise.self_ = self;
  }

 private:
  generator_promise* promise_;
};

// What it yields that passes on a lineage which it kept itself.
struct address_with_lineage {
  const lineage& origin;
  void* item;
};

class generator::promise_type final : public generator_promise {
 public:
  generator get_return_object() noexcept {
    return {*this, std::coroutine_handle<promise_type>::from_promise(*this)};
  }
  auto yield_value(void* value) noexcept { return yield(value); }
  auto yield_value(address_with_lineage value) { return yield(value.item, value.origin); }
};

class generator::next_awaiter {
 public:
  explicit next_awaiter(generator& producer) noexcept : producer_(*producer.promise_) {}

  // What apart() and deferring() of async_generator<T>::next_awaiter do.
  void take_apart() noexcept { apart_ = true; }
  void defer(std::exception_ptr& failure) noexcept { deferred_ = &failure; }

  bool await_ready() const noexcept { return producer_.self_.done(); }

  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> consumer) {
    if (auto* base = base_of(consumer)) {
      producer_.context = base->context;
      consumed_ = apart_ ? nullptr : base->consumed;
    }
    return !producer_.start(consumer);
  }

  void* await_resume() const {
    if (!producer_.value_) {
      if (deferred_)
        producer_.end(*deferred_);
      else
        producer_.end();
    } else if (consumed_) {
      consumed_->merge(producer_.yielded_lineage_);
    }
    return producer_.value_;
  }

 protected:
  const lineage& origin() const noexcept { return producer_.yielded_lineage_; }

 private:
  generator_promise& producer_;
  lineage* consumed_ = nullptr;
  std::exception_ptr* deferred_ = nullptr;
  bool apart_ = false;
};

inline generator::next_awaiter generator::next() {
  if (!promise_) refuse_generator();
  return next_awaiter(*this);
}

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
class [[nodiscard]] async_generator : public detail::generator {
 public:
  class promise_type;
  class next_awaiter;
  class held_awaiter;
  using value_type = T;

  // For lade itself: a generator whose values are known to be of type T. Not one of another type.
  template <std::same_as<detail::generator> Untyped>
  explicit async_generator(Untyped values) noexcept : generator(std::move(values)) {}

  // Throws error(invalid_argument) if the generator has been moved from.
  [[nodiscard]] next_awaiter next() { return next_awaiter(generator::next()); }

 private:
  using generator::generator;
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
class async_generator<T>::promise_type final : public detail::generator_promise {
 public:
  async_generator get_return_object() noexcept {
    return {*this, std::coroutine_handle<promise_type>::from_promise(*this)};
  }

  auto yield_value(T& value) noexcept { return yield(std::addressof(value)); }
  auto yield_value(T&& value) noexcept {
    static_assert(detail::safe_in_await<T>,
                  "GCC 12 destroys an aggregate built inside co_yield twice: give the type a "
                  "constructor, or yield a named object without std::move.");
    return yield_value(value);
  }
  auto yield_value(held<T>&& item) { return yield(std::addressof(*item), item.origin()); }
  auto yield_value(detail::positioned<T> item) {
    count_to_next(item.position);
    return yield_value(item.value);
  }
  auto yield_value(detail::with_lineage<T> item) {
    return yield(std::addressof(item.value), item.origin);
  }
};

template <class T>
class async_generator<T>::next_awaiter : public detail::generator::next_awaiter {
 public:
  explicit next_awaiter(const detail::generator::next_awaiter& next) noexcept
      : detail::generator::next_awaiter(next) {}

  // For stages that hold items back: the lineage of this value does not count to what the awaiting
  // generator yields next.
  next_awaiter apart() && noexcept {
    this->take_apart();
    return *this;
  }

  // The same: what the generator throws ends it as if there were no more values, and is kept in
  // `failure`, to be thrown when what is held back has been yielded. Not where the awaiting
  // coroutine is asked to stop: nobody wants what it holds.
  next_awaiter deferring(std::exception_ptr& failure) && noexcept {
    this->defer(failure);
    return *this;
  }

  // The value moved out, with its lineage.
  held_awaiter held() && noexcept { return held_awaiter(std::move(*this).apart()); }

  T* await_resume() const {
    return static_cast<T*>(detail::generator::next_awaiter::await_resume());
  }
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
    return lade::held<T>(std::move(*value), this->origin());
  }
};

}  // namespace lade
