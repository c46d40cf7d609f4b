#include <lade/batch.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/route.hpp>
#include <lade/route_batches.hpp>
#include <lade/run.hpp>
#include <lade/sample.hpp>
#include <lade/shuffle.hpp>
#include <lade/sleep.hpp>
#include <lade/through.hpp>

#include "../support/later.hpp"
#include "../support/pipelines.hpp"
#include "../support/resume.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace lade::route_test {

using namespace test;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;
using ints = std::vector<int>;

static int parity(int i) { return i % 2; }
static int by_three(int i) { return i % 3; }
static int itself(int i) { return i; }
static int negative(int i) { return -i; }
static int thousands(int i) { return 1000 * i; }
static int refuse(int i) { throw std::runtime_error("bad " + std::to_string(i)); }
static bool never(int) { return false; }

template <class T>
static std::vector<T> sorted(std::vector<T> items) {
  std::ranges::sort(items);
  return items;
}

TEST(Route, SendsEveryItemDownItsPath) {
  ints expected;
  for (int i = 0; i < 1000; ++i) expected.push_back(i % 2 ? -i : i);
  for (unsigned threads : {1u, 3u})
    for (unsigned concurrency : {1u, 4u}) {
      runtime runtime({.threads = threads});
      auto items = collect(
          runtime, from(numbers{1000}) | route(parity, map(itself, {.concurrency = concurrency}),
                                               map(negative, {.concurrency = concurrency})));
      EXPECT_EQ(sorted(items), sorted(expected));
    }
}

static sample captioned(int number) {
  auto made = sample("s" + std::to_string(number));
  if (number % 3 == 2) return made;
  return std::move(made).with_field(field("kind", number % 3 == 0 ? "photo" : "drawing"));
}
static int path_of_kind(const sample& each) { return each.field("kind").text() == "photo" ? 0 : 1; }
static sample seen_by(sample each, const char* path) {
  return std::move(each).with_field(field("path", path));
}

TEST(Route, DecidesByAFieldOfASample) {
  runtime runtime({.threads = 3});
  auto photos = map([](sample each) { return seen_by(std::move(each), "photo"); });
  auto drawings = map([](sample each) { return seen_by(std::move(each), "drawing"); });
  auto items = runtime.run(from(numbers{90}) | map(captioned) |
                           route(path_of_kind, {.on_error = on_error::skip}, photos, drawings));
  auto all = collect(items);
  ASSERT_THAT(all, SizeIs(60));
  for (auto& each : all) EXPECT_EQ(each.field("path").text(), each.field("kind").text());
  auto failures = items.failures();
  ASSERT_THAT(failures, SizeIs(30));
  for (auto& failure : failures) EXPECT_THAT(failure.what, HasSubstr("kind"));
}

TEST(Route, KeepsTheOrderWithinAPath) {
  runtime runtime({.threads = 3});
  auto items = collect(runtime, from(numbers{1000}) | route(parity, map(itself), map(itself)));
  ints even, odd;
  for (int i : items) (i % 2 ? odd : even).push_back(i);
  EXPECT_TRUE(std::ranges::is_sorted(even));
  EXPECT_TRUE(std::ranges::is_sorted(odd));
  EXPECT_THAT(items, SizeIs(1000));
}

TEST(Route, OfOnePathEqualsThatPath) {
  runtime runtime({.threads = 2});
  auto all = from(numbers{5}) | route([](int) { return false; }, map(thousands));
  EXPECT_THAT(collect(runtime, all), ElementsAre(0, 1000, 2000, 3000, 4000));
  EXPECT_THAT(collect(runtime, from(numbers{0}) | route(parity, map(itself), map(itself))),
              IsEmpty());
}

TEST(Route, ASlowPathDoesNotBlockAnother) {
  runtime runtime({.threads = 2});
  auto asleep = [](int) -> task<int> {
    co_await sleep(10min);
    co_return 0;
  };
  auto items = runtime.run(from(numbers{101}) |
                           route([](int i) { return i > 0; }, map(asleep), map(itself)));
  for (int i = 1; i <= 100; ++i) EXPECT_EQ(items.wait_next(), i);
}

TEST(Route, PathsMayBeChainsAndRoutesOfAnyDepth) {
  runtime runtime({.threads = 3});
  auto deep = chain(map(negative), chain(map(negative), chain(map(thousands))));
  auto inner = route([](int i) { return i / 2 % 2; }, map(itself),
                     route([](int i) { return i > 10; }, chain(), map(negative)));
  auto items = collect(runtime, from(numbers{16}) | route(parity, deep, inner));
  EXPECT_THAT(sorted(items), ElementsAre(-15, -11, 0, 1, 3, 5, 7, 9, 13, 2000, 4000, 6000, 8000,
                                         10000, 12000, 14000));
}

TEST(Route, APathMayDropItemsAndMakeMore) {
  runtime runtime({.threads = 3});
  auto twice = flat_map([](int i) { return ints{i, i}; });
  auto items = collect(runtime, from(numbers{6}) | route(by_three, filter(never), twice, chain()));
  EXPECT_THAT(sorted(items), ElementsAre(1, 1, 2, 4, 4, 5));
}

TEST(Route, PathsMayMakeBatchesOfDifferentSizes) {
  runtime runtime({.threads = 3});
  auto batches = from(numbers{11}) | route(parity, batch(4), batch({.size = 2, .drop_last = true}));
  for (int round = 0; round < 20; ++round)
    EXPECT_THAT(collect(runtime, batches),
                UnorderedElementsAre(ints{0, 2, 4, 6}, ints{8, 10}, ints{1, 3}, ints{5, 7}));
}

TEST(Route, TakesTheItemsOfAMerge) {
  runtime runtime({.threads = 3});
  auto add = [](int first) { return map([first](int i) { return first + i; }); };
  std::vector<pipeline<int>> inputs{from(numbers{300}) | add(0), from(numbers{200}) | add(300),
                                    from(numbers{0}), from(numbers{100}) | add(500)};
  for (auto order : {merge_order::turns, merge_order::weighted, merge_order::arrival}) {
    auto merged = merge(inputs, test::merged_in(order, {3, 2, 1, 1}));
    auto items = collect(runtime, merged | route(by_three, map(itself), chain(), prefetch(2)));
    EXPECT_EQ(sorted(items), up_to(600));
    int last[3][3] = {};  // of each path and input
    for (int i : items) {
      auto& before = last[by_three(i)][i < 300 ? 0 : i < 500 ? 1 : 2];
      ASSERT_LE(before, i);
      before = i;
    }
  }
}

static int second(int) { return 1; }

TEST(Route, AllItemsMayGoDownOnePathAlsoWhereItsBufferIsFull) {
  runtime runtime({.threads = 4});
  for (unsigned concurrency : {1u, 2u})
    for (unsigned buffer : {1u, 16u}) {
      std::atomic<int> taken = 0;
      auto count = [&](int i) { return ++taken, i; };
      auto when_full = [&, room = static_cast<int>(buffer) + 1](int i) {
        wait_until([&] { return taken >= room; });
        return i;
      };
      auto items = from(numbers{100}) | map(count, {.concurrency = 1}) |
                   route(second, {.buffer = buffer}, map(negative),
                         map(when_full, {.concurrency = concurrency}));
      EXPECT_EQ(collect(runtime, items), up_to(100));
    }
}

TEST(Route, AllItemsMayGoDownAPathThatFailsWhileItsBufferIsFull) {
  runtime runtime({.threads = 4});
  for (unsigned concurrency : {1u, 2u})
    for (unsigned buffer : {1u, 16u}) {
      std::atomic<int> taken = 0;
      auto count = [&](int i) { return ++taken, i; };
      auto refuse_when_full = [&, room = static_cast<int>(buffer) + 1](int i) {
        wait_until([&] { return taken >= room; });
        return refuse(i);
      };
      auto failing = [&](int end) {
        return from(numbers{end}) | map(count, {.concurrency = 1}) |
               route(second, {.buffer = buffer}, map(itself),
                     map(refuse_when_full, {.concurrency = concurrency, .name = "refuse"}));
      };
      EXPECT_THAT([&] { collect(runtime, failing(-1)); },
                  ThrowsMessage<stage_error>(StartsWith("refuse (0): bad 0")));
      taken = 0;
      auto items = runtime.run(failing(100), {.on_error = on_error::skip});
      EXPECT_THAT(collect(items), IsEmpty());
      EXPECT_THAT(items.failures(), SizeIs(100));
    }
}

TEST(Route, TakesItemsThatCannotBeCopied) {
  runtime runtime({.threads = 2});
  using owned = std::unique_ptr<int>;
  auto unwrap = map([](owned i) { return *i; });
  auto items = collect(runtime, from(numbers{10}) | map([](int i) { return owned(new int(i)); }) |
                                    route([](const owned& i) { return *i % 2; }, unwrap, unwrap));
  EXPECT_EQ(sorted(items), up_to(10));
}

TEST(Route, APathThatEndsDropsItsItemsAndBlocksNoOther) {
  runtime runtime({.threads = 3});
  for (auto behind : {1u, 4u}) {
    auto three = chain(take(3), map(negative, {.concurrency = behind}));
    auto items = collect(runtime, from(numbers{1000}) | route(parity, map(thousands), three));
    EXPECT_THAT(items, SizeIs(503));
    EXPECT_EQ(std::ranges::count_if(items, [](int i) { return i < 0; }), 3);
  }
  auto all_end = route(parity, take(2), take(3));
  EXPECT_THAT(sorted(collect(runtime, from(numbers{-1}) | all_end)), ElementsAre(0, 1, 2, 3, 5));
}

TEST(Route, APathThatNeverTakesAnItemBlocksNoOther) {
  runtime runtime({.threads = 2});
  auto items = collect(runtime, from(numbers{100}) | route(parity, repeat(0), chain()));
  EXPECT_THAT(items, SizeIs(50));
}

TEST(Route, APathThatWouldTakeItsItemsTwiceIsRefused) {
  runtime runtime({.threads = 2});
  auto again = from(numbers{10}) | route(parity, chain(), repeat(2));
  EXPECT_THAT(
      [&] { collect(runtime, again); },
      ThrowsMessage<stage_error>(HasSubstr("route: open path 1: it takes its items twice")));
}

TEST(Route, AnInvalidPathNumberFailsTheItem) {
  runtime runtime({.threads = 2});
  auto all = [](int number) {
    return from(std::vector<std::string>{"a.jpg", "b.jpg"}) |
           route([number](const std::string&) { return number; }, chain(), chain());
  };
  EXPECT_THAT([&] { collect(runtime, all(2)); },
              ThrowsMessage<stage_error>("route (a.jpg): choose a path: the router returned 2, and "
                                         "there are 2 paths, numbered from 0"));
  EXPECT_THAT([&] { collect(runtime, all(-1)); },
              ThrowsMessage<stage_error>("route (a.jpg): choose a path: the router returned -1, "
                                         "and there are 2 paths, numbered from 0"));
}

TEST(Route, AnInvalidPathNumberMayBeSkipped) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(numbers{9}) |
                           route(by_three, {.on_error = on_error::skip}, map(itself), map(itself)));
  EXPECT_THAT(sorted(collect(items)), ElementsAre(0, 1, 3, 4, 6, 7));
  EXPECT_THAT(items.failures(), SizeIs(3));
  EXPECT_EQ(items.failures().front().item, "2");
  auto stages = items.statistics().stages;
  auto route = std::ranges::find(stages, "route", &stage_statistics::name);
  EXPECT_EQ(route->skipped, 3u);
}

TEST(Route, ARouterThatThrowsFailsItsItem) {
  runtime runtime({.threads = 2});
  auto picky = [](int i) { return i < 5 ? 0 : refuse(i); };
  EXPECT_THAT([&] { collect(runtime, from(numbers{9}) | route(picky, chain())); },
              ThrowsMessage<stage_error>("route (5): bad 5"));
  auto named = route(
      picky, {.on_error = on_error::skip, .error_budget = {.count = 2}, .name = "kind"}, chain());
  EXPECT_THAT([&] { collect(runtime, from(numbers{9}) | named); },
              ThrowsMessage<stage_error>("kind (7): bad 7 (more failures than the budget allows)"));
}

TEST(Route, DeliversItemsBeforeAFailureOfTheSource) {
  runtime runtime({.threads = 3});
  for (int round = 0; round < 50; ++round) {
    auto failing = from(numbers{-1}) | map([](int i) { return i < 100 ? i : refuse(i); },
                                           {.concurrency = 1, .name = "refuse"});
    auto items = runtime.run(failing | route(parity, map(itself), map(itself)));
    ints all;
    EXPECT_THAT(
        [&] {
          while (auto item = items.wait_next()) all.push_back(*item);
        },
        ThrowsMessage<stage_error>("refuse (100): bad 100"));
    EXPECT_EQ(sorted(all), up_to(100));
    EXPECT_THAT(items.failures(), SizeIs(1));
  }
}

TEST(Route, DeliversPartialBatchesBeforeAFailureOfTheSource) {
  runtime runtime({.threads = 3});
  for (int round = 0; round < 50; ++round) {
    auto failing = from(numbers{-1}) | map([](int i) { return i < 7 ? i : refuse(i); },
                                           {.concurrency = 1, .name = "refuse"});
    auto items = runtime.run(failing | route(parity, batch(3), batch(2)));
    std::vector<ints> all;
    EXPECT_THAT(
        [&] {
          while (auto item = items.wait_next()) all.push_back(*item);
        },
        ThrowsMessage<stage_error>("refuse (7): bad 7"));
    EXPECT_THAT(all, UnorderedElementsAre(ints{0, 2, 4}, ints{6}, ints{1, 3}, ints{5}));
  }
}

TEST(Route, AFailureInAPathEndsTheRun) {
  runtime runtime({.threads = 3});
  auto bad = map([](int i) { return i == 7 ? refuse(i) : i; }, {.name = "refuse"});
  EXPECT_THAT([&] { collect(runtime, from(numbers{-1}) | route(parity, chain(), bad)); },
              ThrowsMessage<stage_error>("refuse (7): bad 7"));
}

TEST(Route, AFailureInAPathMayBeSkipped) {
  runtime runtime({.threads = 3});
  auto bad = map([](int i) { return i == 7 ? refuse(i) : i; }, {.name = "refuse"});
  auto items = collect(runtime, from(numbers{10}) | route(parity, chain(), bad),
                       {.on_error = on_error::skip});
  EXPECT_THAT(sorted(items), ElementsAre(0, 1, 2, 3, 4, 5, 6, 8, 9));
}

// While path 0 holds its first item, path 1 gets as many as the room before both paths allows.
TEST(Route, APathThatIsFullDoesNotStopTheOthersAtOnce) {
  runtime where({.threads = 4});
  gate held;
  auto hold = [&](int i) {
    if (i == 0) held.pass();
    return i;
  };
  auto items =
      where.run(from(numbers{40}) |
                route(parity, {.buffer = 4}, map(hold, {.concurrency = 1, .buffer = 0}), chain()));
  std::vector<int> of_other_path;
  // 0 is held, and 2 to 14 or more wait: the room of both paths but for what path 1 has itself.
  for (int i = 1; i <= 13; i += 2) of_other_path.push_back(*items.wait_next());
  EXPECT_THAT(of_other_path, ElementsAre(1, 3, 5, 7, 9, 11, 13));
  held.open();
  auto rest = collect(items);
  std::vector<int> of_held_path;
  for (auto each : rest)
    if (each % 2 == 0) of_held_path.push_back(each);
  EXPECT_THAT(of_held_path, SizeIs(20));
  EXPECT_TRUE(std::ranges::is_sorted(of_held_path));
}

TEST(Route, TakesNoMoreThanItsBuffersHold) {
  runtime runtime({.threads = 3});
  std::atomic<int> pulled = 0;
  auto counted = map([&](int i) { return ++pulled, i; }, {.concurrency = 1});
  auto items =
      runtime.run(from(numbers{-1}) | counted | route(parity, {.buffer = 3}, chain(), chain()));
  for (int i = 1; i <= 100; ++i) {
    items.wait_next();
    pause(10);
    // Before and in each path, behind them, at the route and ready.
    EXPECT_LE(pulled, i + 2 * (3 + 2) + 2 * 2 + 1 + 4);
  }
}

TEST(Route, CanBeLeftAtAnyTime) {
  runtime runtime({.threads = 3});
  auto ahead = route(parity, {.buffer = 1}, map(itself, {.concurrency = 2}),
                     route(by_three, chain(), prefetch(2), filter(never)));
  for (int count = 0; count < 100; ++count) {
    auto items = runtime.run(from(numbers{-1}) | ahead);
    for (int i = 0; i < count; ++i) EXPECT_TRUE(items.wait_next());
  }
}

TEST(Route, SaysThatItWasStopped) {
  runtime runtime({.threads = 3});
  for (int round = 0; round < 100; ++round) {
    auto items =
        runtime.run(from(numbers{-1}) | route(parity, {.buffer = 2}, map(itself), map(itself)));
    EXPECT_TRUE(items.wait_next());
    pause(round);
    items.stop();
    EXPECT_THAT(
        [&] {
          while (items.wait_next()) {}
        },
        ThrowsMessage<error>("run: stopped"));
  }
}

TEST(Route, SupportsConcurrentRuns) {
  runtime runtime({.threads = 3});
  auto all = from(numbers{1000}) | route(parity, map(itself), map(itself));
  auto one = runtime.run(all);
  auto other = runtime.run(all);
  ints of_one, of_other;
  for (int i = 0; i < 1000; ++i) {
    of_one.push_back(*one.wait_next());
    of_other.push_back(*other.wait_next());
  }
  EXPECT_EQ(sorted(of_one), up_to(1000));
  EXPECT_EQ(sorted(of_other), up_to(1000));
}

TEST(Route, MayBeRepeated) {
  runtime runtime({.threads = 2});
  auto twice = from(numbers{100}) | route(parity, map(itself), map(itself)) | repeat(2);
  EXPECT_THAT(collect(runtime, twice), SizeIs(200));
}

template <class T>
static std::vector<std::string> names_of_stages(runtime& where, const pipeline<T>& what) {
  auto items = where.run(what);
  collect(items);
  std::vector<std::string> names;
  for (auto& stage : items.statistics().stages) names.push_back(stage.name);
  return names;
}

TEST(Route, StatisticsNameItAndThenItsPaths) {
  runtime runtime({.threads = 2});
  auto inner =
      route(parity, {.name = "size"}, map(itself, {.name = "c"}), map(itself, {.name = "d"}));
  auto all = from(numbers{10}) |
             route(parity, {.name = "kind"},
                   chain(map(itself, {.name = "a"}), map(itself, {.name = "b"})), inner) |
             map(itself, {.name = "last"});
  EXPECT_THAT(names_of_stages(runtime, all),
              ElementsAre("source", "kind", "a", "b", "size", "c", "d", "last"));
}

TEST(Route, StatisticsCountItsItems) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(numbers{10}) | route(parity, chain(), filter(never)));
  collect(items);
  auto stages = items.statistics().stages;
  EXPECT_EQ(stages[1].name, "route");
  EXPECT_EQ(stages[1].in, 10u);
  EXPECT_EQ(stages[1].out, 5u);
}

// Every item with its lineage.
static async_generator<std::string> with_origins(async_generator<int> in) {
  while (auto* item = co_await in.next()) {
    auto text = std::to_string(*item) + " of " + to_string(in.origin());
    co_yield text;
  }
}

TEST(Route, ResultsHaveTheLineageOfTheirPath) {
  runtime runtime({.threads = 3});
  auto late = filter([](int i) { return i > 3; });
  auto all = from(numbers{7}) | route(parity, chain(), late) | through(with_origins);
  EXPECT_THAT(sorted(collect(runtime, all)),
              ElementsAre("0 of 0", "2 of 2", "4 of 4", "5 of 1, 3, 5", "6 of 6"));
}

TEST(Route, DroppedItemsAddTheirPositionsToTheNext) {
  runtime runtime({.threads = 2});
  auto skipping = route(by_three, {.on_error = on_error::skip}, chain(), chain());
  auto all = from(numbers{6}) | skipping | through(with_origins);
  EXPECT_THAT(sorted(collect(runtime, all)), ElementsAre("0 of 0", "1 of 1", "3 of 2-3", "4 of 4"));
}

// A random pipeline of numbers with routes in it, every time with other threads.
class random_routes {
 public:
  explicit random_routes(random draw) : draw_(draw), shape_(draw_()) {}

  pipeline<int> operator()() {
    random draw(shape_);
    auto list = from(up_to(static_cast<int>(draw.below(200))));
    if (draw.below(2)) list = list | shuffle({.seed = draw()});
    return list | path(draw, 3) | routed(draw, 2) | path(draw, 3);
  }

 private:
  // A path of `deep` stages at most.
  any_stage<int> path(random& draw, std::uint64_t deep) {
    any_stage<int> all{[](const pipeline<int>& in) { return in; }};
    for (auto stages = draw.below(deep + 1); stages > 0; --stages)
      all.add = [before = all, next = stage(draw)](const pipeline<int>& in) {
        return in | before | next;
      };
    return all;
  }

  any_stage<int> stage(random& draw) {
    auto concurrency = static_cast<unsigned>(1 + draw_.below(8));
    auto stage = [](auto made) {
      return any_stage<int>{[made](const pipeline<int>& in) -> pipeline<int> { return in | made; }};
    };
    switch (draw.below(7)) {
      case 0: return stage(map([](int i) { return i + 1; }, {.concurrency = concurrency}));
      case 1: return stage(filter([](int i) { return i % 3 != 0; }));
      case 2: return stage(prefetch(concurrency));
      case 3:
        return stage(map([](int i) { return i % 5 ? i : refuse(i); },
                         {.concurrency = concurrency, .on_error = on_error::skip}));
      case 4:
        return stage(map(itself, {.concurrency = concurrency, .order = item_order::completion}));
      case 5:
        return stage(
            map(same_later<int>, {.concurrency = concurrency, .order = item_order::completion}));
      default: return stage(chain());
    }
  }

  any_stage<int> routed(random& draw, int deep) {
    auto inner = [&] { return deep > 0 && draw.below(2) ? routed(draw, deep - 1) : path(draw, 2); };
    route_options options{.buffer = 1 + draw_.below(5), .on_error = on_error::skip};
    auto first = inner(), second = inner(), third = inner();
    auto numbers = 3 + draw.below(2);  // sometimes that of no path
    auto router = [numbers](int i) { return static_cast<unsigned>(i) % numbers; };
    return {[=](const pipeline<int>& in) -> pipeline<int> {
      return in | route(router, options, first, second, third);
    }};
  }

  random draw_;
  std::uint64_t shape_;
};

TEST(Route, ARunThatIsInterruptedDeliversEverythingOnce) {
  auto seed = new_seed();
  for (std::uint64_t i = 0; i < 200; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    runtime runtime({.threads = static_cast<unsigned>(1 + draw.below(4))});
    run_options options{.epoch = draw.below(5), .seed = draw()};
    random_routes make(draw);
    auto whole = collect(runtime, make(), options);
    auto parts = with_interruptions(runtime, std::ref(make), 1 + draw.below(60), options);
    ASSERT_EQ(sorted(parts), sorted(whole));
  }
}

// What a run says when it is asked for its state after an item.
template <class T>
static std::string refusal(const pipeline<T>& what) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(what);
  items.wait_next();
  try {
    items.state();
  } catch (const error& refused) {
    return refused.what();
  }
  return "none";
}

TEST(Route, HasNoStateWhereItWouldMixThePartsOfAnItem) {
  auto list = from(up_to(10));
  auto twice = flat_map([](int i) { return ints{i, i}; });
  auto why = HasSubstr("flat_map makes several items of one before route");
  EXPECT_THAT(refusal(list | twice | route(parity, chain(), chain())), why);
  EXPECT_THAT(refusal(list | route(parity, chain(), twice)), why);
  EXPECT_THAT(refusal(list | route(parity, chain(), chain()) | twice),
              HasSubstr("route is before a stage that makes several items of one"));
}

static async_generator<int> only_the_first(async_generator<int> in) {
  auto* item = co_await in.next();
  if (item) co_yield *item;
}

TEST(Route, HasNoStateOnceAPathHasEndedBeforeItsItems) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(
      from(up_to(100)) |
      route(parity, chain(), through(only_the_first, {.lineage = lineage_rule::consumed})));
  collect(items);
  EXPECT_THAT([&] { items.state(); },
              ThrowsMessage<error>(HasSubstr("a path of route has ended before its items")));
}

TEST(Route, ThatRequiresAStateEndsAtTheFirstItemForAPathThatHasEnded) {
  runtime runtime({.threads = 2});
  auto routed =
      from(up_to(100)) |
      route(parity, chain(), through(only_the_first, {.lineage = lineage_rule::consumed}));
  auto items = runtime.run(routed, {.require_state = true});
  EXPECT_THAT([&] { collect(items); },
              ThrowsMessage<error>(HasSubstr("a path of route has ended before its items")));
}

// Routes batches of 0, 1, 2, ... of the given size.
template <class... Paths>
static pipeline<ints> batched(int items, std::size_t size, Paths... paths) {
  return from(numbers{items}) | batch(size) | route_batches(parity, std::move(paths)...);
}

// A function of numbers for vectors of them.
template <class F>
static auto each(F function) {
  return [function](ints items) {
    for (auto& item : items) item = function(item);
    return items;
  };
}

TEST(RouteBatches, JoinsThePartsOfEveryBatch) {
  for (unsigned threads : {1u, 3u})
    for (unsigned concurrency : {1u, 4u}) {
      runtime runtime({.threads = threads});
      auto all = batched(10, 4, map(each(itself), {.concurrency = concurrency}),
                         map(each(negative), {.concurrency = concurrency}));
      EXPECT_THAT(
          collect(runtime, all),
          ElementsAre(ElementsAre(0, 2, -1, -3), ElementsAre(4, 6, -5, -7), ElementsAre(8, -9)));
    }
}

TEST(RouteBatches, KeepsTheOrderOfMany) {
  runtime runtime({.threads = 4});
  auto deep = chain(map(each(itself), {.concurrency = 3}), chain(chain(), map(each(thousands))));
  auto inner =
      route_batches([](int i) { return i % 3 == 0; }, map(each(itself)), map(each(negative)));
  auto batches = collect(runtime, batched(6000, 6, deep, inner));
  ASSERT_THAT(batches, SizeIs(1000));
  for (int i = 0; i < 1000; ++i) {
    auto at = 6 * i;
    ASSERT_THAT(
        batches[static_cast<std::size_t>(i)],
        ElementsAre(1000 * at, 1000 * (at + 2), 1000 * (at + 4), at + 1, at + 5, -(at + 3)));
  }
}

TEST(RouteBatches, SendsNoEmptyPart) {
  runtime runtime({.threads = 2});
  std::atomic<int> seen = 0;
  auto never_empty = map([&](ints part) {
    EXPECT_FALSE(part.empty());
    ++seen;
    return part;
  });
  auto evens = from(numbers{10}) | filter([](int i) { return i % 2 == 0; }) | batch(2);
  auto all = evens | route_batches(parity, never_empty, never_empty);
  EXPECT_THAT(collect(runtime, all), SizeIs(3));
  EXPECT_EQ(seen, 3);
}

TEST(RouteBatches, AnInvalidPathNumberFailsTheItem) {
  runtime runtime({.threads = 2});
  auto batches = from(numbers{9}) | batch(3);
  EXPECT_THAT([&] { collect(runtime, batches | route_batches(by_three, chain(), chain())); },
              ThrowsMessage<stage_error>("route_batches (2): choose a path: the router returned 2, "
                                         "and there are 2 paths, numbered from 0"));
  route_options skipping{.on_error = on_error::skip};
  EXPECT_THAT(collect(runtime, batches | route_batches(by_three, skipping, chain(), chain())),
              ElementsAre(ElementsAre(0, 1), ElementsAre(3, 4), ElementsAre(6, 7)));
  auto none = [](int) { return 9; };
  EXPECT_THAT(collect(runtime, batches | route_batches(none, skipping, chain())),
              ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
}

TEST(RouteBatches, ARateOfFailuresIsOneOfItems) {
  runtime runtime({.threads = 2});
  auto tenth_to_no_path = [](int i) { return i % 10 == 0 ? 9 : 0; };
  auto with = [&](double rate) {
    route_options options{.on_error = on_error::skip,
                          .error_budget = {.rate = rate, .probation = 5}};
    return from(numbers{200}) | batch(20) | route_batches(tenth_to_no_path, options, chain());
  };
  EXPECT_THAT(collect(runtime, with(0.11)), SizeIs(10));
  EXPECT_THAT([&] { collect(runtime, with(0.09)); },
              ThrowsMessage<stage_error>(HasSubstr("more failures than the budget allows")));
}

TEST(RouteBatches, APathThatEndsEarlyIsNamed) {
  runtime runtime({.threads = 2});
  EXPECT_THAT([&] { collect(runtime, batched(-1, 4, chain(), take(2))); },
              ThrowsMessage<stage_error>(
                  "route_batches: join the vectors of path 1: it yielded no vector for items 8-11; "
                  "a path must yield one vector per part, in order"));
}

TEST(RouteBatches, APartOfTheSameItemIsNotMistakenForAMissingOne) {
  runtime runtime({.threads = 2});
  auto halves = flat_map([](int i) { return std::vector{ints{2 * i}, ints{2 * i + 1}}; });
  auto refuse_first = [](ints part) {
    if (part.front() == 0) throw std::runtime_error("broken");
    return part;
  };
  auto skipping = map(refuse_first, {.on_error = on_error::skip});
  auto to_first = [](int) { return 0; };
  auto parts = from(numbers{4}) | halves | route_batches(to_first, skipping, chain());
  EXPECT_THAT([&] { collect(runtime, parts); },
              ThrowsMessage<stage_error>(
                  HasSubstr("path 0: it yielded 2 parts of items 0 instead of 1 part")));
}

TEST(RouteBatches, APathThatYieldsMoreIsNamed) {
  runtime runtime({.threads = 2});
  auto twice = flat_map([](ints part) { return std::vector{part, part}; });
  EXPECT_THAT(
      [&] { collect(runtime, batched(8, 4, twice, chain())); },
      ThrowsMessage<stage_error>(HasSubstr("path 0: it yielded items 0-3 instead of items 4-7")));
  EXPECT_THAT(
      [&] { collect(runtime, batched(4, 4, chain(), twice)); },
      ThrowsMessage<stage_error>(HasSubstr("path 1: it yielded more vectors than it received")));
}

static bool without_five(const ints& part) { return std::ranges::find(part, 5) == part.end(); }

TEST(RouteBatches, APathThatDropsAPartIsNamed) {
  runtime runtime({.threads = 2});
  EXPECT_THAT(
      [&] { collect(runtime, batched(100, 4, chain(), filter(without_five))); },
      ThrowsMessage<stage_error>(HasSubstr("path 1: it yielded items 4-11 instead of items 4-7")));
  EXPECT_THAT([&] { collect(runtime, batched(8, 4, chain(), filter(without_five))); },
              ThrowsMessage<stage_error>(HasSubstr("path 1: it yielded no vector for items 4-7")));
}

// After the part that is dropped no further one comes to the path.
TEST(RouteBatches, APathThatDropsItsLastPartDoesNotHang) {
  for (unsigned threads : {1u, 3u})
    for (unsigned concurrency : {1u, 4u}) {
      runtime runtime({.threads = threads});
      auto all = from(numbers{-1}) | batch(4) |
                 route_batches([](int i) { return i == 5; }, {.buffer = 3},
                               map(each(itself), {.concurrency = concurrency}),
                               chain(map(each(itself), {.concurrency = concurrency}),
                                     filter(without_five), map(each(itself))));
      EXPECT_THAT(
          [&] { collect(runtime, all); },
          ThrowsMessage<stage_error>(HasSubstr("path 1: it yielded no vector for items 4-7")));
    }
}

static task<ints> pass_when_set(event& opened, ints part) {
  co_await opened;
  co_return part;
}

TEST(RouteBatches, APathThatIsOnlySlowIsWaitedFor) {
  runtime runtime({.threads = 3});
  event opened;
  std::atomic<int> started = 0;
  auto slow = map([&](ints part) { return pass_when_set(opened, std::move(part)); });
  auto counted = map([&](ints part) {
    ++started;
    return part;
  });
  auto all = from(numbers{-1}) | batch(4) |
             route_batches([](int i) { return i == 5; }, {.buffer = 5}, counted, slow);
  auto items = runtime.run(all);
  EXPECT_THAT(*items.wait_next(), ElementsAre(0, 1, 2, 3));
  wait_until([&] { return started >= 6; });  // as many as may start
  pause(1000);
  opened.set();
  EXPECT_THAT(*items.wait_next(), ElementsAre(4, 6, 7, 5));
}

static task<int> parity_later(int i) {
  co_await sleep(std::chrono::microseconds(10));
  co_return i % 2;
}

TEST(Route, ARouterMayReturnATask) {
  runtime where({.threads = 2});
  auto items = from(numbers{20}) | route(parity_later, map(itself), map(negative));
  EXPECT_EQ(sorted(collect(where, items)),
            sorted(collect(where, from(numbers{20}) | route(parity, map(itself), map(negative)))));
}

TEST(Route, ATaskOfARouterThatThrowsFailsItsItem) {
  auto refuses_two = [](int i) -> task<int> {
    co_await sleep(std::chrono::microseconds(10));
    if (i == 2) throw std::runtime_error("two");
    co_return i == 3 ? 7 : 0;
  };
  runtime where({.threads = 2});
  auto routed = [&](on_error policy) {
    return from(numbers{5}) |
           route(refuses_two, {.on_error = policy, .name = "kind"}, map(itself), map(itself));
  };
  EXPECT_THAT(sorted(collect(where, routed(on_error::skip))), ElementsAre(0, 1, 4));
  EXPECT_THAT([&] { collect(where, routed(on_error::fail)); },
              ThrowsMessage<stage_error>(HasSubstr("kind")));
}

// The larger half of a batch goes to path 1.
static std::vector<int> larger_half(const ints& batch) {
  auto sorted_batch = sorted(batch);
  std::vector<int> paths;
  for (auto each : batch) paths.push_back(each >= sorted_batch[batch.size() / 2] ? 1 : 0);
  return paths;
}

static task<std::vector<int>> larger_half_later(const ints& batch) {
  co_await sleep(std::chrono::microseconds(10));
  co_return larger_half(batch);
}

TEST(RouteBatches, ARouterMaySeeTheWholeBatch) {
  runtime where({.threads = 2});
  auto batches = from(numbers{10}) | batch(4);
  for (auto& routed :
       {batches | route_batches(larger_half, map(each(itself)), map(each(negative))),
        batches | route_batches(larger_half_later, map(each(itself)), map(each(negative)))})
    EXPECT_THAT(collect(where, routed),
                ElementsAre(ints{0, 1, -2, -3}, ints{4, 5, -6, -7}, ints{8, -9}));
}

TEST(RouteBatches, ARouterOfBatchesThatThrowsFailsTheBatch) {
  auto refuses_second = [](const ints& batch) {
    if (batch.front() == 4) throw std::runtime_error("four");
    return larger_half(batch);
  };
  runtime where({.threads = 2});
  auto routed = [&](on_error policy) {
    return from(numbers{10}) | batch(4) |
           route_batches(refuses_second, {.on_error = policy}, chain(), chain());
  };
  auto run = where.run(routed(on_error::skip));
  EXPECT_THAT(collect(run), ElementsAre(ints{0, 1, 2, 3}, ints{}, ints{8, 9}));
  EXPECT_THAT(run.failures(), SizeIs(1));
  EXPECT_THAT([&] { collect(where, routed(on_error::fail)); },
              ThrowsMessage<stage_error>(HasSubstr("four")));
}

TEST(RouteBatches, ARouterOfBatchesMustReturnAPathForEachItem) {
  auto one_short = [](const ints& batch) { return std::vector<int>(batch.size() - 1); };
  auto no_path = [](const ints& batch) { return std::vector<int>(batch.size(), 2); };
  runtime where({.threads = 2});
  auto batches = from(numbers{4}) | batch(4);
  EXPECT_THAT([&] { collect(where, batches | route_batches(one_short, chain(), chain())); },
              ThrowsMessage<stage_error>(HasSubstr("returned 3 for a batch of 4 items")));
  EXPECT_THAT(
      [&] { collect(where, batches | route_batches(no_path, chain(), chain())); },
      ThrowsMessage<stage_error>(HasSubstr("the router returned 2, and there are 2 paths")));
}

TEST(RouteBatches, StartsNoMoreBatchesThanItsBuffer) {
  runtime runtime({.threads = 3});
  std::atomic<int> pulled = 0;
  auto counted = map(
      [&](ints part) {
        ++pulled;
        return part;
      },
      {.concurrency = 1});
  auto items = runtime.run(from(numbers{-1}) | batch(2) | counted |
                           route_batches(parity, {.buffer = 3}, chain(), chain()));
  for (int i = 1; i <= 100; ++i) {
    items.wait_next();
    pause(10);
    EXPECT_LE(pulled, i + 3 + 1 + 4);
  }
}

TEST(RouteBatches, AFailureInAPathEndsTheRunBehindTheBatchesBefore) {
  runtime runtime({.threads = 3});
  auto bad = map(each([](int i) { return i == 21 ? refuse(i) : i; }), {.name = "refuse"});
  auto items = runtime.run(batched(-1, 4, chain(), bad));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(items.wait_next());
  EXPECT_THAT([&] { items.wait_next(); },
              ThrowsMessage<stage_error>("refuse (item 20-23): bad 21"));
}

TEST(RouteBatches, DeliversItemsBeforeAFailureOfTheSource) {
  runtime runtime({.threads = 3});
  auto failing = from(numbers{-1}) | batch(2) |
                 map(each([](int i) { return i < 100 ? i : refuse(i); }),
                     {.concurrency = 1, .name = "refuse"});
  auto items = runtime.run(failing | route_batches(parity, map(each(itself)), chain()));
  for (int i = 0; i < 50; ++i) EXPECT_THAT(*items.wait_next(), ElementsAre(2 * i, 2 * i + 1));
  EXPECT_THAT([&] { items.wait_next(); },
              ThrowsMessage<stage_error>("refuse (item 100-101): bad 100"));
}

// The pause lets the paths end, in most of the runs. Then the source is stopped, or fails first.
TEST(RouteBatches, PathsThatEndBeforeTheSourceFailTheRun) {
  runtime runtime({.threads = 4});
  auto fail_late = [](int i) {
    if (i < 4) return i;
    pause(2);
    return refuse(i);
  };
  auto failing =
      from(numbers{-1}) | batch(4) | map(each(fail_late), {.concurrency = 1, .name = "refuse"});
  auto one_part = [] { return chain(take(1), map(each(itself), {.concurrency = 1})); };
  auto all = failing | route_batches(parity, one_part(), one_part());
  for (int round = 0; round < 100; ++round) EXPECT_THROW(collect(runtime, all), error);
}

TEST(RouteBatches, CanBeLeftAndStoppedAtAnyTime) {
  runtime runtime({.threads = 3});
  auto all = batched(-1, 4, map(each(itself), {.concurrency = 2}), chain());
  for (int count = 0; count < 100; ++count) {
    auto items = runtime.run(all);
    for (int i = 0; i < count; ++i) EXPECT_TRUE(items.wait_next());
    if (count % 2) continue;
    items.stop();
    EXPECT_THAT(
        [&] {
          while (items.wait_next()) {}
        },
        ThrowsMessage<error>("run: stopped"));
  }
}

static async_generator<std::string> origins_of_batches(async_generator<ints> in) {
  while (co_await in.next()) {
    auto text = to_string(in.origin());
    co_yield text;
  }
}

TEST(RouteBatches, BatchesHaveTheLineageThatTheyHadBefore) {
  runtime runtime({.threads = 2});
  auto all = from(numbers{12}) | filter([](int i) { return i % 3 > 0; }) | batch(4) |
             route_batches(parity, {.on_error = on_error::skip}, chain()) |
             through(origins_of_batches);
  EXPECT_THAT(collect(runtime, all), ElementsAre("0-5", "6-11"));
}

TEST(RouteBatches, ARunThatIsInterruptedDeliversEverythingOnce) {
  auto seed = new_seed();
  for (std::uint64_t i = 0; i < 100; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    runtime runtime({.threads = static_cast<unsigned>(1 + draw.below(4))});
    auto size = static_cast<int>(draw.below(200));
    auto of_batch = 1 + draw.below(7);
    auto concurrency = static_cast<unsigned>(1 + draw.below(5));
    auto make = [&] {
      return from(up_to(size)) | shuffle({.seed = seed}) | batch(of_batch) |
             route_batches(by_three, {.buffer = 1 + draw.below(5), .on_error = on_error::skip},
                           map(each(itself), {.concurrency = concurrency}), chain());
    };
    auto whole = collect(runtime, make());
    ASSERT_EQ(with_interruptions(runtime, make, 1 + draw.below(20)), whole);
  }
}

TEST(RouteBatches, StatisticsNameItAndThenItsPaths) {
  runtime runtime({.threads = 2});
  auto all = batched(8, 4, map(each(itself), {.name = "a"}), map(each(itself), {.name = "b"}));
  EXPECT_THAT(names_of_stages(runtime, all),
              ElementsAre("source", "batch", "route_batches", "a", "b"));
}

}  // namespace lade::route_test
