// What the thread of a reactor is doing, for the watchdog.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

namespace lade::detail {

class stage_counters;

// The thread makes one step after the other: a job, a completion, a timer. Each should be short,
// since nothing else happens on the thread meanwhile. One thread makes the steps; any thread may
// ask for those that take long.
class activity {
 public:
  // How long a step may take.
  static constexpr std::chrono::milliseconds allowed{50};

  struct step {
    const stage_counters* stage;  // whose coroutine it runs; perhaps gone; null if there is none
    const char* doing;
    std::chrono::nanoseconds lasted;
  };

  // The thread's part. `name` says of the current step whose it is; a text that is never freed.
  void enter_thread() noexcept;
  void begin() noexcept;
  void name(const char* doing, const stage_counters* stage) noexcept {
    doing_.store(doing, std::memory_order_relaxed);
    stage_.store(stage, std::memory_order_relaxed);
  }
  void end() noexcept;

  // A step that takes longer than it may, or has since the last call. Time for which the thread was
  // ready and the system ran others does not count. One thread at a time.
  std::optional<step> take_long() noexcept;

 private:
  step step_at(std::int64_t began, std::int64_t now) const noexcept;
  std::optional<step> take() noexcept;
  std::int64_t not_scheduled() const noexcept;

  std::atomic<std::int64_t> began_ = 0;  // the current step, in ns of a clock; 0 if there is none
  std::atomic<const char*> doing_ = nullptr;
  std::atomic<const stage_counters*> stage_ = nullptr;
  std::atomic<int> thread_ = 0;
  std::mutex mutex_;
  std::optional<step> ended_;       // the longest since the last call that took too long
  std::int64_t not_scheduled_ = 0;  // at the last call, in ns
};

// That of the reactor whose thread this is; null elsewhere.
extern constinit thread_local activity* this_activity;

// Names the step that this thread makes, if it is a reactor's.
inline void name_step(const char* doing, const stage_counters* stage) noexcept {
  if (this_activity) this_activity->name(doing, stage);
}

}  // namespace lade::detail
