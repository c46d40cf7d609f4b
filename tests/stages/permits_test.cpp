#include <lade/continue_on.hpp>
#include <lade/detail/stages/permits.hpp>
#include <lade/random.hpp>
#include <lade/scope.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>
#include <lade/thread_pool.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <string>

#include "../support/pipelines.hpp"

namespace lade::permits_test {

using detail::permits;

static task<> join(scope& children) { co_await children.join(); }

// Takes permits until none is free. Returns how many there were.
static int take_all(permits& from) {
  int taken = 0;
  while (from.try_acquire()) ++taken;
  return taken;
}

TEST(Permits, FreePermitsAreAddedAndWithdrawnAtOnce) {
  permits some(4);
  EXPECT_EQ(some.most(), 4u);
  some.set_most(7);
  EXPECT_EQ(some.most(), 7u);
  some.set_most(3);
  EXPECT_EQ(take_all(some), 3);
}

TEST(Permits, PermitsInUseAreWithdrawnWhenTheyAreReleased) {
  permits some(4);
  EXPECT_EQ(take_all(some), 4);
  some.set_most(1);
  for (int i = 0; i < 3; ++i) some.release();
  EXPECT_FALSE(some.try_acquire());
  some.release();
  EXPECT_EQ(take_all(some), 1);
}

TEST(Permits, PermitsThatWereNotWithdrawnYetAreKept) {
  permits some(4);
  EXPECT_EQ(take_all(some), 4);
  some.set_most(1);
  some.release();
  some.set_most(3);
  EXPECT_EQ(take_all(some), 0);
  some.release();
  EXPECT_EQ(take_all(some), 1);
  some.set_most(5);
  EXPECT_EQ(take_all(some), 2);
}

TEST(Permits, AddedPermitsResumeCoroutinesThatWait) {
  permits some(0);
  int resumed = 0;
  auto wait = [](permits& from, int& count) -> task<> {
    co_await from.acquire();
    ++count;
  };
  scope children;
  for (int i = 0; i < 3; ++i) children.start(wait(some, resumed));
  some.set_most(2);
  EXPECT_EQ(resumed, 2);
  some.release();
  EXPECT_EQ(resumed, 3);
  sync_wait(join(children));
}

static task<> take_some(permits& from, test::occupancy& inside, thread_pool& pool,
                        std::atomic<int>& ended) {
  for (int i = 0; i < 300; ++i) {
    co_await from.acquire();
    inside.enter();
    co_await continue_on(pool);
    inside.leave();
    from.release();
  }
  ++ended;
}

TEST(Permits, NoneIsLostWhileTheirNumberChangesAtRandom) {
  constexpr std::size_t most = 8;
  constexpr int takers = 12;
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  thread_pool pool({.threads = 3});
  permits some(most);
  test::occupancy inside;
  std::atomic<int> ended = 0;
  scope children;
  for (int i = 0; i < takers; ++i) children.start(take_some(some, inside, pool, ended));
  while (ended < takers) some.set_most(1 + draw.below(most));
  sync_wait(join(children));
  EXPECT_LE(inside.most(), static_cast<int>(most));
  some.set_most(5);
  EXPECT_EQ(take_all(some), 5);
}

}  // namespace lade::permits_test
