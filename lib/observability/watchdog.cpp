#include <lade/detail/runtime/start_thread.hpp>

#include <lade/detail/observability/watchdog.hpp>

#include <algorithm>
#include <new>

#include <pthread.h>

namespace lade::detail {

watchdog::~watchdog() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void watchdog::watch(activity& reactor) {
  std::lock_guard lock(mutex_);
  reactors_.push_back(&reactor);
}

void watchdog::add(watched& added) {
  {
    std::lock_guard lock(mutex_);
    if (!thread_.joinable()) {
      thread_ = start_thread("the watchdog", &watchdog::work, this);
      pthread_setname_np(thread_.native_handle(), "lade-watchdog");
    }
    watched_.push_back(&added);
  }
  changed_.notify_all();
}

std::vector<activity::step> watchdog::remove(watched& gone) {
  std::unique_lock lock(mutex_);
  std::erase(watched_, &gone);
  changed_.wait(lock, [&] { return looked_at_ != &gone; });
  auto steps = blocking_steps();
  if (!watched_.empty()) to_be_shown_ = steps;
  return steps;
}

void watchdog::work() noexcept {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !watched_.empty(); });
    auto due = std::chrono::steady_clock::now() + interval();
    changed_.wait_until(lock, due, [this] { return ending_; });
    if (ending_) return;
    try {
      auto all = watched_;
      auto blocking = blocking_steps();
      for (auto* each : all) {
        if (std::ranges::find(watched_, each) == watched_.end()) continue;  // removed meanwhile
        looked_at_ = each;
        lock.unlock();
        each->look(blocking);
        lock.lock();
        looked_at_ = nullptr;
        changed_.notify_all();
      }
    } catch (const std::bad_alloc&) {  // looks again in the next interval
    }
  }
}

std::vector<activity::step> watchdog::blocking_steps() {
  auto steps = std::exchange(to_be_shown_, {});
  for (auto* each : reactors_) {
    each->wake_now();
    for (auto& step : each->take_long()) steps.push_back(step);
  }
  return steps;
}

std::chrono::nanoseconds watchdog::interval() const noexcept {
  std::chrono::nanoseconds shortest = std::chrono::milliseconds(250);
  for (auto* each : watched_) shortest = std::min(shortest, each->interval());
  return shortest;
}

}  // namespace lade::detail
