// What the thread of a reactor is doing, for the watchdog.

#pragma once

#include <lade/detail/common/futex.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace lade::detail {

// The thread makes one step after the other: a job, a completion, a timer. Each should be short,
// since nothing else happens on the thread meanwhile. One thread makes the steps; any thread may
// ask for those that take long.
class activity {
 public:
  // How long a step may take.
  static constexpr std::chrono::milliseconds allowed{50};

  struct step {
    std::uint64_t stage;  // the number of that whose coroutine it runs, perhaps gone; 0: none
    const char* doing;
    std::chrono::nanoseconds lasted;
  };

  // The thread's part. `name` says of the current step whose it is; a text that is never freed.
  void enter_thread() noexcept;
  void begin() noexcept;
  void name(const char* doing, std::uint64_t stage) noexcept {
    doing_.store(doing, std::memory_order_relaxed);
    stage_.store(stage, std::memory_order_relaxed);
  }
  void end() noexcept;

  // Ends the current step as long as it lives: the thread makes others. What follows is a step of
  // its own, of the same name.
  class interruption {
   public:
    explicit interruption(activity& of) noexcept;
    interruption(const interruption&) = delete;
    ~interruption();

   private:
    activity& of_;
    const bool inside_;
    const char* const doing_;
    const std::uint64_t stage_;
  };

  // Has a thread that sleeps on the word woken once the thread has made the steps of this turn,
  // or when the watchdog looks, if a step takes that long.
  void wake_later(const futex_word* word) noexcept;

  // Wakes it. Any thread.
  void wake_now() noexcept;

  // The steps that have taken longer than they may since the last call, and the current one if it
  // does. Time for which the thread was ready and the system ran others does not count. One thread
  // at a time.
  std::vector<step> take_long();

 private:
  static constexpr std::size_t most_ended = 8;

  step step_at(std::int64_t began, std::int64_t now) const noexcept;
  void keep(const step& ended) noexcept;
  std::chrono::nanoseconds newly_not_scheduled() noexcept;
  std::int64_t not_scheduled() const noexcept;

  std::atomic<std::int64_t> began_ = 0;  // the current step, in ns of a clock; 0 if there is none
  std::atomic<const char*> doing_ = nullptr;
  std::atomic<std::uint64_t> stage_ = 0;
  std::atomic<int> thread_ = 0;
  std::atomic<const futex_word*> to_wake_ = nullptr;
  std::mutex mutex_;                      // guards all that follows
  std::array<step, most_ended> ended_{};  // that took too long: the longest of each stage
  std::size_t count_ended_ = 0;
  std::int64_t not_scheduled_ = 0;  // in ns, when it was asked for last
};

// That of the reactor whose thread this is; null elsewhere.
extern constinit thread_local activity* this_activity;

// Names the step that this thread makes, if it is a reactor's.
inline void name_step(const char* doing, std::uint64_t stage) noexcept {
  if (this_activity) this_activity->name(doing, stage);
}

}  // namespace lade::detail
