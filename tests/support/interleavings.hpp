// Runs a test once for every order in which its threads may take their turns.

#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

namespace lade::test {

// One order of turns. One thread runs at a time, from one schedule point to the next. Schedule
// points are the start of a thread, the lock of a mutex, a wait, and an access to an atomic
// variable. The unlock of a mutex is none: the end of a turn there changes nothing that other
// threads can observe.
class interleaving {
 public:
  // Whether accesses to atomic variables are schedule points, besides locks and waits.
  enum class points : unsigned char { locks, locks_and_atomics };

  static constexpr auto unlimited = ~std::size_t{0};

  // Runs `scenario(interleaving&)` for every order with at most `preemptions` turns that end
  // although their thread can continue. Returns the number of orders.
  template <class Scenario>
  static std::size_t run_all(Scenario scenario, points where = points::locks,
                             std::size_t preemptions = unlimited) {
    std::vector<choice> choices;
    for (std::size_t orders = 1;; ++orders) {
      interleaving each(choices, where, preemptions);
      scenario(each);
      while (!choices.empty() && choices.back().taken + 1 == choices.back().options)
        choices.pop_back();
      if (choices.empty()) return orders;
      ++choices.back().taken;
    }
  }

  // Runs each function on its own thread until all have returned. Call it once.
  void run(const std::vector<std::function<void()>>& functions) {
    std::vector<std::thread> started;
    for (std::size_t i = 0; i < functions.size(); ++i)
      threads_.push_back(std::make_unique<thread>());
    for (std::size_t i = 0; i < functions.size(); ++i)
      started.emplace_back([this, i, &functions] { be(*threads_[i], functions[i]); });
    next(nullptr).turn.release();
    for (auto& each : started) each.join();
  }

  // A schedule point: blocks until the thread has a turn while the flag is not set. Returns at once
  // on a thread that belongs to no interleaving.
  static void wait_while(const bool& flag) {
    if (!here_) return;
    here_->waits_while = &flag;
    of_->end_turn();
  }

  // Before an access to an atomic variable.
  static void reach_atomic() {
    if (!here_ || of_->points_ != points::locks_and_atomics) return;
    here_->waits_while = nullptr;
    of_->end_turn();
  }

 private:
  // A schedule point at which several threads can run: their number, and the index of the chosen
  // one.
  struct choice {
    std::size_t options;
    std::size_t taken;
  };

  struct thread {
    std::binary_semaphore turn{0};
    const bool* waits_while = nullptr;
    bool ended = false;
    bool runnable() const noexcept { return !ended && !(waits_while && *waits_while); }
  };

  interleaving(std::vector<choice>& choices, points where, std::size_t preemptions)
      : choices_(choices), points_(where), preemptions_left_(preemptions) {}

  void be(thread& self, const std::function<void()>& function) {
    here_ = &self;
    of_ = this;
    self.turn.acquire();
    function();
    self.ended = true;
    if (++ended_ < threads_.size()) next(nullptr).turn.release();
  }

  void end_turn() {
    auto& self = *here_;
    auto& chosen = next(self.runnable() ? &self : nullptr);
    if (&chosen == &self) return;
    chosen.turn.release();
    self.turn.acquire();
  }

  // `current`: the thread whose turn ends, if it can continue; otherwise null.
  thread& next(thread* current) {
    if (current && preemptions_left_ == 0) return *current;
    std::vector<thread*> runnable;
    for (auto& each : threads_)
      if (each->runnable()) runnable.push_back(each.get());
    if (runnable.empty()) {
      std::fputs("all threads wait for each other\n", stderr);
      std::abort();
    }
    if (runnable.size() == 1) return *runnable.front();
    if (at_ == choices_.size()) choices_.push_back({runnable.size(), 0});
    auto& chosen = *runnable[choices_[at_++].taken];
    if (current && &chosen != current) --preemptions_left_;
    return chosen;
  }

  static inline thread_local thread* here_ = nullptr;
  static inline thread_local interleaving* of_ = nullptr;

  std::vector<choice>& choices_;
  const points points_;
  std::size_t preemptions_left_;
  std::size_t at_ = 0;
  std::vector<std::unique_ptr<thread>> threads_;
  std::size_t ended_ = 0;
};

}  // namespace lade::test
