#include <lade/batch.hpp>
#include <lade/bucket.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/cache.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/draw.hpp>
#include <lade/event.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/from_shards.hpp>
#include <lade/item_order.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/pad.hpp>
#include <lade/random.hpp>
#include <lade/route.hpp>
#include <lade/route_batches.hpp>
#include <lade/run.hpp>
#include <lade/sample.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/sleep.hpp>
#include <lade/tee.hpp>
#include <lade/tensor.hpp>
#include <lade/this_context.hpp>
#include <lade/through.hpp>
#include <lade/when_all.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace lade::run_test {

using namespace std::chrono_literals;
using test::collect;
using test::numbers;
using test::up_to;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

TEST(Run, DeliversEveryItemInAnOrdinaryLoop) {
  runtime runtime({.threads = 2});
  auto doubled = from(up_to(100)) | map([](int i) { return 2 * i; });
  int expected = 0;
  for (auto& item : runtime.run(doubled)) EXPECT_EQ(item, 2 * expected++);
  EXPECT_EQ(expected, 100);
}

// Takes at most `most` items in a loop.
static void take_in_a_loop(run<int>& items, std::uint64_t most, std::vector<int>& taken) {
  for (auto& item : items) {
    taken.push_back(item);
    if (--most == 0) break;
  }
}

TEST(Run, ConsecutiveLoopsTakeEveryItemOnce) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime runtime({.threads = 3});
  for (unsigned concurrency : {1u, 4u}) {
    auto items =
        runtime.run(from(up_to(500)) | map([](int i) { return i; }, {.concurrency = concurrency}));
    std::vector<int> taken;
    std::size_t before = 0;
    do {
      before = taken.size();
      take_in_a_loop(items, 1 + draw.below(40), taken);
      EXPECT_EQ(items.statistics().delivered, taken.size());
      if (auto item = draw.below(3) ? std::nullopt : items.wait_next()) taken.push_back(*item);
    } while (taken.size() > before);
    EXPECT_EQ(taken, up_to(500));
    EXPECT_FALSE(items.wait_next());
  }
}

TEST(Run, ALoopBehindOneThatWasLeftEndsWithTheFailure) {
  runtime runtime({.threads = 2});
  auto refuse = [](int i) { return i < 6 ? i : throw std::runtime_error("no"); };
  auto items = runtime.run(from(up_to(9)) | map(refuse, {.concurrency = 2}));
  std::vector<int> taken;
  take_in_a_loop(items, 2, taken);
  take_in_a_loop(items, 3, taken);
  EXPECT_THAT([&] { take_in_a_loop(items, 9, taken); },
              ThrowsMessage<stage_error>(HasSubstr("map (6): no")));
  EXPECT_EQ(taken, up_to(6));
  take_in_a_loop(items, 9, taken);
  EXPECT_EQ(taken, up_to(6));
}

TEST(Run, StaysAtItsEnd) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(up_to(2)));
  while (items.wait_next()) {}
  EXPECT_FALSE(items.wait_next());
  EXPECT_FALSE(items.wait_next());
}

// Cannot be moved on one thread.
struct moved_elsewhere {
  static inline std::atomic<std::thread::id> refused = std::thread::id();

  explicit moved_elsewhere(int number) : value(number) {}
  moved_elsewhere(moved_elsewhere&& other) : value(other.value) {
    if (std::this_thread::get_id() == refused.load()) throw std::runtime_error("moved");
  }
  moved_elsewhere& operator=(moved_elsewhere&&) = default;

  int value;
};

TEST(Run, ContinuesAfterItemsWhoseMoveThrows) {
  runtime runtime({.threads = 1});
  auto made = from(numbers{-1}) | map([](int i) { return moved_elsewhere(i); });
  auto items = runtime.run(made);
  moved_elsewhere::refused = std::this_thread::get_id();
  int refused = 0;
  while (refused < 10) try {
      items.wait_next();
    } catch (const std::runtime_error&) {
      ++refused;
    }
}

TEST(Run, IsAtItsEndAfterAFailure) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(up_to(2)) | map([](int) -> int { throw 1; }));
  EXPECT_THROW(items.wait_next(), stage_error);
  EXPECT_FALSE(items.wait_next());
}

TEST(Run, OfAnEmptySourceIsEmpty) {
  runtime runtime({.threads = 2});
  EXPECT_TRUE(collect(runtime, from(up_to(0)) | map([](int i) { return i; })).empty());
}

TEST(Run, DestroyedBeforeAnItemIsTakenCallsNothingAfterwards) {
  for (int round = 0; round < 50; ++round) {
    runtime runtime({.threads = 2});
    std::atomic<bool> destroyed = false;
    std::atomic<bool> late = false;
    auto endless = from(numbers{-1}) |
                   map(
                       [&](int i) {
                         if (destroyed) late = true;
                         return i;
                       },
                       {.concurrency = 4}) |
                   prefetch(3);
    {
      auto items = runtime.run(endless);
      test::pause(round);
    }
    destroyed = true;
    test::pause(5);
    EXPECT_FALSE(late);
  }
}

TEST(Run, LeavingTheLoopStopsAllFunctions) {
  runtime runtime({.threads = 2});
  for (int round = 0; round < 50; ++round) {
    test::occupancy functions;
    std::atomic<int> calls = 0;
    auto endless = from(numbers{-1}) | map(
                                           [&](int i) {
                                             functions.enter();
                                             ++calls;
                                             test::pause(i % 3);
                                             functions.leave();
                                             return i;
                                           },
                                           {.concurrency = 4});
    for (auto& item : runtime.run(endless))
      if (item == round) break;
    EXPECT_EQ(functions.inside(), 0);
    auto before = calls.load();
    test::pause(5);
    EXPECT_EQ(calls, before);
  }
}

static task<int> sleep_from(int first, int item) {
  if (item >= first) co_await sleep(std::chrono::hours(10));
  co_return item;
}

// Notes when it is destroyed.
class closure {
 public:
  explicit closure(std::atomic<bool>& gone) : gone_(&gone) {}
  closure(closure&& other) noexcept : gone_(std::exchange(other.gone_, nullptr)) {}
  ~closure() {
    if (gone_) *gone_ = true;
  }
  std::atomic<bool>& gone() const { return *gone_; }

 private:
  std::atomic<bool>* gone_;
};

TEST(Run, ClosuresOutliveTheCoroutinesThatTheyMake) {
  runtime runtime({.threads = 3});
  std::atomic<int> orphans = 0;
  for (int round = 0; round < 200; ++round) {
    std::atomic<bool> source_gone = false, stage_gone = false;
    auto count = [held = closure(source_gone), &orphans]() -> async_generator<int> {
      auto& gone = held.gone();
      auto& late = orphans;
      for (int i = 0;; ++i) {
        if (gone) ++late;
        co_yield i;
      }
    };
    auto pass = [held = closure(stage_gone),
                 &orphans](async_generator<int> in) -> async_generator<int> {
      auto& gone = held.gone();
      auto& late = orphans;
      while (auto* item = co_await in.next()) {
        if (gone) ++late;
        co_yield *item;
      }
    };
    int taken = 0;
    for (int item : runtime.run(from(std::move(count)) | through(std::move(pass)) |
                                map([](int i) { return i; }, {.concurrency = 2})))
      if (item >= 0 && ++taken == 3) break;
    EXPECT_TRUE(source_gone);
    EXPECT_TRUE(stage_gone);
  }
  EXPECT_EQ(orphans, 0);
}

TEST(Run, LeavingTheLoopCancelsSleepsOfHours) {
  runtime runtime({.threads = 2});
  auto sleepy = from(numbers{-1}) |
                map([](int i) { return sleep_from(10, i); }, {.concurrency = 64}) |
                map([](int i) { return i; }, {.concurrency = 2});
  for (int last : {0, 5, 9})
    for (auto& item : runtime.run(sleepy))
      if (item == last) break;
}

TEST(Run, WhatAStopInterruptsIsNoFailure) {
  runtime runtime({.threads = 2});
  auto sleepy = from(numbers{-1}) | map([](int i) { return sleep_from(1, i); },
                                        {.concurrency = 8, .on_error = on_error::skip});
  auto items = runtime.run(sleepy);
  EXPECT_EQ(items.wait_next(), 0);
  items.stop();
  EXPECT_THROW(while (items.wait_next()){}, error);
  EXPECT_TRUE(items.failures().empty());
}

TEST(Run, StopFromAnotherThreadEndsTheWait) {
  runtime runtime({.threads = 2});
  for (int round = 0; round < 50; ++round) {
    auto items = runtime.run(from(numbers{-1}) |
                             map([](int i) { return sleep_from(5, i); }, {.concurrency = 8}));
    std::thread stopper([&] {
      test::pause(round);
      items.stop();
    });
    try {
      while (items.wait_next()) {}
      ADD_FAILURE() << "ended without a failure";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::stopped) << e.what();
    }
    stopper.join();
    EXPECT_FALSE(items.wait_next());
  }
}

// Stops a run from several threads at once, many times each.
static void stop_many_times(run<int>& items) {
  std::vector<std::jthread> stoppers;
  for (int i = 0; i < 4; ++i)
    stoppers.emplace_back([&items] {
      for (int time = 0; time < 20; ++time) items.stop();
    });
}

TEST(Run, MayBeStoppedAnyNumberOfTimesFromSeveralThreads) {
  runtime runtime({.threads = 2});
  auto sleepy = from(numbers{-1}) | map([](int i) { return sleep_from(1, i); }, {.concurrency = 8});
  for (int round = 0; round < 20; ++round) {
    auto items = runtime.run(sleepy);
    EXPECT_EQ(items.wait_next(), 0);
    stop_many_times(items);
    EXPECT_THAT([&] { items.wait_next(); }, ThrowsMessage<error>("run: stopped"));
    stop_many_times(items);
    EXPECT_FALSE(items.wait_next());
  }
}

TEST(Run, AStopAfterItsEndHasNoEffect) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(up_to(3)) | map([](int i) { return i; }, {.concurrency = 2}));
  EXPECT_THAT(collect(items), ElementsAre(0, 1, 2));
  stop_many_times(items);
  EXPECT_FALSE(items.wait_next());
  EXPECT_TRUE(items.failures().empty());
}

TEST(Run, AStopAfterAFailureLeavesTheFailure) {
  runtime runtime({.threads = 2});
  auto refuse = [](int i) {
    return i < 2 ? i : throw std::runtime_error("no " + std::to_string(i));
  };
  auto items = runtime.run(from(up_to(5)) | map(refuse, {.concurrency = 1}));
  test::wait_until([&] { return !items.failures().empty(); });
  stop_many_times(items);
  EXPECT_EQ(items.wait_next(), 0);
  EXPECT_EQ(items.wait_next(), 1);
  EXPECT_THAT([&] { items.wait_next(); }, ThrowsMessage<stage_error>("map (2): no 2"));
  stop_many_times(items);
  EXPECT_FALSE(items.wait_next());
}

// 0, 1, 2, ... up to below `end`; then waits for what never happens.
static async_generator<int> then_wait(int end, std::atomic<bool>& waiting) {
  event never;
  for (int i = 0; i < end; ++i) {
    int item = i;
    co_yield item;
  }
  waiting = true;
  co_await never;
}

TEST(Run, WhatIsReadyWhenItIsStoppedMayStillBeTaken) {
  runtime runtime({.threads = 2});
  std::atomic<bool> waiting = false;
  auto items = runtime.run(from([&] { return then_wait(4, waiting); }), {.ready = 4});
  test::wait_until([&] { return waiting.load(); });
  items.stop();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(items.wait_next(), i);
  try {
    items.wait_next();
    ADD_FAILURE() << "ended without a failure";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::stopped) << e.what();
  }
  EXPECT_FALSE(items.wait_next());
}

static async_generator<int> then_sleep(int end, std::atomic<bool>& waiting) {
  for (int i = 0; i < end; ++i) {
    int item = i;
    co_yield item;
  }
  waiting = true;
  co_await sleep(std::chrono::hours(10));
}

TEST(Run, AStopEndsASourceThatWaits) {
  runtime runtime({.threads = 2});
  for (auto* source : {then_wait, then_sleep})
    for (unsigned concurrency : {1u, 3u}) {
      std::atomic<bool> waiting = false;
      auto items = runtime.run(from([&] { return source(1, waiting); }) |
                               map([](int i) { return i; }, {.concurrency = concurrency}));
      EXPECT_EQ(items.wait_next(), 0);
      test::wait_until([&] { return waiting.load(); });
      items.stop();
      EXPECT_THAT([&] { items.wait_next(); }, ThrowsMessage<error>("run: stopped"));
      EXPECT_TRUE(items.failures().empty());
    }
}

// Counts how often it is destroyed.
class closing {
 public:
  explicit closing(std::atomic<int>& times) : times_(times) {}
  closing(const closing&) = delete;
  ~closing() { ++times_; }

 private:
  std::atomic<int>& times_;
};

// Blocks its thread in the gate after one item.
static async_generator<int> then_block(test::gate& gate, std::atomic<int>& closed) {
  closing at_end(closed);
  int item = 0;
  co_yield item;
  gate.pass();
  co_yield item;
}

static async_generator<int> pass_on(async_generator<int> in) {
  while (auto* item = co_await in.next()) co_yield *item;
}

static async_generator<int> pass_on_first(async_generator<int> in, async_generator<int>) {
  return in;
}

// A writer of samples without data.
struct zeros {
  tensor_spec spec() const { return {element_type::u8, {1}}; }
  void operator()(const sample&, const tensor&) const {}
};

template <class Stage>
static void expect_closed_once(const Stage& stage) {
  runtime runtime({.threads = 3});
  test::gate gate;
  std::atomic<int> closed = 0;
  {
    auto items = runtime.run(from([&] { return then_block(gate, closed); }) | stage, {.ready = 2});
    gate.wait_for(1);
    items.stop();
    EXPECT_EQ(closed, 0);
    gate.open();
  }
  EXPECT_EQ(closed, 1);
}

TEST(Run, ASourceThatBlocksWhileTheRunIsStoppedIsClosedOnce) {
  auto same = [](int i) { return i; };
  auto first = [](int) { return 0; };
  expect_closed_once(take(5));
  expect_closed_once(map(same, {.concurrency = 1}));
  for (auto order : {item_order::input, item_order::completion}) {
    expect_closed_once(map(same, {.concurrency = 2, .order = order}));
    expect_closed_once(flat_map(test::up_to, {.concurrency = 2, .order = order}));
  }
  expect_closed_once(prefetch(2));
  expect_closed_once(batch(2));
  expect_closed_once(bucket(same, {.size = 2}));
  expect_closed_once(route(first, map(same), map(same)));
  expect_closed_once(tee(map(same), map(same)));
  expect_closed_once(filter([](int) { return true; }));
  expect_closed_once(cache());
  expect_closed_once(shuffle({.window = 2}));
  expect_closed_once(through(pass_on));
  for (auto order : {merge_order::turns, merge_order::arrival}) {
    auto merged = [order](const pipeline<int>& source) {
      return merge<int>({source, from(up_to(2))}, {.order = order});
    };
    expect_closed_once(test::any_stage<int>{merged});
  }
  auto combined = [](const pipeline<int>& source) {
    return combine(pass_on_first, source, from(up_to(2)));
  };
  expect_closed_once(test::any_stage<int>{combined});
  auto zipped = [](const pipeline<int>& source) {
    return zip(source, from(up_to(2))) |
           map([](const std::tuple<int, int>& row) { return get<0>(row); });
  };
  expect_closed_once(test::any_stage<int>{zipped});
}

TEST(Run, ASourceOfBatchesThatBlocksWhileTheRunIsStoppedIsClosedOnce) {
  auto first = [](int) { return 0; };
  auto all_first = [](const std::vector<int>& items) { return std::vector<int>(items.size()); };
  expect_closed_once(chain(batch(1), route_batches(first, chain(), chain())));
  expect_closed_once(chain(batch(1), route_batches(all_first, map(std::identity()), chain())));
  for (unsigned concurrency : {1u, 2u}) {
    expect_closed_once(chain(map(up_to), batch(1), pad({.concurrency = concurrency})));
    auto samples = map([](int i) { return sample(std::to_string(i)); });
    const batch_into_options options{.size = 2, .concurrency = concurrency};
    expect_closed_once(chain(samples, batch_into(zeros(), options)));
  }
}

// Shards that block their thread after one item.
class blocking_shards {
 public:
  blocking_shards(test::gate& gate, std::atomic<int>& closed) : gate_(gate), closed_(closed) {}
  std::uint64_t size() const { return 2; }
  std::string name(std::uint64_t i) const { return std::to_string(i); }
  std::string identity() const { return "shards"; }
  async_generator<int> read(std::uint64_t) const { return then_block(gate_, closed_); }

 private:
  test::gate& gate_;
  std::atomic<int>& closed_;
};

TEST(Run, AShardThatBlocksWhileTheRunIsStoppedIsClosedOnce) {
  runtime runtime({.threads = 3});
  for (int concurrency : {1, 2}) {
    test::gate gate;
    std::atomic<int> closed = 0;
    {
      const from_shards_options options{.concurrency = static_cast<unsigned>(concurrency)};
      auto items = runtime.run(from_shards(blocking_shards(gate, closed), options), {.ready = 2});
      gate.wait_for(concurrency);
      items.stop();
      EXPECT_EQ(closed, 0);
      gate.open();
    }
    EXPECT_EQ(closed, concurrency);
  }
}

// Counts a task for as long as it lives.
class presence {
 public:
  explicit presence(test::occupancy& where) : where_(where) { where_.enter(); }
  presence(const presence&) = delete;
  ~presence() { where_.leave(); }

 private:
  test::occupancy& where_;
};

static task<int> sleep_in(test::occupancy& where, int first, int item) {
  presence here(where);
  if (item >= first) co_await sleep(std::chrono::hours(10));
  co_return item;
}

TEST(Run, AFailureStopsEarlierStagesAndLetsLaterOnesFinish) {
  runtime runtime({.threads = 4});
  for (unsigned concurrency : {1u, 2u}) {
    test::occupancy asleep;
    test::gate behind;
    std::atomic<bool> all_asleep = false;
    auto refuse = [&](int i) {
      if (i < 2) return i;
      behind.wait_for(2);
      test::wait_until([&] { return asleep.inside() == 5; });
      all_asleep = true;
      throw std::runtime_error("no");
    };
    auto hold = [&](int i) {
      behind.pass();
      return 10 + i;
    };
    auto items = runtime.run(
        from(numbers{-1}) |
        map([&](int i) { return sleep_in(asleep, 3, i); }, {.concurrency = 5, .buffer = 3}) |
        map(refuse, {.concurrency = concurrency, .name = "middle"}) |
        map(hold, {.concurrency = 2}));
    test::wait_until([&] { return all_asleep && asleep.inside() == 0; });
    behind.open();
    EXPECT_EQ(items.wait_next(), 10);
    EXPECT_EQ(items.wait_next(), 11);
    EXPECT_THAT([&] { items.wait_next(); }, ThrowsMessage<stage_error>("middle (2): no"));
    EXPECT_FALSE(items.wait_next());
  }
}

TEST(Run, StopEndsAPipelineThatDropsEverything) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(numbers{-1}) | filter([](int) { return false; }));
  test::pause(10);
  items.stop();
  EXPECT_THROW(items.wait_next(), error);
  auto lists = runtime.run(from_index(~std::uint64_t{0}, [](std::uint64_t i) { return i; }) |
                           filter([](std::uint64_t) { return false; }));
  lists.stop();
  EXPECT_THROW(lists.wait_next(), error);
  auto rounds = runtime.run(from(numbers{0}) | repeat(~std::uint64_t{0}));
  rounds.stop();
  EXPECT_THROW(rounds.wait_next(), error);
  auto count = [](int) { return std::views::iota(std::uint64_t{0}); };
  for (unsigned concurrency : {1u, 2u}) {
    auto parts = runtime.run(from(up_to(2)) | flat_map(count, {.concurrency = concurrency}) |
                             filter([](std::uint64_t) { return false; }));
    parts.stop();
    EXPECT_THROW(parts.wait_next(), error);
  }
  auto members =
      runtime.run(from(up_to(1)) | map([](int) { return std::vector<int>(1 << 20); }) |
                  repeat(~std::uint64_t{0}) | unbatch() | filter([](int) { return false; }));
  members.stop();
  EXPECT_THROW(members.wait_next(), error);
}

// Stops the run that it is part of while this is being opened.
TEST(Run, StopWhileStagesAreBeingOpened) {
  runtime runtime({.threads = 2});
  for (int round = 0; round < 20; ++round) {
    test::gate published;
    run<int>* running = nullptr;
    auto stopping = [&](async_generator<int> in) {
      published.pass();
      running->stop();
      return in;
    };
    auto sleepy =
        from(numbers{-1}) | map([](int i) { return sleep_from(0, i); }, {.concurrency = 4}) |
        through(stopping) | map([](int i) { return i; }, {.concurrency = 2}) | prefetch(2);
    auto items = runtime.run(sleepy);
    running = &items;
    published.open();
    EXPECT_THROW(items.wait_next(), error);
  }
}

TEST(Run, SeveralOfOnePipelineAtATime) {
  runtime runtime({.threads = 2});
  auto halves = from(up_to(500)) | map([](int i) { return i / 2; }, {.concurrency = 4});
  auto a = runtime.run(halves);
  auto b = runtime.run(halves);
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(a.wait_next(), i / 2);
    ASSERT_EQ(b.wait_next(), i / 2);
  }
  EXPECT_FALSE(a.wait_next());
  EXPECT_FALSE(b.wait_next());
}

TEST(Run, OfOnePipelineOnSeveralThreadsAndRuntimes) {
  runtime first({.threads = 2});
  runtime second({.threads = 1});
  auto halves = from(up_to(300)) | map([](int i) { return i / 2; }, {.concurrency = 4});
  std::vector<std::thread> threads;
  std::atomic<int> sum = 0;
  for (auto* where : {&first, &second, &first})
    threads.emplace_back([&, where] {
      for (auto item : collect(*where, halves)) sum += item;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(sum, 3 * 2 * (149 * 150 / 2));
}

static task<int> sum_of(runtime& where, pipeline<int> what, int most) {
  auto items = what.start(where);
  int sum = 0;
  for (; most > 0; --most) {
    auto item = co_await items.next();
    if (!item) break;
    sum += *item;
  }
  co_return sum;
}

static task<int> sum_on_reactor(runtime& where, pipeline<int> what, int most) {
  auto execution = co_await this_context();
  execution.home = &where.reactor();
  co_await continue_on(where.reactor());
  co_return co_await with_context(execution, sum_of(where, std::move(what), most));
}

TEST(Run, IsConsumedByACoroutineOnThePool) {
  for (unsigned threads : {1u, 2u, 4u}) {
    runtime runtime({.threads = threads});
    auto items = from(up_to(1000)) | map([](int i) { return i; }, {.concurrency = 4});
    EXPECT_EQ(sync_wait(runtime, sum_of(runtime, items, 2000)), 499'500);
  }
}

TEST(Run, IsConsumedByACoroutineOnTheReactor) {
  runtime runtime({.threads = 2});
  auto items = from(up_to(1000)) | map([](int i) { return i; }, {.concurrency = 4});
  EXPECT_EQ(sync_wait(runtime, sum_on_reactor(runtime, items, 2000)), 499'500);
}

TEST(Run, DestroyedEarlyByACoroutineOnThePool) {
  for (unsigned threads : {1u, 2u}) {
    runtime runtime({.threads = threads});
    auto sleepy = from(numbers{-1}) |
                  map([](int i) { return sleep_from(3, i); }, {.concurrency = 8}) |
                  map([](int i) { return i; }, {.concurrency = 2});
    for (int round = 0; round < 20; ++round)
      EXPECT_EQ(sync_wait(runtime, sum_of(runtime, sleepy, 2)), 1);
  }
}

TEST(Run, DestroyedEarlyByACoroutineOnTheReactor) {
  runtime runtime({.threads = 2});
  auto sleepy = from(numbers{-1}) |
                map([](int i) { return sleep_from(3, i); }, {.concurrency = 8}) |
                map([](int i) { return i; }, {.concurrency = 2});
  for (int round = 0; round < 20; ++round)
    EXPECT_EQ(sync_wait(runtime, sum_on_reactor(runtime, sleepy, 2)), 1);
}

static task<bool> next_is_stopped(run<int>& items) {
  try {
    co_await items.next();
  } catch (const error& e) {
    co_return e.code() == errc::stopped;
  }
  co_return false;
}

TEST(Run, StopOfTheConsumerEndsItsWaitButNotTheRun) {
  runtime runtime({.threads = 4});
  test::gate gate;
  auto held = [&](int i) {
    gate.pass();
    return i;
  };
  auto items = runtime.run(from(up_to(3)) | map(held, {.concurrency = 2}));
  std::stop_source stop;
  std::thread stopper([&] { stop.request_stop(); });
  EXPECT_TRUE(sync_wait(runtime, next_is_stopped(items), stop.get_token()));
  stopper.join();
  gate.open();
  EXPECT_THAT(collect(items), ElementsAre(0, 1, 2));
}

TEST(Run, WaitingForItInsideOfAFunctionOfARunIsRefused) {
  runtime runtime({.threads = 2});
  auto inner = from(up_to(10)) | map([](int i) { return i; }, {.concurrency = 2});
  auto outer = from(up_to(1)) | map([&](int) { return collect(runtime, inner).size(); });
  try {
    collect(runtime, outer);
    ADD_FAILURE();
  } catch (const stage_error& e) {
    EXPECT_EQ(e.code(), errc::wrong_thread) << e.what();
  }
}

TEST(Run, MayBeAwaitedInAStageOfAnotherRun) {
  runtime runtime({.threads = 2});
  auto inner = from(up_to(10)) | map([](int i) { return i; }, {.concurrency = 2});
  auto outer =
      from(up_to(20)) | map([&](int) { return sum_of(runtime, inner, 100); }, {.concurrency = 4});
  EXPECT_EQ(collect(runtime, outer), std::vector<int>(20, 45));
}

TEST(Run, StoppingOneLeavesTheOthersAlone) {
  runtime runtime({.threads = 2});
  auto sleepy = from(numbers{-1}) | map([](int i) { return sleep_from(0, i); });
  auto items = runtime.run(from(up_to(100)) | map([](int i) { return i; }, {.concurrency = 4}));
  {
    auto other = runtime.run(sleepy);
    EXPECT_EQ(items.wait_next(), 0);
  }
  EXPECT_EQ(collect(items).size(), 99u);
}

static task<buffer> fill_buffer(std::size_t bytes) {
  co_return allocate_now(co_await this_context(), bytes);
}

TEST(Run, KeepsToItsMemoryHoweverFarItCouldWorkAhead) {
  constexpr std::size_t bytes = 1 << 20;
  runtime runtime({.threads = 2, .memory_bytes = 3 * bytes});
  auto buffers = from(up_to(200)) |
                 map([](int) { return fill_buffer(bytes); }, {.concurrency = 2, .buffer = 1}) |
                 prefetch(16);
  std::size_t taken = 0;
  for (auto& item : runtime.run(buffers, {.ready = 16})) taken += item.size();
  EXPECT_EQ(taken, 200 * bytes);
  EXPECT_LE(runtime.memory().stats().peak_bytes, 4 * bytes);
}

TEST(Run, KeepsToItsMemoryWhereAPlainFunctionTakesIt) {
  constexpr std::size_t bytes = 1 << 20;
  runtime runtime({.threads = 2, .memory_bytes = 3 * bytes});
  auto fill = [](int) { return allocate_now(bytes); };
  auto buffers = from(up_to(200)) | map(fill, {.concurrency = 1, .buffer = 0});
  auto items = runtime.run(buffers, {.ready = 16});
  auto first = items.wait_next();
  test::wait_until([&] { return items.statistics().memory_wait > 0s; });
  EXPECT_LE(runtime.memory().stats().peak_bytes, 3 * bytes);
}

TEST(Run, CountsTheTimeItWaitedForMemory) {
  runtime runtime({.threads = 2, .memory_bytes = 1000});
  auto buffers = from(up_to(3)) | map([](int) { return fill_buffer(1000); }, {.concurrency = 1});
  auto items = runtime.run(buffers);
  EXPECT_EQ(collect(items).size(), 3u);
  EXPECT_GT(items.statistics().memory_wait.count(), 0);
}

TEST(Run, FailuresNameStageItemAndCause) {
  runtime runtime({.threads = 2});
  auto broken = from(std::vector<std::string>{"a.jpg", "b.jpg", "c.jpg"}) |
                map(
                    [](std::string key) {
                      if (key == "b.jpg") throw error(errc::invalid_data, "decode " + key, "bits");
                      return key;
                    },
                    {.concurrency = 2, .name = "decode"});
  auto items = runtime.run(broken);
  EXPECT_EQ(items.wait_next(), "a.jpg");
  try {
    items.wait_next();
    ADD_FAILURE();
  } catch (const stage_error& e) {
    EXPECT_STREQ(e.what(), "decode: decode b.jpg: bits");
    EXPECT_EQ(e.stage(), "decode");
    EXPECT_EQ(e.item(), "b.jpg");
    EXPECT_EQ(e.code(), errc::invalid_data);
    EXPECT_EQ(to_string(e.positions()), "1");
    EXPECT_THROW(std::rethrow_exception(e.cause()), error);
  }
}

TEST(Run, FailuresOfOtherTypesThanStdExceptionAreReported) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 4u}) {
    auto items = runtime.run(from(up_to(5)) | map([](int) -> int { throw 42; },
                                                  {.concurrency = concurrency, .name = "odd"}));
    try {
      items.wait_next();
      ADD_FAILURE();
    } catch (const stage_error& e) {
      EXPECT_THAT(e.what(), HasSubstr("odd (0): an exception of unknown type"));
      EXPECT_EQ(e.code(), errc::failed);
      try {
        std::rethrow_exception(e.cause());
      } catch (int cause) {
        EXPECT_EQ(cause, 42);
      }
    }
  }
}

// Everything at once: pipelines that are left, stopped or drained at random moments.
TEST(Run, EndsAtAnyMoment) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  auto below = [&](unsigned n) { return static_cast<unsigned>(draw.below(n)); };
  runtime runtime({.threads = 2});
  for (int round = 0; round < 60; ++round) {
    auto order = below(2) ? item_order::input : item_order::completion;
    map_options some{.concurrency = 1 + below(5), .buffer = below(4), .order = order};
    pipeline<int> items = from(numbers{below(2) ? -1 : 40}) |
                          map(
                              [](int i) {
                                test::pause(i % 5);
                                return i;
                              },
                              some) |
                          map([](int i) { return sleep_from(30, i); }, some);
    if (below(2)) items = items | prefetch(1 + below(3));
    if (below(2)) items = items | take(below(35));
    if (below(2)) items = items | filter([](int i) { return i % 3 > 0; });
    if (below(2)) items = items | map([](int i) { return i; }, some);
    auto running = runtime.run(items);
    auto most = below(20);  // the first 30 items come without a sleep
    std::thread stopper;
    if (below(2))
      stopper = std::thread([&running, turns = static_cast<int>(below(60))] {
        test::pause(turns);
        running.stop();
      });
    try {
      while (most-- > 0 && running.wait_next()) {}
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::stopped) << e.what();
    }
    if (stopper.joinable()) stopper.join();
  }
}

TEST(Run, ContinuesAfterATimeout) {
  runtime runtime({.threads = 2});
  test::gate held;
  auto gated = from(up_to(3)) | map([&](int i) {
                 if (i == 1) held.pass();
                 return i;
               });
  auto items = runtime.run(gated);
  EXPECT_EQ(items.wait_next(std::chrono::hours(1)), 0);
  for (int round = 0; round < 3; ++round) {
    try {
      items.wait_next(std::chrono::milliseconds(1));
      ADD_FAILURE() << "there is no item";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::timed_out);
      EXPECT_THAT(e.what(), HasSubstr("wait for an item of a run"));
    }
  }
  held.open();
  EXPECT_EQ(items.wait_next(std::chrono::hours(1)), 1);
  EXPECT_EQ(items.wait_next(), 2);
  EXPECT_FALSE(items.wait_next(std::chrono::hours(1)));
}

TEST(Run, WorksNoFurtherAheadAfterALimitOfTimeHasPassed) {
  for (unsigned ready : {1u, 2u, 5u}) {
    runtime runtime({.threads = 2});
    test::gate held;
    std::atomic<unsigned> made = 0;
    auto next = [&, i = 0]() mutable -> std::optional<int> {
      if (i == 0) held.pass();
      ++made;
      return i++;
    };
    auto items = runtime.run(from(next), {.ready = ready});
    EXPECT_THROW(items.wait_next(std::chrono::milliseconds(1)), error);
    held.open();
    test::wait_until([&] { return items.statistics().output_wait.count() > 0; });
    EXPECT_EQ(made, ready + 1);
    EXPECT_EQ(items.wait_next(), 0);
  }
}

TEST(Run, ALimitOfTimeOutsideOfARuntimeIsRefusedAndTakesNoItem) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(up_to(1)));
  EXPECT_THAT([&] { sync_wait(items.next(std::chrono::hours(1))); },
              ThrowsMessage<error>("wait for an item of a run: awaited outside of a runtime"));
  EXPECT_EQ(items.wait_next(), 0);
}

template <class Wait>
static void expect_timeouts(Wait wait) {
  for (int round = 0; round < 3; ++round) {
    try {
      wait();
      ADD_FAILURE() << "no timeout";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::timed_out);
    }
  }
}

TEST(Run, ALimitHoldsWhereFunctionsKeepAllThreads) {
  runtime runtime({.threads = 2});
  test::gate held;
  auto wait = [&](int i) {
    held.pass();
    return i;
  };
  auto items = runtime.run(from(up_to(2)) | map(wait, {.concurrency = 2}));
  held.wait_for(2);
  expect_timeouts([&] { items.wait_next(1ms); });
  held.open();
  EXPECT_EQ(items.wait_next(std::chrono::hours(1)), 0);
  EXPECT_EQ(items.wait_next(), 1);
}

TEST(Run, ALimitHoldsWhereItsEndWaitsForAFunction) {
  runtime runtime({.threads = 2});
  test::gate held;
  auto hold_all_but_first = [&](int i) {
    if (i > 0)
      held.pass();
    else
      held.wait_for(1);
    return i;
  };
  auto items = runtime.run(from(up_to(9)) | map(hold_all_but_first, {.concurrency = 2}) | take(1));
  EXPECT_EQ(items.wait_next(), 0);
  expect_timeouts([&] { items.wait_next(1ms); });
  held.open();
  EXPECT_FALSE(items.wait_next(std::chrono::hours(1)));
}

TEST(Run, ATimeoutHidesNoFailure) {
  runtime runtime({.threads = 3});
  test::gate held;
  auto fail_first = [&](int i) -> int {
    if (i > 0) {
      held.pass();
      return i;
    }
    held.wait_for(1);
    throw error(errc::stopped, "ask a server");
  };
  auto items = runtime.run(from(up_to(2)) | map(fail_first, {.concurrency = 2}));
  while (items.failures().empty()) std::this_thread::yield();
  expect_timeouts([&] { items.wait_next(1ms); });
  held.open();
  EXPECT_THROW(items.wait_next(std::chrono::hours(1)), stage_error);
  EXPECT_FALSE(items.wait_next());
}

TEST(Run, ALimitOfNoTimeTakesItemsThatAreReady) {
  runtime runtime({.threads = 1});
  std::atomic<bool> waiting = false;
  auto items = runtime.run(from([&] { return then_wait(4, waiting); }), {.ready = 4});
  test::wait_until([&] { return waiting.load(); });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(items.wait_next(0ns), i);
  EXPECT_THROW(items.wait_next(0ns), error);
}

TEST(Run, LosesNoItemToTimeouts) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(up_to(2000)) | map([](int i) {
                             test::pause(i % 7);
                             return i;
                           }));
  std::vector<int> taken;
  while (true) {
    try {
      auto item = items.wait_next(std::chrono::nanoseconds(20'000 * (taken.size() % 3)));
      if (!item) break;
      taken.push_back(*item);
    } catch (const error& e) {
      ASSERT_EQ(e.code(), errc::timed_out);
    }
  }
  EXPECT_EQ(taken, up_to(2000));
}

static task<> take_first(run<int>& items, std::optional<int>& item) {
  item = co_await items.next();
}

static task<> take_beside(run<int>& items, event& gate, std::string& why) {
  try {
    (void)co_await items.next();
  } catch (const error& refusal) {
    if (refusal.code() == errc::wrong_thread) why = refusal.what();
  }
  gate.set();
}

static task<> beside(task<> first, task<> second) {
  co_await when_all(std::move(first), std::move(second));
}

TEST(Run, AllowsOneConsumerAtATime) {
  runtime runtime({.threads = 2});
  event gate;
  auto hold = [&gate](int i) -> task<int> {
    co_await gate;
    co_return i;
  };
  auto items = runtime.run(from(up_to(2)) | map(hold));
  std::optional<int> first;
  std::string why;
  sync_wait(runtime, beside(take_first(items, first), take_beside(items, gate, why)));
  EXPECT_EQ(first, 0);
  EXPECT_THAT(why, HasSubstr("only one at a time may"));
  EXPECT_EQ(items.wait_next(), 1);
}

TEST(RunDeathTest, ARuntimeThatIsDestroyedBeforeItsRunEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto destroy = [] {
    auto where = std::make_unique<runtime>(runtime_options{.threads = 1});
    auto items = where->run(from(up_to(3)));
    where.reset();
  };
  EXPECT_DEATH(destroy(), "lade: a runtime was destroyed before a run or a task on it had ended");
}

TEST(RunDeathTest, APoolThatIsDestroyedBeforeARunThatUsesItEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto destroy = [](auto stage_on) {
    runtime where({.threads = 1});
    auto pool = std::make_unique<thread_pool>(thread_pool_options{.threads = 1});
    auto items = where.run(from(up_to(100)) | stage_on(*pool));
    items.wait_next();
    std::this_thread::yield();  // the rest has no room: at times nothing runs on the pool
    pool.reset();
  };
  auto mapped = [](thread_pool& pool) { return map([](int i) { return i; }, {.pool = &pool}); };
  auto expanded = [](thread_pool& pool) {
    return flat_map([](int i) { return std::vector{i}; }, {.concurrency = 2, .pool = &pool});
  };
  constexpr auto sentence = "lade: a thread pool was destroyed before a run that uses it had ended";
  EXPECT_DEATH(destroy(mapped), sentence);
  EXPECT_DEATH(destroy(expanded), sentence);
}

TEST(Run, APoolMayBeDestroyedWhenAllItemsHaveBeenTaken) {
  runtime where({.threads = 1});
  for (int round = 0; round < 20; ++round) {
    auto pool = std::make_unique<thread_pool>(thread_pool_options{.threads = 2});
    auto items = where.run(from(up_to(10)) | map([](int i) { return i; }, {.pool = pool.get()}));
    while (items.wait_next()) {}
    pool.reset();
  }
}

// What runs of `what` warn of, one after the other.
static std::vector<std::string> warnings_of(const pipeline<int>& what,
                                            const std::vector<run_options>& runs) {
  runtime runtime({.threads = 2});
  std::vector<std::string> warnings;
  for (auto options : runs) {
    options.on_warning = [&](const std::string& text) { warnings.push_back(text); };
    collect(runtime, what, options);
  }
  return warnings;
}

static int draw_one(int, random draw) { return static_cast<int>(draw.below(100)); }
static int same(int i) { return i; }

TEST(RunWithoutAnEpoch, WarnsOnceIfItMakesTheSameChoicesAgain) {
  auto list = from(up_to(5));
  auto stream = list | filter([](int) { return true; });
  merge_options weighted{.order = merge_order::weighted, .weights = {1, 2}};
  const std::pair<const char*, pipeline<int>> all[] = {
      {"shuffle", list | shuffle()},
      {"shuffle", stream | shuffle() | map(same)},
      {"draw", list | draw({.weights = {1, 2, 3, 4, 5}})},
      {"augment", list | map(draw_one, {.name = "augment"})},
      {"merge", merge(std::vector{stream, stream}, weighted)},
      {"shuffle", stream | shuffle() | repeat(2)},
      {"augment", stream | map(draw_one, {.name = "augment"}) | repeat(2)},
  };
  for (auto& [stage, what] : all)
    EXPECT_THAT(
        warnings_of(what, {{}, {}, {}}),
        ElementsAre(std::string("a pipeline runs for the second time without an epoch: ") + stage +
                    " makes the same choices again. Give every run its own: "
                    "{.epoch = epoch}."));
}

TEST(RunWithoutAnEpoch, WarnsAlsoIfOnlyLaterStagesAreMadeAgain) {
  runtime runtime({.threads = 2});
  auto list = from(up_to(6));
  auto stream = list | filter([](int) { return true; });
  for (auto& files : {list | shuffle(), stream | shuffle()}) {
    std::vector<std::string> warnings;
    run_options options;
    options.on_warning = [&](const std::string& text) { warnings.push_back(text); };
    for (int epoch = 0; epoch < 3; ++epoch)
      collect(runtime, files | map(draw_one) | batch(3), options);
    EXPECT_THAT(warnings, ElementsAre(HasSubstr("shuffle makes the same choices again")));
  }
}

TEST(RunWithoutAnEpoch, DoesNotWarnOfNumbersDrawnWithAnotherSeed) {
  auto drawn = from(up_to(5)) | map(draw_one, {.name = "augment"});
  EXPECT_THAT(warnings_of(drawn, {{.seed = 1}, {.seed = 2}, {.seed = 3}}), IsEmpty());
  EXPECT_THAT(warnings_of(drawn, {{.seed = 1}}), ElementsAre(HasSubstr("augment makes the same")));
  auto shuffled = from(up_to(5)) | shuffle() | map(draw_one);
  EXPECT_THAT(warnings_of(shuffled, {{.seed = 1}, {.seed = 2}}),
              ElementsAre(HasSubstr("shuffle makes the same")));
}

TEST(RunWithoutAnEpoch, DoesNotWarnOfAShuffleThatOneRunHasTwice) {
  auto shuffled = from(up_to(5)) | shuffle();
  EXPECT_THAT(warnings_of(merge(std::vector{shuffled, shuffled}), {{}}), IsEmpty());
}

TEST(RunWithoutAnEpoch, DoesNotWarnIfTheEpochIsSetOrDoesNotMatter) {
  auto shuffled = from(up_to(5)) | shuffle();
  EXPECT_THAT(warnings_of(shuffled, {{.epoch = 0}, {.epoch = 0}, {}}), IsEmpty());
  EXPECT_THAT(warnings_of(from(up_to(5)) | map(same) | shard({}), {{}, {}, {}}), IsEmpty());
  auto cached = from(up_to(5)) | shuffle() | cache();
  EXPECT_THAT(warnings_of(cached, {{}, {}, {}}), IsEmpty());
  EXPECT_THAT(warnings_of(from(up_to(5)) | shuffle(), {{}}), IsEmpty());
}

TEST(RunWithoutAnEpoch, ThatResumesFromAStateHasTheEpochOfTheState) {
  runtime runtime({.threads = 2});
  auto shuffled = from(up_to(5)) | shuffle();
  std::vector<std::string> warnings;
  run_options options;
  options.on_warning = [&](const std::string& text) { warnings.push_back(text); };
  auto items = runtime.run(shuffled, options);
  (void)items.wait_next();
  options.state = items.state();
  collect(runtime, shuffled, options);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(RunWithoutAnEpoch, EndsWithTheExceptionOfOnWarning) {
  runtime runtime({.threads = 2});
  auto shuffled = from(up_to(5)) | shuffle();
  collect(runtime, shuffled);
  run_options options;
  options.on_warning = [](const std::string& text) { throw std::runtime_error(text); };
  EXPECT_THAT([&] { collect(runtime, shuffled, options); },
              ThrowsMessage<std::runtime_error>(HasSubstr("without an epoch")));
}

// A call that fails while the run is stopped is no failure of the item.
TEST(Run, ACallThatFailsAfterAStopEndsTheRunAsTheStop) {
  for (unsigned concurrency : {1u, 2u})
    for (auto policy : {on_error::fail, on_error::skip}) {
      runtime runtime({.threads = 2});
      test::gate gate;
      auto fails_late = [&gate](int) -> int {
        gate.pass();
        throw std::runtime_error("late");
      };
      auto run = runtime.run(from(up_to(3)) |
                             map(fails_late, {.concurrency = concurrency, .on_error = policy}));
      gate.wait_for(1);
      run.stop();
      gate.open();
      try {
        EXPECT_FALSE(run.wait_next()) << "an item";
        ADD_FAILURE() << "no error";
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::stopped) << e.what();
      }
    }
}

}  // namespace lade::run_test
