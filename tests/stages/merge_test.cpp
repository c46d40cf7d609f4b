#include <lade/cut.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/run.hpp>
#include <lade/shuffle.hpp>
#include <lade/sleep.hpp>
#include <lade/through.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace lade::merge_test {

using namespace test;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;
using testing::UnorderedElementsAreArray;
using inputs = std::vector<pipeline<int>>;

// first, first + 1, ...: `count` of them.
static pipeline<int> run_of(int first, int count) {
  return from(numbers{count}) | map([first](int i) { return first + i; }, {.concurrency = 1});
}

static int refuse(int i) { throw std::runtime_error("bad " + std::to_string(i)); }

TEST(Merge, InTurnsSkipsEndedInputs) {
  runtime runtime({.threads = 1});
  auto merged = merge(inputs{run_of(0, 3), run_of(10, 1), run_of(20, 2)});
  EXPECT_THAT(collect(runtime, merged), ElementsAre(0, 10, 20, 1, 21, 2));
  EXPECT_THAT(collect(runtime, merge(inputs{})), IsEmpty());
}

TEST(Merge, AnEndedInputKeepsNoItemsThatItPrepared) {
  runtime runtime({.threads = 2});
  std::atomic<int> held = 0;
  auto hold = [&](int i) {
    ++held;
    return std::shared_ptr<int>(new int(i), [&held](const int* number) {
      --held;
      delete number;
    });
  };
  auto own = [](int i) { return std::make_shared<int>(100 + i); };
  for (auto order : {merge_order::turns, merge_order::arrival}) {
    auto one_of_many = from(up_to(8)) | map(hold, {.concurrency = 4}) | take(1);
    auto without_end = from(numbers{-1}) | map(own, {.concurrency = 1, .buffer = 0});
    auto items = runtime.run(merge(
        std::vector<pipeline<std::shared_ptr<int>>>{one_of_many, without_end}, {.order = order}));
    while (*items.wait_next().value() >= 100) {}  // until the one has come
    for (int i = 0; i < 4; ++i) items.wait_next();
    test::wait_until([&] { return held == 0; });
    EXPECT_TRUE(items.wait_next());
  }
}

TEST(Merge, MayEndWithTheFirst) {
  runtime runtime({.threads = 1});
  auto merged =
      merge(inputs{run_of(0, 3), run_of(10, 1), run_of(20, 2)}, {.end = merge_end::first});
  EXPECT_THAT(collect(runtime, merged), ElementsAre(0, 10, 20, 1));
  auto endless = merge(inputs{run_of(0, -1), run_of(10, 1)}, {.end = merge_end::first});
  EXPECT_THAT(collect(runtime, endless), ElementsAre(0, 10, 1));
}

TEST(Merge, ByWeightIsTheSameInEveryRunAndAnotherInEveryEpoch) {
  runtime runtime({.threads = 2});
  auto merged = merge(inputs{run_of(0, 1000), run_of(1000, 3000)},
                      {.order = merge_order::weighted, .weights = {1, 3}, .seed = 7});
  auto once = collect(runtime, merged);
  EXPECT_EQ(collect(runtime, merged), once);
  EXPECT_NE(collect(runtime, merged, {.epoch = 1}), once);
  auto of_first = std::count_if(once.begin(), once.begin() + 1000, [](int i) { return i < 1000; });
  EXPECT_NEAR(static_cast<double>(of_first), 250, 60);
  std::ranges::sort(once);
  EXPECT_EQ(once, collect(runtime, run_of(0, 4000)));
}

TEST(Merge, ByWeightDependsOnItsSeedAndNotOnTheThreads) {
  auto merged = [](std::uint64_t seed) {
    return merge(inputs{run_of(0, 300), run_of(1000, 300) | prefetch(4)},
                 {.order = merge_order::weighted, .weights = {1, 1}, .seed = seed});
  };
  runtime one({.threads = 1});
  runtime many({.threads = 4});
  auto expected = collect(one, merged(7));
  EXPECT_EQ(collect(many, merged(7)), expected);
  EXPECT_NE(collect(one, merged(8)), expected);
}

TEST(Merge, ByWeightMayEndWithTheFirst) {
  runtime runtime({.threads = 1});
  auto merged = merge(inputs{run_of(0, -1), run_of(-5, 5)},
                      {.order = merge_order::weighted, .end = merge_end::first, .weights = {2, 1}});
  auto items = collect(runtime, merged);
  EXPECT_EQ(std::ranges::count_if(items, [](int i) { return i < 0; }), 5);
  EXPECT_GT(items.size(), 5u);
}

TEST(Merge, AWeightOfZeroExcludesAnInput) {
  runtime runtime({.threads = 1});
  auto merged = merge(inputs{run_of(0, 3), run_of(10, 3)},
                      {.order = merge_order::weighted, .weights = {0, 1}});
  EXPECT_THAT(collect(runtime, merged), ElementsAre(10, 11, 12));
}

TEST(Merge, WeightsThatCannotWorkAreRefused) {
  auto merging = [](std::vector<double> weights) {
    return [weights] {
      merge(inputs{run_of(0, 1), run_of(0, 1)},
            {.order = merge_order::weighted, .weights = weights});
    };
  };
  EXPECT_THAT(
      merging({1}),
      ThrowsMessage<error>("merge: the number of weights must be 2, that of its inputs; it is 1"));
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  for (double wrong : {-1.0, infinity, -infinity, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THAT(merging({1, wrong}),
                ThrowsMessage<error>(HasSubstr("it must be a finite number from 0 on")));
  EXPECT_THAT(merging({0, 0}), ThrowsMessage<error>("merge: all weights are 0"));
}

TEST(Merge, ByArrivalDoesNotWaitForTheSlow) {
  runtime runtime({.threads = 2});
  auto slow = from(numbers{1}) | map([](int) -> task<int> {
                co_await sleep(10min);
                co_return 0;
              });
  auto items = runtime.run(merge(inputs{slow, run_of(1, 100)}, {.order = merge_order::arrival}));
  for (int i = 1; i <= 100; ++i) EXPECT_EQ(items.wait_next(), i);
}

TEST(Merge, ByArrivalDeliversEveryItemOnce) {
  runtime runtime({.threads = 3});
  inputs many;
  for (int i = 0; i < 20; ++i) many.push_back(run_of(100 * i, 100) | prefetch(3));
  auto merged = merge(many, {.order = merge_order::arrival});
  EXPECT_THAT(collect(runtime, merged),
              UnorderedElementsAreArray(collect(runtime, run_of(0, 2000))));
  EXPECT_THAT(collect(runtime, merge(inputs{}, {.order = merge_order::arrival})), IsEmpty());
}

TEST(Merge, ByArrivalMayEndWithTheFirst) {
  runtime runtime({.threads = 2});
  auto merged = merge(inputs{run_of(0, -1), run_of(-5, 5)},
                      {.order = merge_order::arrival, .end = merge_end::first});
  auto items = collect(runtime, merged);
  EXPECT_EQ(std::ranges::count_if(items, [](int i) { return i < 0; }), 5);
}

TEST(Merge, AFailureOfAnInputEndsTheRun) {
  runtime runtime({.threads = 2});
  for (auto order : {merge_order::turns, merge_order::arrival}) {
    auto bad = run_of(7, 1) | map(refuse, {.name = "refuse"});
    auto merged = merge(inputs{run_of(0, -1), bad}, {.order = order});
    EXPECT_THAT([&] { collect(runtime, merged); }, ThrowsMessage<stage_error>("refuse (7): bad 7"));
  }
}

TEST(Merge, CanBeLeftAtAnyTime) {
  runtime runtime({.threads = 3});
  for (auto order : {merge_order::turns, merge_order::weighted, merge_order::arrival})
    for (int count = 0; count < 50; ++count) {
      auto merged =
          merge(inputs{run_of(0, -1), run_of(0, -1) | prefetch(2)}, test::merged_in(order, {1, 2}));
      auto items = runtime.run(merged);
      for (int i = 0; i < count; ++i) EXPECT_TRUE(items.wait_next());
    }
}

TEST(Merge, SaysThatItWasStopped) {
  runtime runtime({.threads = 3});
  for (int i = 0; i < 100; ++i) {
    auto items =
        runtime.run(merge(inputs{run_of(0, -1), run_of(0, -1)}, {.order = merge_order::arrival}));
    EXPECT_TRUE(items.wait_next());
    items.stop();
    EXPECT_THAT(
        [&] {
          while (items.wait_next()) {}
        },
        ThrowsMessage<error>("run: stopped"));
  }
}

constexpr merge_order merge_orders[] = {merge_order::turns, merge_order::weighted,
                                        merge_order::arrival};

// 0, 1, 2, ... and 1,000,000, 1,000,001, ... without an end.
static pipeline<int> two_without_end(merge_order order) {
  return merge(inputs{run_of(0, -1), run_of(1'000'000, -1) | prefetch(2)},
               test::merged_in(order, {1, 2}));
}

// As many items, and of each input the first ones in their order.
static void expect_of_two_without_end(const std::vector<int>& items, std::size_t count) {
  EXPECT_EQ(items.size(), count);
  int next[] = {0, 1'000'000};
  for (int item : items) ASSERT_EQ(item, next[item >= 1'000'000]++);
}

TEST(Merge, OfInputsWithoutAnEndEndsBehindATake) {
  runtime runtime({.threads = 3});
  for (auto order : merge_orders)
    for (std::size_t count : {0u, 1u, 2u, 7u, 100u})
      expect_of_two_without_end(collect(runtime, two_without_end(order) | take(count)), count);
}

TEST(Merge, OfAnInputThatSleepsEndsBehindATakeOfTheOthers) {
  runtime runtime({.threads = 2});
  auto asleep = from(numbers{1}) | map([](int) -> task<int> {
                  co_await sleep(10min);
                  co_return 0;
                });
  for (auto order : {merge_order::turns, merge_order::arrival}) {
    std::size_t count = order == merge_order::turns ? 1 : 50;
    auto merged = merge(inputs{run_of(0, -1), asleep}, {.order = order});
    EXPECT_EQ(collect(runtime, merged | take(count)), up_to(static_cast<int>(count)));
  }
}

TEST(Merge, AfterAStopDeliversReadyItemsOnce) {
  runtime runtime({.threads = 3});
  for (auto order : merge_orders)
    for (std::size_t count : {0u, 1u, 7u, 100u}) {
      auto items = runtime.run(two_without_end(order));
      std::vector<int> taken;
      while (taken.size() < count) taken.push_back(items.wait_next().value());
      items.stop();
      EXPECT_THAT(
          [&] {
            while (auto item = items.wait_next()) taken.push_back(*item);
          },
          ThrowsMessage<error>("run: stopped"));
      expect_of_two_without_end(taken, taken.size());
      EXPECT_FALSE(items.wait_next());
      EXPECT_THAT(items.failures(), IsEmpty());
    }
}

static async_generator<std::string> origins(async_generator<int> in) {
  while (auto* item = co_await in.next()) {
    auto positions = std::to_string(*item) + " of " + to_string(in.origin());
    co_yield positions;
  }
}

TEST(Merge, LineagesDifferBetweenInputs) {
  runtime runtime({.threads = 2});
  auto again = merge(inputs{run_of(0, 5), run_of(0, 5)});
  for (auto order : {merge_order::turns, merge_order::arrival}) {
    auto merged = merge(inputs{run_of(0, 5), again, run_of(0, 5)}, {.order = order});
    auto all = collect(runtime, merged | through(origins));
    std::ranges::sort(all);
    EXPECT_EQ(all.size(), 20u);
    EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
  }
}

TEST(Merge, PositionsDifferInEveryRoundOfARepeat) {
  runtime runtime({.threads = 2});
  auto merged = merge(inputs{run_of(0, 3), merge(inputs{run_of(0, 2), run_of(0, 4)})});
  auto all = collect(runtime, merged | repeat(50) | through(origins));
  for (auto& each : all) each.erase(0, each.find("of "));
  std::ranges::sort(all);
  EXPECT_EQ(all.size(), 450u);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
}

TEST(Merge, RefusesSourcesWhosePositionsWouldCollide) {
  runtime runtime({.threads = 1});
  auto inside_of_merges = [](pipeline<int> innermost, int depth) {
    for (; depth > 0; --depth) innermost = merge(inputs{innermost, from(numbers{1})});
    return innermost;
  };
  EXPECT_EQ(collect(runtime, inside_of_merges(run_of(0, 4), 60)).size(), 64u);
  for (auto& many : {run_of(0, 5), from(std::vector{1, 2, 3, 4, 5})})
    EXPECT_THAT([&] { collect(runtime, inside_of_merges(many, 60)); },
                ThrowsMessage<stage_error>(
                    HasSubstr("number an item: a source of this run may have 4 items: lower")));
  EXPECT_THAT(
      [&] { collect(runtime, inside_of_merges(run_of(0, 1), 63)); },
      ThrowsMessage<error>(HasSubstr("open a source: it is one of too many, inside of others")));
}

TEST(Merge, TheSamePipelineTwiceHasCountersOfEach) {
  runtime runtime({.threads = 2});
  auto one = run_of(0, 5);
  auto items = runtime.run(merge(inputs{one, one}));
  collect(items);
  auto stages = items.statistics().stages;
  EXPECT_EQ(std::ranges::count_if(stages,
                                  [](auto& s) { return s.name.starts_with("map") && s.out == 5; }),
            2);
}

// The counters of a run's last stage, when all its items have been taken.
template <class T>
static stage_statistics last_stage_of(runtime& where, const pipeline<T>& what) {
  auto items = where.run(what);
  collect(items);
  return items.statistics().stages.back();
}

TEST(Merge, CountsItsInputAndOutput) {
  runtime runtime({.threads = 2});
  for (auto order : {merge_order::turns, merge_order::weighted, merge_order::arrival}) {
    auto stage = last_stage_of(
        runtime, merge(inputs{run_of(0, 30), run_of(0, 70)}, test::merged_in(order, {1, 2})));
    EXPECT_EQ(stage.name, "merge");
    EXPECT_EQ(stage.in, 100u);
    EXPECT_EQ(stage.out, 100u);
  }
}

TEST(Merge, ThatEndsWithTheFirstCountsDeliveredItems) {
  runtime runtime({.threads = 2});
  auto stage =
      last_stage_of(runtime, merge(inputs{run_of(0, -1), run_of(0, 5)}, {.end = merge_end::first}));
  EXPECT_EQ(stage.in, 11u);
  EXPECT_EQ(stage.out, 11u);
  auto items = runtime.run(merge(inputs{run_of(0, -1), run_of(0, 5)},
                                 {.order = merge_order::arrival, .end = merge_end::first}));
  auto given = collect(items).size();
  stage = items.statistics().stages.back();
  EXPECT_EQ(stage.out, given);
  EXPECT_GE(stage.in, given);
}

TEST(Merge, RefusesWeightsThatItsOrderDoesNotUse) {
  auto merged = [](const merge_options& options) {
    return [options] { merge(inputs{run_of(0, 2), run_of(10, 2)}, options); };
  };
  auto of_epoch = [](std::uint64_t) { return std::vector<double>{1, 2}; };
  for (auto order : {merge_order::turns, merge_order::arrival}) {
    auto sentence = ThrowsMessage<error>("merge: weights need .order = merge_order::weighted");
    EXPECT_THAT(merged({.order = order, .weights = {9, 1}}), sentence);
    EXPECT_THAT(merged({.order = order, .weights_of = of_epoch}), sentence);
    EXPECT_THAT(merged({.order = order, .seed = 1}),
                ThrowsMessage<error>("merge: seed needs .order = merge_order::weighted"));
  }
}

TEST(Merge, MayHaveOtherWeightsInEveryEpoch) {
  runtime runtime({.threads = 1});
  merge_options options{.order = merge_order::weighted};
  options.weights_of = [](std::uint64_t epoch) {
    return epoch == 0 ? std::vector<double>{1, 0} : std::vector<double>{0, 1};
  };
  auto merged = merge(inputs{run_of(0, 2), run_of(10, 2)}, options);
  EXPECT_THAT(collect(runtime, merged), ElementsAre(0, 1));
  EXPECT_THAT(collect(runtime, merged, {.epoch = 1}), ElementsAre(10, 11));
  options.weights_of = [](std::uint64_t) { return std::vector<double>{1}; };
  EXPECT_THAT(
      [&] { collect(runtime, merge(inputs{run_of(0, 2), run_of(10, 2)}, options)); },
      ThrowsMessage<error>("merge: the number of weights must be 2, that of its inputs; it is 1"));
}

TEST(Merge, DrawsByWeightsWhoseSumIsNoFiniteNumber) {
  constexpr auto most = std::numeric_limits<double>::max();
  detail::turn_order order({.order = merge_order::weighted, .weights = {most, most}, .seed = 5}, 2,
                           0);
  std::array<int, 2> drawn{};
  for (int i = 0; i < 1000; ++i) ++drawn[order.next()];
  EXPECT_NEAR(drawn[0], 500, 80);
}

TEST(Zip, PairsItemsUntilOneInputEnds) {
  runtime runtime({.threads = 2});
  auto names = from(std::vector<std::string>{"a", "b", "c"});
  using row = std::tuple<int, std::string, int>;
  EXPECT_THAT(collect(runtime, zip(run_of(0, -1), names, run_of(5, 2))),
              ElementsAre(row(0, "a", 5), row(1, "b", 6)));
  EXPECT_THAT(collect(runtime, zip(run_of(0, 2))), ElementsAre(std::tuple(0), std::tuple(1)));
}

TEST(Zip, CountsTheItemsOfAllInputsAndTheRows) {
  runtime runtime({.threads = 2});
  auto stage = last_stage_of(runtime, zip(run_of(0, 20), run_of(0, 20), run_of(0, 20)));
  EXPECT_EQ(stage.name, "zip");
  EXPECT_EQ(stage.in, 60u);
  EXPECT_EQ(stage.out, 20u);
  EXPECT_EQ(last_stage_of(runtime, zip(run_of(0, 20))).out, 20u);
}

TEST(Zip, CarriesTheLineageOfAll) {
  runtime runtime({.threads = 1});
  std::vector<std::uint64_t> sizes;
  auto rows = zip(run_of(0, 3), run_of(0, 3), run_of(0, 3)) |
              through([&](async_generator<std::tuple<int, int, int>> in) -> async_generator<int> {
                while (co_await in.next()) {
                  sizes.push_back(in.origin().size());
                  int nothing = 0;
                  co_yield nothing;
                }
              });
  collect(runtime, rows);
  EXPECT_THAT(sizes, ElementsAre(3, 3, 3));
}

// Every second item is of the second input; ends as soon as there is none.
static async_generator<int> alternate(async_generator<int> in, async_generator<std::string> names) {
  while (auto* i = co_await in.next()) {
    co_yield *i;
    auto* name = co_await names.next();
    if (!name) co_return;
    int length = static_cast<int>(name->size());
    co_yield length;
  }
}

TEST(Combine, YieldsTheItemsOfItsCoroutine) {
  runtime runtime({.threads = 2});
  auto names = from(std::vector<std::string>{"one", "three"});
  EXPECT_THAT(collect(runtime, combine(alternate, run_of(0, -1), names)),
              ElementsAre(0, 3, 1, 5, 2));
}

static task<int> sleep_long(std::atomic<int>& asleep, int i) {
  ++asleep;
  co_await sleep(std::chrono::hours(10));
  co_return i;
}

// Asks the second input for nothing, and leaves.
static async_generator<int> leave_after_two(async_generator<int> in, async_generator<int>) {
  for (int i = 0; i < 2; ++i) {
    auto* item = co_await in.next();
    co_yield *item;
  }
}

TEST(Combine, ThatLeavesEarlyEndsWhileAnInputSleeps) {
  runtime runtime({.threads = 2});
  std::atomic<int> asleep = 0;
  auto sleepy =
      run_of(0, -1) | map([&](int i) { return sleep_long(asleep, i); }, {.concurrency = 4});
  auto when_asleep = [&](int i) {
    wait_until([&] { return asleep == 4; });
    return i;
  };
  auto awake = from(numbers{-1}) | map(when_asleep, {.concurrency = 1});  // on one thread of two
  EXPECT_THAT(collect(runtime, combine(leave_after_two, awake, sleepy)), ElementsAre(0, 1));
}

TEST(Combine, CountsTheInputAndOutputOfTheCoroutine) {
  runtime runtime({.threads = 2});
  auto names = from(std::vector<std::string>{"one", "three"});
  auto stage = last_stage_of(runtime, combine(alternate, run_of(0, -1), names));
  EXPECT_EQ(stage.in, 5u);
  EXPECT_EQ(stage.out, 5u);
}

TEST(Combine, WhatTheCoroutineThrowsNamesIt) {
  runtime runtime({.threads = 1});
  auto failing = [](async_generator<int> in) -> async_generator<int> {
    co_await in.next();
    throw std::runtime_error("no");
    co_return;
  };
  EXPECT_THAT([&] { collect(runtime, combine(failing, run_of(0, 1))); },
              ThrowsMessage<stage_error>("combine: no"));
}

}  // namespace lade::merge_test
