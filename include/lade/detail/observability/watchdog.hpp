// The thread that notices when a reactor is blocked or a run comes to nothing.

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

// What is looked at regularly, on the watchdog's thread.
class watched {
 public:
  // How often, at least.
  virtual std::chrono::nanoseconds interval() const noexcept = 0;

  // `blocking` are the steps of reactors that take too long.
  virtual void look(std::span<const activity::step> blocking) noexcept = 0;

 protected:
  ~watched() = default;
};

// Looks four times a second at the reactors of a runtime, or more often where a run wants it, from
// a thread that begins with the first run and sleeps as long as there is none. Any thread.
class watchdog {
 public:
  watchdog() = default;
  watchdog(const watchdog&) = delete;
  ~watchdog();

  // Looks at a reactor too, whose activity must outlive this.
  void watch(activity& reactor);

  void add(watched& added);

  // Returns when it is not being looked at, and will not be: with the steps that it has not been
  // shown. Not from inside of the look.
  std::vector<activity::step> remove(watched& gone);

 private:
  void work() noexcept;
  std::vector<activity::step> blocking_steps();  // and those that are to be shown
  std::chrono::nanoseconds interval() const noexcept;

  std::mutex mutex_;  // guards all that follows
  std::vector<activity*> reactors_;
  std::condition_variable changed_;
  std::vector<watched*> watched_;
  watched* looked_at_ = nullptr;
  std::vector<activity::step> to_be_shown_;  // at the next look
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace lade::detail
