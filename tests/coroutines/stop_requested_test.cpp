#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/stop_requested.hpp>

#include "../support/pipelines.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace lade::stop_requested_test {

using test::numbers;

// A function that ends for no other reason than a stop, from the second item on.
static int work_until_stopped(int item, std::atomic<int>& started) {
  if (item == 0) return item;
  ++started;
  while (!stop_requested()) std::this_thread::yield();
  throw error(errc::stopped, "work");
}

static void expect_that_a_stop_ends_calls(unsigned concurrency) {
  runtime runtime({.threads = 2});
  std::atomic<int> started = 0;
  auto items = runtime.run(from(numbers{-1}) |
                           map([&started](int item) { return work_until_stopped(item, started); },
                               {.concurrency = concurrency}));
  EXPECT_EQ(items.wait_next(), 0);
  while (started == 0) std::this_thread::yield();
  items.stop();
  EXPECT_THROW(while (items.wait_next()){}, error);
  EXPECT_TRUE(items.failures().empty());
}

TEST(StopRequested, EndsAFunctionOfAConcurrentStage) { expect_that_a_stop_ends_calls(2); }

TEST(StopRequested, EndsAFunctionThatOneWorkerCalls) { expect_that_a_stop_ends_calls(1); }

TEST(StopRequested, IsFalseOutsideOfAStage) { EXPECT_FALSE(stop_requested()); }

TEST(StopRequested, IsFalseWhileARunIsActive) {
  runtime runtime({.threads = 2});
  int stopped = 0;
  for (auto& item : runtime.run(from(numbers{50}) | map([](int) { return int(stop_requested()); })))
    stopped += item;
  EXPECT_EQ(stopped, 0);
}

}  // namespace lade::stop_requested_test
