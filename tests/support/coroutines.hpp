// Values, coroutines and threads for tests of coroutines.

#pragma once

#include <lade/context.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <coroutine>
#include <exception>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace lade::testing_support {

// A value that detects if it is destroyed twice, moved as bytes, or never destroyed. A value that
// was moved from is -1.
class counted {
 public:
  // Its destructor expects that all values made since its construction were destroyed exactly once.
  class check {
   public:
    check() : live_(counted::live_) {}
    check(const check&) = delete;
    ~check() {
      EXPECT_EQ(counted::live_, live_);
      EXPECT_EQ(counted::faults_.exchange(0), 0);
    }

   private:
    long live_;
  };

  explicit counted(int value = 0) noexcept : value_(value) { ++live_; }
  counted(const counted& other) noexcept : value_(other.value_) { ++live_; }
  counted(counted&& other) noexcept : value_(std::exchange(other.value_, -1)) { ++live_; }
  counted& operator=(counted other) noexcept {
    value_ = other.value_;
    return *this;
  }
  ~counted() {
    if (self_ != this) ++faults_;
    self_ = nullptr;
    --live_;
  }

  int value() const noexcept { return value_; }

 private:
  static inline std::atomic<long> live_ = 0;
  static inline std::atomic<long> faults_ = 0;

  int value_;
  const counted* volatile self_ = this;
};

// Threads outside of lade's executors: `co_await threads.next()` resumes on a new thread.
class other_threads {
 public:
  class awaiter {
   public:
    explicit awaiter(other_threads& threads) noexcept : threads_(threads) {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> coroutine) { threads_.start(coroutine); }
    void await_resume() const noexcept {}

   private:
    other_threads& threads_;
  };

  other_threads() = default;
  other_threads(const other_threads&) = delete;
  ~other_threads() {
    while (true) {
      std::thread last;
      {
        std::lock_guard lock(mutex_);
        if (threads_.empty()) return;
        last = std::move(threads_.back());
        threads_.pop_back();
      }
      last.join();
    }
  }

  awaiter next() noexcept { return awaiter(*this); }

 private:
  void start(std::coroutine_handle<> coroutine) {
    std::lock_guard lock(mutex_);
    threads_.emplace_back([coroutine] { coroutine.resume(); });
  }

  std::mutex mutex_;
  std::vector<std::thread> threads_;
};

// A coroutine without lade's promise: it starts when it is called, and is destroyed when it ends.
struct foreign_coroutine {
  struct promise_type {
    foreign_coroutine get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

// Awaits `work` in the context `execution`.
template <class T>
task<T> in(context execution, task<T> work) {
  co_return co_await with_context(execution, std::move(work));
}

inline context stopped_by(const std::stop_source& source) {
  context execution;
  execution.stop = source.get_token();
  return execution;
}

inline context at(detail::executor& home) {
  context execution;
  execution.home = &home;
  return execution;
}

// Returns the code of the error that `function` throws, or an empty code if it throws nothing.
template <class F>
std::error_code code_of(F function) {
  try {
    function();
  } catch (const std::system_error& failure) {
    return failure.code();
  }
  return {};
}

// Calls first(i) and second(i) for i from 0 to n - 1, on two threads at about the same time.
template <class F, class G>
void race(int n, F first, G second) {
  std::atomic<int> arrived = 0;
  auto run = [&arrived, n](auto& function) {
    for (int i = 0; i < n; ++i) {
      ++arrived;
      while (arrived < 2 * (i + 1)) std::this_thread::yield();
      function(i);
    }
  };
  std::thread other([&] { run(second); });
  run(first);
  other.join();
}

}  // namespace lade::testing_support
