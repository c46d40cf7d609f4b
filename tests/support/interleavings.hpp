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

// One order of turns. Of its threads one runs at a time, from one schedule point to the next: where
// it begins, and where it locks a mutex or waits, or accesses an atomic variable. A mutex that is
// unlocked is no schedule point: a turn that ended there would change nothing that another thread
// may look at.
class interleaving {
 public:
  // Whether accesses to atomic variables are schedule points, besides locks and waits.
  enum class points : unsigned char { locks, locks_and_atomics };

  // Runs `scenario(interleaving&)` for every order. Returns how many there are.
  template <class Scenario>
  static std::size_t run_all(Scenario scenario, points where = points::locks) {
    std::vector<choice> choices;
    for (std::size_t orders = 1;; ++orders) {
      interleaving each(choices, where);
      scenario(each);
      while (!choices.empty() && choices.back().taken + 1 == choices.back().options)
        choices.pop_back();
      if (choices.empty()) return orders;
      ++choices.back().taken;
    }
  }

  // Runs the functions, each on a thread of its own, until all have returned. Once.
  void run(const std::vector<std::function<void()>>& functions) {
    std::vector<std::thread> started;
    for (std::size_t i = 0; i < functions.size(); ++i)
      threads_.push_back(std::make_unique<thread>());
    for (std::size_t i = 0; i < functions.size(); ++i)
      started.emplace_back([this, i, &functions] { be(*threads_[i], functions[i]); });
    next().turn.release();
    for (auto& each : started) each.join();
  }

  // A schedule point: returns in a turn in which the flag is not set. Returns at once on a thread
  // that belongs to no interleaving, which runs alone.
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
  // Where several threads could go on: how many, and which of them does.
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

  interleaving(std::vector<choice>& choices, points where) : choices_(choices), points_(where) {}

  void be(thread& self, const std::function<void()>& function) {
    here_ = &self;
    of_ = this;
    self.turn.acquire();
    function();
    self.ended = true;
    if (++ended_ < threads_.size()) next().turn.release();
  }

  void end_turn() {
    auto& self = *here_;
    auto& chosen = next();
    if (&chosen == &self) return;
    chosen.turn.release();
    self.turn.acquire();
  }

  thread& next() {
    std::vector<thread*> runnable;
    for (auto& each : threads_)
      if (each->runnable()) runnable.push_back(each.get());
    if (runnable.empty()) {
      std::fputs("all threads wait for each other\n", stderr);
      std::abort();
    }
    if (runnable.size() == 1) return *runnable.front();
    if (at_ == choices_.size()) choices_.push_back({runnable.size(), 0});
    return *runnable[choices_[at_++].taken];
  }

  static inline thread_local thread* here_ = nullptr;
  static inline thread_local interleaving* of_ = nullptr;

  std::vector<choice>& choices_;
  const points points_;
  std::size_t at_ = 0;
  std::vector<std::unique_ptr<thread>> threads_;
  std::size_t ended_ = 0;
};

}  // namespace lade::test
