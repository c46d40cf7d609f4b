// Loops of a million awaits and pipelines of a thousand stages must not use up the stack, in any
// build: also without optimisation, where compilers make no tail calls.

#include <lade/async_generator.hpp>
#include <lade/channel.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/semaphore.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>
#include <lade/when_all.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <utility>
#include <vector>

namespace lade::endless_test {

constexpr int million = 1'000'000;

static task<int> one() { co_return 1; }

static task<int> one_below() { co_return co_await one(); }

static task<int> await_tasks() {
  int sum = 0;
  for (int i = 0; i < million; ++i) sum += co_await one_below();
  co_return sum;
}

TEST(Endless, AwaitsOfFinishedTasks) { EXPECT_EQ(sync_wait(await_tasks()), million); }

static task<int> await_pairs() {
  int sum = 0;
  for (int i = 0; i < million; i += 2) {
    auto [a, b] = co_await when_all(one(), one());
    sum += a + b;
  }
  co_return sum;
}

TEST(Endless, AwaitsOfReadyChildren) { EXPECT_EQ(sync_wait(await_pairs()), million); }

static task<int> await_vectors() {
  int sum = 0;
  for (int i = 0; i < million; i += 100) {
    std::vector<task<int>> children;
    for (int k = 0; k < 100; ++k) children.push_back(one());
    for (int value : co_await when_all(std::move(children))) sum += value;
  }
  co_return sum;
}

TEST(Endless, AwaitsOfVectorsOfReadyChildren) { EXPECT_EQ(sync_wait(await_vectors()), million); }

static async_generator<int> count_up(int end) {
  for (int i = 0; i < end; ++i) co_yield i;
}

static async_generator<int> pass(async_generator<int> in) {
  while (auto item = co_await in.next()) co_yield *item;
}

static async_generator<int> every_millionth(async_generator<int> in) {
  while (auto item = co_await in.next())
    if ((*item + 1) % million == 0) co_yield *item;
}

static task<int> count(async_generator<int> in) {
  int items = 0;
  while (co_await in.next()) ++items;
  co_return items;
}

TEST(Endless, ItemsOfAChainOfGenerators) {
  EXPECT_EQ(sync_wait(count(pass(pass(count_up(million))))), million);
}

TEST(Endless, ItemsThatAFilterDrops) {
  EXPECT_EQ(sync_wait(count(every_millionth(count_up(million)))), 1);
}

static task<int> push_and_pop() {
  channel<int> places(1);
  int sum = 0;
  for (int i = 0; i < million; ++i) {
    co_await places.push(1);
    auto value = co_await places.pop();
    sum += *value;
  }
  co_return sum;
}

TEST(Endless, PushesAndPops) { EXPECT_EQ(sync_wait(push_and_pop()), million); }

static task<> produce(channel<int>& to) {
  for (int i = 0; i < million; ++i) co_await to.push(1);
  to.close();
}

static task<> consume(channel<int>& from, int& sum) {
  while (auto value = co_await from.pop()) sum += *value;
}

static task<int> through_one_place() {
  channel<int> places(1);
  int sum = 0;
  co_await when_all(produce(places), consume(places, sum));
  co_return sum;
}

// Each wakes the other for every value.
TEST(Endless, WakesOfAProducerAndAConsumer) { EXPECT_EQ(sync_wait(through_one_place()), million); }

static task<int> acquire_and_release() {
  semaphore permits(1);
  int times = 0;
  for (; times < million; ++times) {
    co_await permits.acquire();
    permits.release();
  }
  co_return times;
}

TEST(Endless, PermitsAcquiredAndReleased) { EXPECT_EQ(sync_wait(acquire_and_release()), million); }

static int add_one(int item) { return item + 1; }

TEST(Endless, StagesOfAPipeline) {
  pipeline<int> deep = from(std::vector<int>{0, 1, 2});
  for (int i = 0; i < 1000; ++i) deep = deep | map(add_one, {.concurrency = 1});
  runtime threads({.threads = 2});
  std::vector<int> items;
  for (int item : threads.run(deep)) items.push_back(item);
  EXPECT_EQ(items, (std::vector<int>{1000, 1001, 1002}));
}

TEST(Endless, ItemsOfAStageWhoseResultsAreReady) {
  constexpr int many = 100'000;
  std::vector<int> numbers(many);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::atomic<int> calls = 0;
  auto count_call = [&calls](int item) {
    if (++calls == many) calls.notify_one();
    return item;
  };
  runtime threads({.threads = 2});
  auto run = threads.run(from(numbers) | map(count_call, {.concurrency = 2, .buffer = many}));
  for (int seen = 0; (seen = calls) < many;) calls.wait(seen);
  int next = 0;
  for (int item : run) EXPECT_EQ(item, next++);
  EXPECT_EQ(next, many);
}

}  // namespace lade::endless_test
