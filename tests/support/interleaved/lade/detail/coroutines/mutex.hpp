// Stands in for the header of this name in include/: the same primitives, driven by a scheduler
// that runs every interleaving of a test's threads.

#pragma once

#include "../../../../interleavings.hpp"

#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace lade::detail {

class mutex {
 public:
  void lock() {
    test::interleaving::wait_while(locked_);
    locked_ = true;
  }
  void unlock() noexcept { locked_ = false; }

 private:
  bool locked_ = false;
};

class condition_variable {
 public:
  template <class Predicate>
  void wait(std::unique_lock<mutex>& lock, Predicate holds) {
    while (!holds()) {
      waiting_ = true;
      lock.unlock();
      test::interleaving::wait_while(waiting_);
      lock.lock();
    }
  }
  template <class Duration, class Predicate>
  void wait_for(std::unique_lock<mutex>& lock, Duration, Predicate holds) {
    wait(lock, holds);
  }
  void notify_all() noexcept { waiting_ = false; }

 private:
  bool waiting_ = false;
};

// As that of the standard library: the destructor waits for a call on another thread, and returns
// at once inside of the call.
template <class F>
class stop_callback {
 public:
  stop_callback(const std::stop_token& token, F function)
      : function_(std::move(function)), callback_(token, call{*this}) {}
  stop_callback(const stop_callback&) = delete;
  ~stop_callback() {
    if (!calling_) return;
    if (caller_ == std::this_thread::get_id())
      *destroyed_ = true;
    else
      test::interleaving::wait_while(calling_);
  }

 private:
  struct call {
    stop_callback& of;
    void operator()() const noexcept { of.make_call(); }
  };

  void make_call() noexcept {
    bool destroyed = false;
    destroyed_ = &destroyed;
    caller_ = std::this_thread::get_id();
    calling_ = true;
    function_();
    if (!destroyed) calling_ = false;
  }

  F function_;
  bool calling_ = false;
  std::thread::id caller_;
  bool* destroyed_ = nullptr;
  std::stop_callback<call> callback_;
};

}  // namespace lade::detail
