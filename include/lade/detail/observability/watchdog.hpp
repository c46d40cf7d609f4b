// watchdog: a thread that detects blocked reactors and stalled runs.

#pragma once

#include <lade/detail/runtime/activity.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace lade::detail {

// The interface of an object that the watchdog looks at. Both functions are called on its thread.
class watched {
 public:
  // The longest time between two looks.
  virtual std::chrono::nanoseconds interval() const noexcept = 0;

  // `blocking`: the steps of reactors that have taken too long since the last look.
  virtual void look(std::span<const activity::step> blocking) noexcept = 0;

 protected:
  ~watched() = default;
};

// Looks at the reactors of a runtime four times a second, or more often if a watched object
// requires it. Its thread is started for the first object and sleeps while there is none.
//
// - Threads: any thread may call all members.
// - Lock: mutex_ guards all members. It is released during a look, so remove() waits until the
//   object is not being looked at.
// - Every blocking step is shown to all objects: remove() takes the latest steps for the removed
//   object, and keeps them for the others in to_be_shown_.
class watchdog {
 public:
  watchdog() = default;
  watchdog(const watchdog&) = delete;
  ~watchdog();

  // Adds a reactor, whose activity must outlive the watchdog.
  void watch(activity& reactor);

  void add(watched& added);

  // Blocks until the object is not being looked at. Returns the blocking steps that it has not been
  // shown. Must not be called within look().
  std::vector<activity::step> remove(watched& gone);

 private:
  void work() noexcept;
  std::vector<activity::step> blocking_steps();  // new ones and to_be_shown_; the mutex is held
  std::chrono::nanoseconds interval() const noexcept;

  std::mutex mutex_;
  std::vector<activity*> reactors_;
  std::condition_variable changed_;
  std::vector<watched*> watched_;
  watched* looked_at_ = nullptr;
  std::vector<activity::step> to_be_shown_;  // steps for the next look
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace lade::detail
