// Coroutines for interleavings, which run the threads of a test in every order.

#pragma once

#include <lade/context.hpp>
#include <lade/detail/coroutines/promise.hpp>
#include <lade/error.hpp>
#include <lade/task.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <stop_token>
#include <utility>

#include "interleavings.hpp"

namespace lade::test {

// A coroutine that a thread of a test starts. stop() stops all its waits.
class started : private detail::completion {
 public:
  explicit started(task<> work) : started(std::move(work), context{}) {
    context_.stop = stop_.get_token();
  }

  // Runs `work` in another context, which stop() does not stop.
  started(task<> work, context execution)
      : detail::completion{end}, context_(std::move(execution)), work_(std::move(work)) {
    root_.context = &context_;
  }
  started(const started&) = delete;

  void start() {
    if (work_.start(root_, *this) != detail::arrival::later) ended_ = true;
  }
  void stop() { stop_.request_stop(); }
  bool ended() const { return ended_; }

  // Whether it has ended without having been stopped. Rethrows its other exceptions.
  bool finished() {
    if (!ended_) return false;
    try {
      work_.take();
    } catch (const error& failure) {
      if (failure.code() != errc::stopped && failure.code() != errc::closed) throw;
      return false;
    }
    return true;
  }

 private:
  static void end(completion& self) noexcept { static_cast<started&>(self).ended_ = true; }

  std::stop_source stop_;
  context context_;
  detail::promise_base root_;
  task<> work_;
  bool ended_ = false;
};

// Runs the scenario in every order of its locks. Fails if there is only one order, because then
// nothing is interleaved. Returns the number of orders.
template <class Scenario>
std::size_t in_all_orders(Scenario scenario) {
  auto orders = interleaving::run_all(scenario);
  EXPECT_GT(orders, 1u);
  return orders;
}

// The same for every order of its locks with at most `preemptions`: for scenarios with too many
// orders. A switch at a wait is no preemption. Most faults of synchronisation need two at most.
template <class Scenario>
std::size_t in_orders_of_preemptions(std::size_t preemptions, Scenario scenario) {
  auto orders = interleaving::run_all(scenario, interleaving::points::locks, preemptions);
  EXPECT_GT(orders, 1u);
  return orders;
}

// The same for every order of its locks and its accesses to atomic variables.
template <class Scenario>
std::size_t in_all_orders_of_atomics(Scenario scenario) {
  auto orders = interleaving::run_all(scenario, interleaving::points::locks_and_atomics);
  EXPECT_GT(orders, 1u);
  return orders;
}

}  // namespace lade::test
