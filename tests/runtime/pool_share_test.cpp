#include <lade/detail/runtime/pool_share.hpp>
#include <lade/thread_pool.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <utility>

namespace lade::detail::pool_share_test {

using test::occupancy;

// Runs a function once.
static job job_of(std::function<void()> call, unsigned distance = 0) {
  return {
      [](void* argument) noexcept {
        std::unique_ptr<std::function<void()>> mine(static_cast<std::function<void()>*>(argument));
        (*mine)();
      },
      new std::function<void()>(std::move(call)), distance};
}

// What happens in `begin`, on a thread of a pool with that one, and afterwards, as it is noted.
static std::string order_of(
    const std::function<void(pool_share&, thread_pool&, std::string&)>& begin) {
  std::string order;
  {
    thread_pool pool({.threads = 1});
    auto share = std::make_shared<pool_share>(pool, 1);
    pool.post(job_of([&pool, &begin, &order, share] { begin(*share, pool, order); }));
  }
  return order;
}

TEST(PoolShare, RunsNoMoreJobsAtATimeThanItHasThreads) {
  constexpr int jobs = 2000;
  thread_pool pool({.threads = 4});
  for (unsigned threads : {1u, 2u, 3u}) {
    auto share = std::make_shared<pool_share>(pool, threads);
    occupancy inside;
    std::latch left(jobs);
    for (int i = 0; i < jobs; ++i)
      share->post(job_of([&] {
        inside.enter();
        test::pause(2);
        inside.leave();
        left.count_down();
      }));
    left.wait();
    EXPECT_LE(inside.most(), static_cast<int>(threads));
  }
}

TEST(PoolShare, RunsJobsInTheOrderOfTheirArrivalAndLetsOthersGoBetween) {
  EXPECT_EQ(order_of([](pool_share& share, thread_pool& pool, std::string& order) {
              for (char name : {'a', 'b', 'c'}) share.post(job_of([&, name] { order += name; }));
              pool.post(job_of([&] { order += 'P'; }));
            }),
            "aPbc");
}

TEST(PoolShare, ItsThreadsBelongToThePoolAsWell) {
  EXPECT_EQ(order_of([](pool_share& share, thread_pool& pool, std::string& order) {
              auto note = [&] {
                order += pool.is_current() ? 'P' : '-';
                order += share.is_current() ? 'S' : '-';
              };
              share.post(job_of(note));
              pool.post(job_of(note));
            }),
            "PSP-");
}

TEST(PoolShare, AJobThatWaitsMayRunTheNext) {
  EXPECT_EQ(order_of([](pool_share& share, thread_pool& pool, std::string& order) {
              share.post(job_of([&] {
                share.post(job_of([&] { order += 'b'; }));
                pool.post(job_of([&] { order += 'P'; }));
                while (share.run_some()) order += '+';
                order += 'a';
              }));
            }),
            "b+P+a");
}

TEST(PoolShare, KnowsWhatIsNearerInItsQueueAndInThePools) {
  EXPECT_EQ(order_of([](pool_share& share, thread_pool& pool, std::string& order) {
              auto note = [&] {
                for (unsigned distance : {2u, 3u, 4u})
                  order += share.has_nearer(distance) ? 'n' : '-';
              };
              share.post(job_of([&, note] {
                note();
                share.post(job_of([] {}, 3));
                note();
                pool.post(job_of([] {}, 2));
                note();
              }));
            }),
            "-----n-nn");
}

TEST(PoolShare, HasAnIdleThreadOnlyIfItMayUseOneAndThePoolHasOne) {
  std::latch first_stands(1), second_stands(1), lifted(1);
  thread_pool pool({.threads = 2});
  auto share = std::make_shared<pool_share>(pool, 1);
  test::wait_until([&] { return share->has_idle_thread(); });
  share->post(job_of([&] {
    first_stands.count_down();
    lifted.wait();
  }));
  first_stands.wait();
  test::wait_until([&] { return pool.has_idle_thread(); });
  EXPECT_FALSE(share->has_idle_thread());
  auto other = std::make_shared<pool_share>(pool, 1);
  EXPECT_TRUE(other->has_idle_thread());
  pool.post(job_of([&] {
    second_stands.count_down();
    lifted.wait();
  }));
  second_stands.wait();
  EXPECT_FALSE(other->has_idle_thread());
  lifted.count_down();
}

TEST(PoolShare, MayBeDestroyedByItsLastJob) {
  thread_pool pool({.threads = 2});
  for (int i = 0; i < 500; ++i) {
    auto share = std::make_shared<pool_share>(pool, 1);
    auto* kept = share.get();
    kept->post(job_of([share = std::move(share)] {}));
  }
}

}  // namespace lade::detail::pool_share_test
