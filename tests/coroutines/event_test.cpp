#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/scope.hpp>
#include <lade/sync_wait.hpp>
#include <lade/thread_pool.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <stop_token>

#include "../support/coroutines.hpp"

namespace lade::event_test {

using testing_support::code_of;
using testing_support::in;
using testing_support::stopped_by;

static task<> join(scope& children) { co_await children.join(); }

static task<> wait_for(event& awaited, std::atomic<int>& woken) {
  co_await awaited;
  ++woken;
}

TEST(Event, DoesNotBlockOnceItIsSet) {
  event done;
  EXPECT_FALSE(done.is_set());
  done.set();
  done.set();
  EXPECT_TRUE(done.is_set());
  std::atomic<int> woken = 0;
  sync_wait(wait_for(done, woken));
  EXPECT_EQ(woken, 1);
}

TEST(Event, WakesAllWaiters) {
  event done;
  std::atomic<int> woken = 0;
  scope children;
  for (int i = 0; i < 10; ++i) children.start(wait_for(done, woken));
  EXPECT_EQ(woken, 0);
  done.set();
  EXPECT_EQ(woken, 10);
  sync_wait(join(children));
}

TEST(Event, ResumesWaitersOnTheirExecutor) {
  thread_pool pool({.threads = 1});
  event done;
  std::atomic<int> woken = 0;
  scope children(testing_support::at(pool));
  auto wait_on = [](thread_pool& home, event& awaited, std::atomic<int>& count) -> task<> {
    co_await awaited;
    if (detail::this_executor == &home) ++count;
  };
  for (int i = 0; i < 10; ++i) children.start(wait_on(pool, done, woken));
  done.set();
  sync_wait(join(children));
  EXPECT_EQ(woken, 10);
}

TEST(Event, AStopEndsTheWait) {
  event never;
  std::atomic<int> woken = 0;
  std::stop_source source;
  scope children;
  children.start(in(stopped_by(source), wait_for(never, woken)));
  source.request_stop();
  EXPECT_EQ(code_of([&] { sync_wait(join(children)); }), errc::stopped);
  EXPECT_EQ(woken, 0);
  never.set();
  EXPECT_EQ(woken, 0);
}

TEST(Event, AStoppedWaiterDoesNotWait) {
  event never;
  std::atomic<int> woken = 0;
  std::stop_source source;
  source.request_stop();
  auto code = code_of([&] { sync_wait(in(stopped_by(source), wait_for(never, woken))); });
  EXPECT_EQ(code, errc::stopped);
}

// Starts a wait on a thread of the pool.
static task<> begin_on(thread_pool& pool, context execution, task<> wait) {
  co_await continue_on(pool);
  co_await with_context(execution, std::move(wait));
}

TEST(Event, AStopMayRaceWithTheWaitAndTheSet) {
  constexpr int rounds = 1000;
  struct round {
    event awaited;
    std::stop_source source;
    std::atomic<int> woken = 0;
    scope children;
  };
  std::deque<round> rounds_made(rounds);
  thread_pool pool({.threads = 1});
  testing_support::race(
      rounds,
      [&](int i) {
        auto& now = rounds_made[static_cast<std::size_t>(i)];
        auto wait = wait_for(now.awaited, now.woken);
        now.children.start(begin_on(pool, stopped_by(now.source), std::move(wait)));
        now.awaited.set();
      },
      [&](int i) { rounds_made[static_cast<std::size_t>(i)].source.request_stop(); });
  for (auto& each : rounds_made) {
    bool stopped = code_of([&] { sync_wait(join(each.children)); }) == errc::stopped;
    EXPECT_EQ(each.woken, stopped ? 0 : 1);
  }
}

TEST(EventDeathTest, DestructionWithWaitersEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto destroy = [] {
    scope waiting;
    std::atomic<int> woken = 0;
    auto awaited = std::make_unique<event>();
    waiting.start(wait_for(*awaited, woken));
    awaited.reset();
  };
  EXPECT_DEATH(destroy(), "lade: an event was destroyed while coroutines wait for it");
}

}  // namespace lade::event_test
