// run_clock: the times of a run, for its statistics.

#pragma once

#include <lade/detail/observability/stage_counters.hpp>

#include <atomic>
#include <chrono>

namespace lade::detail {

// When a run began, delivered its first item, and ended. Any thread.
class run_clock {
 public:
  // Returns the time of the call, from which the other times count.
  clock::time_point begin() noexcept {
    auto now = clock::now();
    began_.store(now, std::memory_order_relaxed);
    return now;
  }

  // Must be called for each delivered item, by one thread at a time.
  void record_delivery() noexcept {
    if (first_item_.load(std::memory_order_relaxed) == never)
      first_item_.store(clock::now(), std::memory_order_relaxed);
  }

  // Stops the clock. Further calls do nothing.
  void end() noexcept {
    auto expected = never;
    ended_.compare_exchange_strong(expected, clock::now(), std::memory_order_relaxed);
  }

  // The time of the call, or of the end of the run.
  clock::time_point now() const noexcept {
    auto ended = ended_.load(std::memory_order_relaxed);
    return ended == never ? clock::now() : ended;
  }

  std::chrono::nanoseconds elapsed(clock::time_point now) const noexcept {
    return now - began_.load(std::memory_order_relaxed);
  }

  // The time from the beginning to the first delivery; 0 before it.
  std::chrono::nanoseconds first_item() const noexcept {
    auto first = first_item_.load(std::memory_order_relaxed);
    return first == never ? std::chrono::nanoseconds() : elapsed(first);
  }

 private:
  static constexpr auto never = clock::time_point();

  std::atomic<clock::time_point> began_ = clock::now();
  std::atomic<clock::time_point> first_item_ = never;
  std::atomic<clock::time_point> ended_ = never;
};

}  // namespace lade::detail
