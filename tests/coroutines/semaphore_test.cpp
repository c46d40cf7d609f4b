#include <lade/error.hpp>
#include <lade/scope.hpp>
#include <lade/semaphore.hpp>
#include <lade/sync_wait.hpp>
#include <lade/thread_pool.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <memory>
#include <stop_token>
#include <vector>

#include "../support/coroutines.hpp"

namespace lade::semaphore_test {

using testing::ElementsAre;
using testing_support::code_of;
using testing_support::in;
using testing_support::stopped_by;

static task<> join(scope& children) { co_await children.join(); }

static task<> acquire(semaphore& permits, std::vector<int>& order, int number) {
  co_await permits.acquire();
  order.push_back(number);
}

TEST(Semaphore, GrantsAsManyPermitsAsItHas) {
  semaphore permits(2);
  EXPECT_TRUE(permits.try_acquire());
  EXPECT_TRUE(permits.try_acquire());
  EXPECT_FALSE(permits.try_acquire());
  permits.release(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(permits.try_acquire());
  EXPECT_FALSE(permits.try_acquire());
}

TEST(Semaphore, MorePermitsThanCanBeCountedAreRefused) {
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  semaphore permits(1);
  EXPECT_THAT([&] { permits.release(most); },
              testing::ThrowsMessage<error>(
                  "release a semaphore: 18446744073709551615 permits and those that are free are "
                  "too many"));
  EXPECT_TRUE(permits.try_acquire());
  EXPECT_FALSE(permits.try_acquire());
  permits.release(most);
  EXPECT_TRUE(permits.try_acquire());
}

TEST(Semaphore, ServesWaitersInOrder) {
  semaphore permits(1);
  std::vector<int> order;
  scope children;
  for (int i = 0; i < 4; ++i) children.start(acquire(permits, order, i));
  EXPECT_THAT(order, ElementsAre(0));
  permits.release();
  EXPECT_THAT(order, ElementsAre(0, 1));
  permits.release(2);
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(permits.try_acquire());
  sync_wait(join(children));
}

TEST(Semaphore, AStoppedWaiterHasNoPermit) {
  semaphore permits(0);
  std::vector<int> order;
  std::stop_source source;
  scope children;
  children.start(acquire(permits, order, 0));
  children.start(in(stopped_by(source), acquire(permits, order, 1)));
  children.start(acquire(permits, order, 2));
  auto stopped = code_of([&] {
    scope other;
    other.start(in(stopped_by(source), acquire(permits, order, 3)));
    source.request_stop();
    sync_wait(join(other));
  });
  EXPECT_EQ(stopped, errc::stopped);
  permits.release(3);
  // The failure of one child has stopped its siblings.
  EXPECT_EQ(code_of([&] { sync_wait(join(children)); }), errc::stopped);
  EXPECT_TRUE(order.empty());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(permits.try_acquire());
  EXPECT_FALSE(permits.try_acquire());
}

static task<> acquire_or_stop(semaphore& permits, std::atomic<int>& acquired) {
  try {
    co_await permits.acquire();
    ++acquired;
  } catch (const error&) {}
}

TEST(Semaphore, AStopThatRacesWithAReleaseLosesNoPermit) {
  constexpr int rounds = 2000;
  semaphore permits(0);
  std::atomic<int> acquired = 0;
  std::vector<std::stop_source> sources(rounds);
  scope children;
  for (auto& source : sources)
    children.start(in(stopped_by(source), acquire_or_stop(permits, acquired)));
  testing_support::race(
      rounds, [&](int) { permits.release(); },
      [&](int i) { sources[static_cast<std::size_t>(i)].request_stop(); });
  sync_wait(join(children));
  int left = 0;
  while (permits.try_acquire()) ++left;
  EXPECT_EQ(acquired + left, rounds);
}

static task<> use(semaphore& permits, std::atomic<int>& inside, std::atomic<int>& most, int times) {
  for (int i = 0; i < times; ++i) {
    co_await permits.acquire();
    int now = ++inside;
    int before = most;
    while (before < now && !most.compare_exchange_weak(before, now)) {}
    --inside;
    permits.release();
  }
}

TEST(Semaphore, LimitsConcurrency) {
  thread_pool pool({.threads = 3});
  semaphore permits(2);
  std::atomic<int> inside = 0, most = 0;
  scope children(testing_support::at(pool));
  for (int i = 0; i < 6; ++i) children.start(use(permits, inside, most, 1000));
  sync_wait(join(children));
  EXPECT_LE(most, 2);
  EXPECT_TRUE(permits.try_acquire());
  EXPECT_TRUE(permits.try_acquire());
  EXPECT_FALSE(permits.try_acquire());
}

static task<> acquire_for_ever(semaphore& permits) { co_await permits.acquire(); }

TEST(SemaphoreDeathTest, DestructionWithWaitersEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto destroy = [] {
    scope waiting;
    auto permits = std::make_unique<semaphore>(0);
    waiting.start(acquire_for_ever(*permits));
    permits.reset();
  };
  EXPECT_DEATH(destroy(), "lade: a semaphore was destroyed while coroutines wait for it");
}

}  // namespace lade::semaphore_test
