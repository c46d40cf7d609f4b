// async_generator<T>: a coroutine that yields many values.

#pragma once

#include <lade/detail/common/gcc12.hpp>
#include <lade/detail/coroutines/parked_coroutine.hpp>
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

// The promise of a generator, independent of the type of its values.
class generator_promise : public promise_base {
 public:
  generator_promise() noexcept { consumed = &pending_; }

  std::suspend_always initial_suspend() noexcept { return {}; }
  auto final_suspend() noexcept { return hand_over(nullptr); }
  void return_void() noexcept {}
  void unhandled_exception() noexcept { failure_ = std::current_exception(); }

 protected:
  // Yields the value, with the lineage of all items consumed since the previous value.
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
      promise.consumer_.resume_at_home(promise.context);
    }
    void await_resume() const noexcept {}
  };

  hand_over_awaiter hand_over(void* value) noexcept {
    value_ = value;
    return {*this};
  }

  // Runs the generator up to its next value. Returns whether `consumer` must suspend: it is then
  // resumed with the value.
  bool start(suspended_coroutine consumer) {
    consumer_ = consumer;
    awaited_ = false;
    auto when = rendezvous_.call(self_);
    return when == arrival::later || (when == arrival::elsewhere && continue_at_home());
  }

  // The generator has arrived on another thread. Kept out of the way of start(), which runs for
  // every value. Returns whether the consumer must suspend.
  [[gnu::noinline]] bool continue_at_home() noexcept {
    awaited_ = true;
    return consumer_.post_home(context);
  }

  // Rethrows the exception that ended the generator, if any.
  void end() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  // The same for a consumer that defers failures: moves the exception to `failure` instead. If the
  // consumer is asked to stop, rethrows.
  void end(std::exception_ptr& failure) {
    if (context && context->stop.stop_requested()) return end();
    if (failure_) failure = std::exchange(failure_, nullptr);
  }

  std::coroutine_handle<> self_;
  suspended_coroutine consumer_;
  void* value_ = nullptr;
  lineage pending_;  // lineage of the items consumed since the last value
  lineage yielded_lineage_;
  std::exception_ptr failure_;
  bool awaited_ = false;
  rendezvous rendezvous_;
};

// A generator of addresses: the base of async_generator<T>, and the type of coroutines that forward
// values without knowing their type. Movable only. A value is valid until the following call of
// next(), and may be moved from.
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

  // Whether the last next() suspended its awaiter, because the generator awaited something.
  bool awaited() const noexcept { return promise_->awaited_; }

  // The lineage of the last value that next() returned.
  const lineage& origin() const noexcept { return promise_->yielded_lineage_; }

  // The lineage of the items that the generator has consumed and not yielded yet. Must not be
  // called while the generator runs.
  const lineage& unyielded() const noexcept { return promise_->pending_; }

 protected:
  generator(generator_promise& promise, std::coroutine_handle<> self) noexcept
      : promise_(&promise) {
    promise.self_ = self;
  }

 private:
  generator_promise* promise_;
};

// Yielded by a stage that kept the lineage of the item itself.
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

  // See apart() and deferring() of async_generator<T>::next_awaiter.
  void set_apart() noexcept { apart_ = true; }
  void defer(std::exception_ptr& failure) noexcept { deferred_ = &failure; }

  bool await_ready() const noexcept { return producer_.self_.done(); }

  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> consumer) {
    if (auto* base = base_of(consumer)) {
      producer_.context = base->context;
      consumed_ = apart_ ? nullptr : base->consumed;
    }
    return producer_.start(suspended_coroutine(consumer));
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
// next() runs the generator up to its next co_yield and returns the address of the value, or null
// at the end. If the generator does not suspend meanwhile, this is a plain call on the awaiting
// thread.
//
// - Ownership: the generator owns the value, which is valid until the following call of next(). The
//   consumer may move from it.
// - Lifetime: a generator must not be destroyed while next() is awaited.
// - Errors: an exception that leaves the generator is thrown by next(), once. After that the
//   generator is at its end.
//
// The items that a generator consumes through next() determine the lineage of the value that it
// yields next. `co_await generator.next().held()` instead returns the value together with its
// lineage, as a std::optional<held<T>>, for stages that yield it later; see held.hpp.
template <class T>
class [[nodiscard]] async_generator : public detail::generator {
 public:
  class promise_type;
  class next_awaiter;
  class held_awaiter;
  using value_type = T;

  // For lade itself: adds the type to a generator of addresses, whose values must be of type T.
  template <std::same_as<detail::generator> Untyped>
  explicit async_generator(Untyped values) noexcept : generator(std::move(values)) {}

  // Throws error(invalid_argument) if the generator has been moved from.
  [[nodiscard]] next_awaiter next() { return next_awaiter(generator::next()); }

 private:
  using generator::generator;
};

namespace detail {

// Yielded by a source: `co_yield at(position, value)`.
template <class T>
struct positioned {
  std::uint64_t position;
  T& value;
};

// Yielded by a stage that kept the lineage of the item itself.
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
                  "GCC 12 destroys an aggregate built inside co_yield twice: add a constructor "
                  "to the type, or yield a named object without std::move.");
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

  // For stages that hold items back: the lineage of this value is not added to the next value that
  // the awaiting generator yields.
  next_awaiter apart() && noexcept {
    this->set_apart();
    return *this;
  }

  // Defers a failure, for stages that hold items back. If the generator throws, the await returns
  // null and stores the exception in `failure`; the caller rethrows it once it has yielded the
  // items that it holds. If the awaiting coroutine is asked to stop, the await throws instead,
  // since nobody needs those items any more.
  next_awaiter deferring(std::exception_ptr& failure) && noexcept {
    this->defer(failure);
    return *this;
  }

  // Moves the value out, together with its lineage.
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

namespace detail {

template <class T>
constexpr bool is_async_generator = false;
template <class T>
constexpr bool is_async_generator<async_generator<T>> = true;

}  // namespace detail

}  // namespace lade
