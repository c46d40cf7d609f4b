// activity: the current step of a reactor's thread, for the watchdog.

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

// A reactor's thread makes one step after the other: a job, a completion or a timer. A step should
// be short, because it blocks everything else on the thread.
//
// - Threads: the thread of the reactor makes and names the steps. Another thread, the watchdog,
//   reads the current step and takes the long ones.
// - Lock: the current step is in atomics, so that a short step takes no lock. mutex_ guards the
//   long steps that have ended.
// - Time: from a coarse clock, accurate to a few milliseconds. A step is long if it exceeds
//   `allowed` even without the time in which the thread was runnable and the system ran others.
class activity {
 public:
  // The longest duration of a step that is not reported.
  static constexpr std::chrono::milliseconds allowed{50};

  struct step {
    std::uint64_t stage;  // number of the stage whose coroutine it runs; may have ended; 0: none
    const char* doing;
    std::chrono::nanoseconds lasted;
  };

  // For the thread of the reactor. name() describes the current step; `doing`: a text of static
  // lifetime.
  void enter_thread() noexcept;
  void begin() noexcept;
  void name(const char* doing, std::uint64_t stage) noexcept {
    doing_.store(doing, std::memory_order_relaxed);
    stage_.store(stage, std::memory_order_relaxed);
  }
  void end() noexcept;

  // Ends the current step, so that the thread can make others within it. The destructor begins a
  // new step with the same name.
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

  // For the thread of the reactor: wakes one thread that sleeps on `word`, at the end of this turn,
  // or earlier if the watchdog looks before. Holds one word: a call with another word wakes a
  // thread of the previous one at once.
  void wake_later(const futex_word* word) noexcept;

  // Wakes the thread of wake_later() now, if there is one. Any thread.
  void wake_now() noexcept;

  // Returns the long steps that have ended since the last call, at most one for each stage. Adds
  // the current step if it is long already. One thread at a time.
  std::vector<step> take_long();

 private:
  static constexpr std::size_t most_ended = 8;

  step step_at(std::int64_t began, std::int64_t now) const noexcept;
  void keep(const step& ended) noexcept;
  std::chrono::nanoseconds newly_not_scheduled() noexcept;
  std::int64_t not_scheduled() const noexcept;

  std::atomic<std::int64_t> began_ = 0;  // start of the current step in ns; 0: no step
  std::atomic<const char*> doing_ = nullptr;
  std::atomic<std::uint64_t> stage_ = 0;
  std::atomic<int> thread_ = 0;
  std::atomic<const futex_word*> to_wake_ = nullptr;
  std::mutex mutex_;                      // guards the members below
  std::array<step, most_ended> ended_{};  // the longest step of each stage that exceeded `allowed`
  std::size_t count_ended_ = 0;
  std::int64_t not_scheduled_ = 0;  // not_scheduled() at its last call, in ns
};

// The activity of the reactor whose thread this is; null on other threads.
extern constinit thread_local activity* this_activity;

// Names the current step, on the thread of a reactor. Does nothing on other threads.
inline void name_step(const char* doing, std::uint64_t stage) noexcept {
  if (this_activity) this_activity->name(doing, stage);
}

}  // namespace lade::detail
