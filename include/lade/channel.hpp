// A bounded queue between coroutines.

#pragma once

#include <lade/detail/common/gcc12.hpp>
#include <lade/detail/coroutines/mutex.hpp>
#include <lade/detail/coroutines/waiter.hpp>
#include <lade/error.hpp>
#include <lade/support/require.hpp>

#include <coroutine>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace lade {

// A bounded FIFO queue. Any number of coroutines may push and pop, on any threads.
//
// A push to a full channel suspends the producer until the channel is half empty: one wake-up then
// serves many values.
template <class T>
class channel {
 public:
  class push_awaiter;
  class pop_awaiter;
  class wanted_awaiter;

  // `capacity`: the largest number of values in the channel; 0 counts as 1. Throws
  // error(invalid_argument) if it exceeds 1,073,741,824.
  explicit channel(std::size_t capacity) {
    support::require_count("make a channel", "capacity", capacity,
                           {.most = support::most_in_batch});
    ring_ = std::vector<std::optional<T>>(capacity ? capacity : 1);
  }

  // Ends the process if coroutines are suspended in the channel.
  ~channel() {
    for (auto* waiting : {&producers_, &consumers_, &watching_})
      waiting->require_empty("a channel was destroyed while coroutines wait in it");
  }

  // `co_await push(value)` appends a value. Suspends while the channel is full or other producers
  // wait. Throws error(closed) if the channel is closed, and error(stopped) if the awaiting
  // coroutine is asked to stop. In both cases the value is dropped.
  [[nodiscard]] push_awaiter push(T value) {
    static_assert(detail::safe_in_await<T>,
                  "GCC 12 destroys an aggregate built inside co_await twice: add a constructor "
                  "to the type.");
    return push_awaiter(*this, std::move(value));
  }

  // `co_await pop()` removes and returns the oldest value, and suspends while the channel is empty.
  // Returns nothing if the channel is closed and empty. Throws error(stopped) if the awaiting
  // coroutine is asked to stop.
  [[nodiscard]] pop_awaiter pop() noexcept { return pop_awaiter(*this); }

  // Removes and returns the oldest value, if any. Never suspends. Any thread, also outside
  // coroutines.
  std::optional<T> try_pop();

  // For producers that make values on demand: `co_await wanted()` suspends until a consumer waits
  // for a value or the channel is closed. Throws error(stopped) if the awaiting coroutine is asked
  // to stop.
  [[nodiscard]] wanted_awaiter wanted() noexcept { return wanted_awaiter(*this); }

  // The number of values in the channel at this moment. Any thread.
  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return count_;
  }

  // Closes the channel: pushes fail, suspended ones too. Values in the channel may still be popped.
  // Any thread.
  void close();

 private:
  // Under the mutex: moves the value to the first waiting consumer, which it puts into `woken`, or
  // into the ring. Returns false if the ring is full or other producers wait already.
  bool accept(T& value, detail::listed_waiter*& woken);
  // Under the mutex: moves the oldest value to `into`. If the ring is then at most half full, moves
  // the values of waiting producers into the ring and appends these producers to `woken`. Returns
  // false if the ring is empty.
  bool provide(std::optional<T>& into, detail::wait_list& woken);
  void put(T& value) {
    auto place = first_ + count_++;
    ring_[place < ring_.size() ? place : place - ring_.size()].emplace(std::move(value));
  }

  mutable detail::mutex mutex_;
  detail::wait_list producers_;
  detail::wait_list consumers_;
  detail::wait_list watching_;
  std::vector<std::optional<T>> ring_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  bool closed_ = false;
};

template <class T>
class channel<T>::push_awaiter : private detail::waiter {
 public:
  push_awaiter(channel& to, T value) : channel_(to), value_(std::move(value)) {}

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    detail::listed_waiter* woken = nullptr;
    bool parked = park(coroutine, channel_.mutex_, channel_.producers_, [&] {
      closed_ = channel_.closed_;
      return closed_ || channel_.accept(value_, woken);
    });
    if (woken) woken->resume();
    return parked;
  }
  void await_resume() {
    finish("push to a channel");
    if (closed_) throw error(errc::closed, "push to a channel");
  }

 private:
  friend class channel;

  channel& channel_;
  T value_;
  bool closed_ = false;
};

template <class T>
class channel<T>::pop_awaiter : private detail::waiter {
 public:
  explicit pop_awaiter(channel& from) noexcept : channel_(from) {}

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    detail::wait_list woken;
    bool parked = park(coroutine, channel_.mutex_, channel_.consumers_, [&] {
      if (channel_.provide(value_, woken) || channel_.closed_) return true;
      woken.append(channel_.watching_.settle_all());
      return false;
    });
    woken.resume_all();
    return parked;
  }
  std::optional<T> await_resume() {
    finish("pop from a channel");
    return std::move(value_);
  }

 private:
  friend class channel;

  channel& channel_;
  std::optional<T> value_;
};

template <class T>
class channel<T>::wanted_awaiter : private detail::waiter {
 public:
  explicit wanted_awaiter(channel& watched) noexcept : channel_(watched) {}

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return park(coroutine, channel_.mutex_, channel_.watching_,
                [this] { return !channel_.consumers_.empty() || channel_.closed_; });
  }
  void await_resume() { finish("watch a channel"); }

 private:
  channel& channel_;
};

template <class T>
bool channel<T>::accept(T& value, detail::listed_waiter*& woken) {
  if (auto* consumer = consumers_.settle_first()) {
    static_cast<pop_awaiter*>(consumer)->value_.emplace(std::move(value));
    woken = consumer;
    return true;
  }
  if (count_ == ring_.size() || !producers_.empty()) return false;
  put(value);
  return true;
}

template <class T>
bool channel<T>::provide(std::optional<T>& into, detail::wait_list& woken) {
  if (count_ == 0) return false;
  auto& oldest = ring_[first_];
  into.emplace(std::move(*oldest));
  oldest.reset();
  if (++first_ == ring_.size()) first_ = 0;
  --count_;
  if (producers_.empty() || count_ > ring_.size() / 2) return true;
  while (count_ < ring_.size()) {
    auto* producer = producers_.settle_first();
    if (!producer) break;
    put(static_cast<push_awaiter*>(producer)->value_);
    woken.push_back(*producer);
  }
  return true;
}

template <class T>
std::optional<T> channel<T>::try_pop() {
  std::optional<T> oldest;
  detail::wait_list woken;
  {
    std::lock_guard lock(mutex_);
    provide(oldest, woken);
  }
  woken.resume_all();
  return oldest;
}

template <class T>
void channel<T>::close() {
  detail::wait_list producers;
  detail::wait_list consumers;
  detail::wait_list watching;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    consumers = consumers_.settle_all();
    watching = watching_.settle_all();
    while (auto* producer = producers_.settle_first()) {
      static_cast<push_awaiter*>(producer)->closed_ = true;
      producers.push_back(*producer);
    }
  }
  producers.resume_all();
  consumers.resume_all();
  watching.resume_all();
}

}  // namespace lade
