#include <lade/batch.hpp>
#include <lade/cut.hpp>
#include <lade/event.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/sample.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/sleep.hpp>

#include "../support/pipelines.hpp"
#include "../support/relay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <pthread.h>

namespace lade::map_test {

using test::collect;
using test::counted;
using test::numbers;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::ThrowsMessage;

TEST(Map, KeepsTheOrderOfItsInputWhateverTheDelaysFailuresAndSkips) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  runtime runtime({.threads = 3});
  auto slow = [&](int i) {
    random draw(seed, i);
    test::pause(static_cast<int>(draw.below(4)));
    if (draw.below(5) == 0) throw std::runtime_error("bad");
    return i;
  };
  std::vector<int> kept;
  for (int i = 0; i < 400; ++i) {
    random draw(seed, i);
    draw.below(4);
    if (draw.below(5) != 0) kept.push_back(i);
  }
  for (unsigned concurrency : {1u, 2u, 5u, 16u})
    for (unsigned buffer : {0u, 1u, 30u}) {
      auto items = runtime.run(
          from(numbers{400}) |
          map(slow, {.concurrency = concurrency, .buffer = buffer, .on_error = on_error::skip}));
      ASSERT_EQ(collect(items), kept);
      auto failures = items.failures();
      ASSERT_EQ(failures.size(), 400 - kept.size());
      for (auto& failure : failures) EXPECT_EQ(failure.what, "bad");
    }
}

static task<int> end_in_turn(test::relay& turns, int i, bool fails) {
  co_await turns.turn_of(i);
  if (fails) throw std::runtime_error("bad");
  co_return i;
}

TEST(Map, OfTasksKeepsTheOrderOfItsInputWhicheverEndFirstOrFail) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr int count = 240;
  runtime runtime({.threads = 2, .reactors = 1});
  auto fails = [seed](int i) { return random(seed, i).below(4) == 0; };
  std::vector<int> kept;
  for (int i = 0; i < count; ++i)
    if (!fails(i)) kept.push_back(i);
  for (unsigned concurrency : {1u, 4u, 16u})
    for (unsigned buffer : {0u, 1u, 30u}) {
      test::relay turns(test::mixed_in_groups(count, static_cast<int>(concurrency),
                                              random(seed, concurrency, buffer)));
      auto mixed = [&](int i) { return end_in_turn(turns, i, fails(i)); };
      auto items = runtime.run(
          from(numbers{count}) |
          map(mixed, {.concurrency = concurrency, .buffer = buffer, .on_error = on_error::skip}));
      ASSERT_EQ(collect(items), kept) << concurrency << " at a time, buffer " << buffer;
      ASSERT_EQ(items.failures().size(), count - kept.size());
    }
}

// A sample of each number: its text, and half of it where it is even.
static sample with_fields_of(int number) {
  auto made = sample("s" + std::to_string(number))
                  .with_field(field("txt", "text " + std::to_string(number)));
  return number % 2 == 0 ? std::move(made).with_field(field("half", number / 2)) : made;
}

TEST(Map, FunctionsReadAndAddFieldsOfSamplesByTheirNames) {
  runtime runtime({.threads = 3});
  auto count = [](sample each) {
    auto letters = static_cast<std::int64_t>(each.field("txt").text().size());
    return std::move(each).with_field(field("letters", letters)).without_field("txt");
  };
  auto samples = from(numbers{120}) | map(with_fields_of) | map(count, {.concurrency = 4});
  auto all = test::collect(runtime, samples);
  ASSERT_THAT(all, SizeIs(120));
  for (int i = 0; i < 120; ++i) {
    auto& made = all[static_cast<std::size_t>(i)];
    EXPECT_EQ(made.key(), "s" + std::to_string(i));
    EXPECT_EQ(made.field("letters").integer(), i < 10 ? 6 : i < 100 ? 7 : 8);
    EXPECT_EQ(made.find_field("txt"), nullptr);
  }
}

TEST(Map, AFieldThatASampleLacksIsAFailureThatNamesBoth) {
  runtime runtime({.threads = 2});
  auto half = [](sample each) { return each.field("half").integer(); };
  auto halves = runtime.run(from(numbers{6}) | map(with_fields_of) |
                            map(half, {.concurrency = 2, .on_error = on_error::skip}));
  EXPECT_THAT(collect(halves), ElementsAre(0, 1, 2));
  auto failures = halves.failures();
  ASSERT_THAT(failures, SizeIs(3));
  for (auto& failure : failures)
    EXPECT_THAT(failure.what, testing::AllOf(HasSubstr(failure.item), HasSubstr("half")));
}

// Names how many are read at a time where nothing else does.
struct fetch_pages {
  static constexpr unsigned default_concurrency = 24;
  task<int> operator()(int i) const { co_return i; }
};

TEST(Map, AFunctionNamesItsConcurrencyIfTheOptionsDoNot) {
  runtime runtime({.threads = 2});
  auto workers = [&](const map_options& options) {
    auto items = runtime.run(from(numbers{3}) | map(fetch_pages(), options));
    EXPECT_THAT(collect(items), ElementsAre(0, 1, 2));
    return items.statistics().stages.at(1).workers;
  };
  EXPECT_EQ(workers({}), 24u);
  EXPECT_EQ(workers({.concurrency = 7}), 7u);
}

TEST(Map, ItemsWhoseCallsAStopHasEndedAreLeftForTheNextRun) {
  runtime runtime({.threads = 2});
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> calls = 0;
    auto wait_for_ever = [&](int i) -> task<int> {
      ++calls;
      co_await sleep(std::chrono::hours(1));
      co_return i;
    };
    auto run = runtime.run(from(numbers{3}) | map(wait_for_ever), {.on_error = on_error::skip});
    test::wait_until([&] { return calls == 3; });
    run.stop();
    EXPECT_THROW(run.wait_next(), error);
    auto rest =
        runtime.run(from(numbers{3}) | map([](int i) { return i; }), {.state = run.state()});
    ASSERT_THAT(collect(rest), ElementsAre(0, 1, 2)) << "round " << round;
  }
}

TEST(Map, TheFirstFailureInInputOrderIsTheRunsFailure) {
  runtime runtime({.threads = 4});
  test::gate later;
  auto fail = [&](int i) -> int {
    if (i == 2) later.pass();
    if (i >= 2) {
      later.open();
      throw std::runtime_error("no " + std::to_string(i));
    }
    return i;
  };
  auto items = runtime.run(from(numbers{50}) | map(fail, {.concurrency = 4}));
  EXPECT_EQ(items.wait_next(), 0);
  EXPECT_EQ(items.wait_next(), 1);
  try {
    items.wait_next();
    ADD_FAILURE();
  } catch (const stage_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("map (2): no 2"));
  }
}

TEST(Map, InCompletionOrderTheFastOvertakeTheSlow) {
  runtime runtime({.threads = 2});
  test::gate gate;
  auto slow_first = [&](int i) {
    if (i == 0) gate.pass();
    return i;
  };
  auto items = runtime.run(
      from(numbers{5}) |
      map(slow_first, {.concurrency = 2, .buffer = 8, .order = item_order::completion}));
  std::vector<int> order;
  for (int i = 0; i < 4; ++i) order.push_back(items.wait_next().value());
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
  gate.open();
  EXPECT_EQ(items.wait_next(), 0);
  EXPECT_FALSE(items.wait_next());
}

TEST(Map, InCompletionOrderNothingIsLost) {
  runtime runtime({.threads = 3});
  for (unsigned concurrency : {1u, 3u, 8u}) {
    auto all = collect(runtime, from(numbers{500}) | map(
                                                         [](int i) {
                                                           test::pause(i % 3);
                                                           return i;
                                                         },
                                                         {.concurrency = concurrency,
                                                          .buffer = concurrency / 2,
                                                          .order = item_order::completion}));
    std::ranges::sort(all);
    ASSERT_EQ(all.size(), 500u);
    for (int i = 0; i < 500; ++i) ASSERT_EQ(all[static_cast<std::size_t>(i)], i);
  }
}

TEST(Map, TakesExactlyItsCapacityWhenItsFunctionsBlock) {
  runtime runtime({.threads = 6});
  for (auto order : {item_order::input, item_order::completion})
    for (unsigned buffer : {0u, 1u, 5u}) {
      std::atomic<int> taken = 0;
      test::gate gate;
      auto blocked = [&](int i) {
        gate.pass();
        return i;
      };
      auto items = runtime.run(from([&] { return counted(taken); }) |
                               map(blocked, {.concurrency = 3, .buffer = buffer, .order = order}));
      auto room = static_cast<int>(3 + buffer);
      test::wait_until([&] { return taken == room; });
      gate.wait_for(3);
      test::pause(20);
      EXPECT_EQ(taken, room);
      gate.open();
    }
}

static task<int> sleep_forever(int i) {
  co_await sleep(std::chrono::hours(10));
  co_return i;
}

TEST(Map, OfTasksTakesExactlyItsCapacity) {
  runtime runtime({.threads = 2});
  std::atomic<int> taken = 0;
  auto items = runtime.run(from([&] { return counted(taken); }) |
                           map(sleep_forever, {.concurrency = 50, .buffer = 20}));
  test::wait_until([&] { return taken == 70; });
  test::pause(20);
  EXPECT_EQ(taken, 70);
}

TEST(Map, AStalledConsumerBoundsWhatIsTaken) {
  runtime runtime({.threads = 2});
  std::atomic<int> taken = 0;
  auto same = [](int i) { return i; };
  auto items = runtime.run(from([&] { return counted(taken); }) |
                               map(same, {.concurrency = 2, .buffer = 3}) |
                               map(same, {.concurrency = 2, .buffer = 4}),
                           {.ready = 1});
  EXPECT_EQ(items.wait_next(), 0);
  test::pause(50);
  EXPECT_LE(taken, 1 + 5 + 6 + 3);
}

TEST(Map, CallsAtMostAsManyFunctionsAtATimeAsItMay) {
  runtime runtime({.threads = 6});
  for (unsigned concurrency : {1u, 2u, 4u}) {
    test::occupancy functions;
    auto counting = [&](int i) {
      functions.enter();
      test::pause(2);
      functions.leave();
      return i;
    };
    collect(runtime, from(numbers{100}) | map(counting, {.concurrency = concurrency}));
    EXPECT_LE(functions.most(), static_cast<int>(concurrency));
  }
}

TEST(Map, CallsPlainFunctionsOnThePoolAndTasksOnTheReactor) {
  runtime runtime({.threads = 2});
  auto plain = [&](int) { return detail::this_executor == &runtime.pool(); };
  auto asynchronous = [&](int) -> task<bool> {
    bool here = detail::this_executor == &runtime.reactor();
    co_return here;
  };
  for (unsigned concurrency : {1u, 4u}) {
    auto on_pool = collect(runtime, from(numbers{20}) | map(plain, {.concurrency = concurrency}));
    EXPECT_EQ(on_pool, std::vector<bool>(20, true));
    auto on_reactor =
        collect(runtime, from(numbers{20}) | map(asynchronous, {.concurrency = concurrency}));
    EXPECT_EQ(on_reactor, std::vector<bool>(20, true));
  }
}

TEST(Map, DistributesTasksOverAllReactors) {
  runtime runtime({.threads = 1, .reactors = 2});
  event both;
  std::atomic<int> started = 0;
  auto where = [&](int) -> task<detail::executor*> {
    auto* here = detail::this_executor;
    if (++started == 2) both.set();
    co_await both;
    co_return here;
  };
  auto executors = collect(runtime, from(numbers{2}) | map(where, {.concurrency = 2}));
  EXPECT_THAT(executors, testing::UnorderedElementsAre(&runtime.reactor(0), &runtime.reactor(1)));
}

TEST(Map, OfConcurrencyOneRunsWhenTheNextStageAsks) {
  runtime runtime({.threads = 4});
  std::atomic<int> calls = 0;
  auto counting = [&](int i) {
    ++calls;
    return i;
  };
  auto items = runtime.run(from(numbers{100}) | map(counting, {.concurrency = 1}), {.ready = 1});
  items.wait_next();
  test::pause(20);
  EXPECT_LE(calls, 3);  // taken, ready, and waiting to be ready
}

TEST(Map, PassesItemsThatOnlyMove) {
  runtime runtime({.threads = 2});
  auto make = [](int i) { return std::make_unique<int>(i); };
  auto add = [](std::unique_ptr<int> item) {
    ++*item;
    return item;
  };
  auto add_later = [](std::unique_ptr<int> item) -> task<std::unique_ptr<int>> {
    ++*item;
    co_return std::move(item);
  };
  auto made = from(numbers{50}) | map(make) | map(add, {.concurrency = 1}) | map(add_later) |
              filter([](const std::unique_ptr<int>& item) { return *item % 2 == 0; }) |
              shuffle({.window = 4}) | shard({.rank = 0, .world = 1}) | batch(4) | unbatch();
  int sum = 0;
  for (auto& item : runtime.run(made)) sum += *item;
  EXPECT_EQ(sum, 25 * 26);
  EXPECT_THROW((from(numbers{1}) | map(make) | shard({.world = 2, .remainder = remainder::pad})),
               error);
}

// An aggregate that owns: GCC 12 is wrong about these in many places.
struct owner {
  std::string name;
  std::shared_ptr<int> value;
  std::string doubled() const { return name + name; }
};

TEST(Map, PassesAggregatesThatOwnAndDestroysThemOnce) {
  runtime runtime({.threads = 2});
  auto shared = std::make_shared<int>(7);
  auto make = [&](int i) { return owner{std::string(100, static_cast<char>('a' + i)), shared}; };
  auto pass = [](owner item) -> task<owner> { co_return item; };
  {
    auto made = from(numbers{20}) | map(make) | map(pass) |
                filter([](const owner& item) { return item.name[0] != 'b'; });
    std::size_t length = 0;
    for (auto& item : runtime.run(made)) length += item.name.size();
    EXPECT_EQ(length, 1900u);
  }
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(Map, TakesPointersToMembersAndFunctionObjects) {
  runtime runtime({.threads = 2});
  std::vector<owner> owners{{"ab", nullptr}, {"cd", nullptr}};
  EXPECT_THAT(collect(runtime, from(owners) | map(&owner::name)), ElementsAre("ab", "cd"));
  EXPECT_THAT(collect(runtime, from(owners) | map(&owner::doubled)), ElementsAre("abab", "cdcd"));
  EXPECT_THAT(collect(runtime, from(std::vector<int>{1, 2}) | map(std::negate<int>{}) |
                                   map([](int i) { return -i; })),
              ElementsAre(1, 2));
}

static std::vector<std::uint64_t> draws(runtime& runtime, const map_options& options,
                                        const run_options& run = {}, bool second_stage = false) {
  auto draw = [](int, random numbers) { return numbers(); };
  pipeline<int> items = from(numbers{200});
  if (second_stage) items = items | filter([](int) { return true; });
  return collect(runtime, items | map(draw, options), run);
}

TEST(Map, RandomNumbersDependOnSeedEpochPositionAndStageAlone) {
  runtime one({.threads = 1});
  runtime many({.threads = 5});
  auto expected = draws(one, {.concurrency = 1});
  EXPECT_EQ(std::set(expected.begin(), expected.end()).size(), 200u);
  EXPECT_EQ(draws(one, {.concurrency = 7}), expected);
  EXPECT_EQ(draws(many, {.concurrency = 5, .buffer = 1}), expected);
  EXPECT_NE(draws(one, {}, {.epoch = 1}), expected);
  EXPECT_NE(draws(one, {}, {.seed = 1}), expected);
  EXPECT_NE(draws(one, {}, {}, true), expected);
}

TEST(Map, PartsOfOneItemDrawDifferentNumbers) {
  runtime runtime({.threads = 2});
  auto draw = [](int, random numbers) { return numbers(); };
  auto parts = from(numbers{10}) | flat_map([](int i) { return std::vector<int>(5, i); });
  for (unsigned concurrency : {1u, 4u}) {
    auto all = collect(runtime, parts | map(draw, {.concurrency = concurrency}));
    EXPECT_EQ(std::set(all.begin(), all.end()).size(), 50u);
    EXPECT_EQ(all, collect(runtime, parts | map(draw, {.concurrency = 3})));
  }
}

TEST(Map, RoundsOfARepeatedStreamDrawDifferentNumbers) {
  runtime runtime({.threads = 2});
  auto draw = [](int, random numbers) { return numbers(); };
  auto all =
      collect(runtime, from(numbers{10}) | map([](int i) { return i; }) | repeat(3) | map(draw));
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), 30u);
}

struct point {
  int x;
  int y;
  int sum() const { return x + y; }
};

TEST(Map, TakesPointersToMembers) {
  runtime runtime({.threads = 2});
  auto points = from(std::vector{point{1, 2}, point{3, 4}});
  EXPECT_THAT(collect(runtime, points | map(&point::y)), ElementsAre(2, 4));
  EXPECT_THAT(collect(runtime, points | map(&point::sum)), ElementsAre(3, 7));
}

static std::optional<int> half(int i) {
  if (i % 2) return std::nullopt;
  return i / 2;
}

static task<std::optional<int>> half_later(int i) { co_return half(i); }

TEST(Map, AnEmptyOptionalDropsItsItem) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 4u}) {
    map_options options{.concurrency = concurrency};
    EXPECT_THAT(collect(runtime, from(numbers{7}) | map(half, options)), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(collect(runtime, from(numbers{7}) | map(half_later, options)),
                ElementsAre(0, 1, 2, 3));
  }
}

TEST(Map, AContainerIsATableInWhichItemsAreLookedUp) {
  runtime runtime({.threads = 2});
  auto keys = from(std::vector<std::size_t>{2, 0});
  std::map<std::size_t, std::string> names{{0, "cat"}, {2, "dog"}};
  EXPECT_THAT(collect(runtime, keys | map(names)), ElementsAre("dog", "cat"));
  EXPECT_THAT(collect(runtime, keys | map(std::vector<int>{7, 8, 9})), ElementsAre(9, 7));
}

// A table without at(): every number has its square.
struct squares {
  int operator[](int i) const { return i * i; }
};

TEST(Map, ATableWithoutAtIsAskedByItsOperator) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 3u})
    EXPECT_THAT(collect(runtime, from(numbers{4}) | map(squares(), {.concurrency = concurrency})),
                ElementsAre(0, 1, 4, 9));
}

TEST(Map, AnItemThatIsInNoTableIsAFailure) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(numbers{3}) | map(std::map<int, int>{{0, 5}, {2, 6}},
                                                  {.on_error = on_error::skip, .name = "labels"}));
  EXPECT_THAT(collect(items), ElementsAre(5, 6));
  ASSERT_EQ(items.failures().size(), 1u);
  EXPECT_EQ(items.failures().front().stage, "labels");
  EXPECT_EQ(items.failures().front().item, "1");
}

TEST(Map, RunsOnADedicatedPool) {
  runtime runtime({.threads = 1});
  thread_pool own({.threads = 3, .name = "own"});
  test::gate all;
  auto where = [&](int i) {
    all.pass();
    char text[16] = {};
    pthread_getname_np(pthread_self(), text, sizeof text);
    return text + std::to_string(i);
  };
  for (unsigned concurrency : {0u, 1u}) {
    auto items = runtime.run(from(numbers{3}) |
                             map(where, {.concurrency = concurrency, .pool = &own, .name = "w"}));
    all.wait_for(3);  // at a time, on as many threads
    all.open();
    EXPECT_THAT(collect(items), ElementsAre("own0", "own1", "own2"));
    EXPECT_EQ(items.statistics().stages.back().own_threads, 3u);
  }
}

TEST(Map, SharesAPoolWithOtherStagesAndRuns) {
  runtime runtime({.threads = 2});
  thread_pool shared({.threads = 2});
  auto add = [](int i) { return i + 1; };
  auto both = from(numbers{500}) | map(add, {.pool = &shared}) | map(add, {.pool = &shared});
  auto first = runtime.run(both);
  auto second = runtime.run(both);
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(first.wait_next(), i + 2);
    EXPECT_EQ(second.wait_next(), i + 2);
  }
}

TEST(Map, ARunThatNobodyTakesFromLeavesASharedPoolToOthers) {
  runtime runtime({.threads = 2});
  thread_pool shared({.threads = 1});
  std::atomic<int> called = 0;
  auto count = [&](int i) { return ++called, i; };
  auto left = runtime.run(from(numbers{-1}) | map(count, {.pool = &shared}));
  test::wait_until([&] { return called > 0; });
  auto taken = runtime.run(from(numbers{500}) | map([](int i) { return i; }, {.pool = &shared}));
  EXPECT_EQ(collect(taken), test::up_to(500));
  EXPECT_EQ(left.wait_next(), 0);
}

static task<int> give_task(int i) { co_return i; }

// Otherwise the stage before fills its buffer first.
TEST(Map, OnASharedPoolTheLaterStageHasPriority) {
  runtime runtime({.threads = 1});
  std::atomic<int> before = 0;
  std::atomic<int> behind = 0;
  std::atomic<int> most_between = 0;
  auto compute = [] {
    auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(30);
    while (std::chrono::steady_clock::now() < end) {}
  };
  auto first = [&](int i) {
    most_between = std::max(most_between.load(), ++before - behind.load());
    compute();
    return i;
  };
  auto second = [&](int i) {
    ++behind;
    compute();
    return i;
  };
  map_options ahead{.concurrency = 4, .buffer = 12};
  auto items =
      collect(runtime, from(numbers{200}) | map(first, ahead) | map(second, ahead), {.ready = 400});
  EXPECT_THAT(items, SizeIs(200));
  EXPECT_LE(most_between, 3);
}

// The stage before is held up until the pool's only thread has work of both to choose from.
TEST(Map, OnADedicatedPoolTheLaterStageHasPriority) {
  runtime runtime({.threads = 2});
  thread_pool shared({.threads = 1});
  constexpr int all = 50;
  std::atomic<int> taken = 0;
  int called_behind = 0;  // on one thread
  auto before = [&](int i) {
    if (i > 2) {  // until then, what is queued may be its begin
      EXPECT_GE(called_behind, i - 1);
    }
    test::wait_until([&] {
      return taken >= std::min(i + 3, all) && (called_behind == i || shared.has_nearer(~0u));
    });
    auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(30);
    while (std::chrono::steady_clock::now() < end) {}
    return i;
  };
  auto behind = [&](int i) {
    ++called_behind;
    return i;
  };
  auto source =
      from([&, i = 0]() mutable { return i < all ? std::optional((++taken, i++)) : std::nullopt; });
  map_options on_shared{.concurrency = 1, .buffer = 8, .pool = &shared};
  EXPECT_THAT(collect(runtime, source | map(before, on_shared) | map(behind, on_shared)),
              SizeIs(all));
}

// Behind a call as long as the first one, the item would be delivered by an idle thread. The pool
// has none, and the call for the second item does not return before the delivery.
TEST(Map, DeliversAnItemBeforeTheNextCallIfNoThreadIsIdle) {
  runtime runtime({.threads = 1});
  test::gate gate;
  auto call = [&](int i) {
    auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(i == 0 ? 300 : 0);
    while (std::chrono::steady_clock::now() < end) {}
    if (i == 1) gate.pass();
    return i;
  };
  auto give = [](int i) -> task<int> { co_return i; };
  map_options two{.concurrency = 2};
  auto items = runtime.run(from(test::up_to(4)) | map(give, two) | map(call, two));
  EXPECT_EQ(items.wait_next(), 0);
  gate.open();
  EXPECT_THAT(collect(items), ElementsAre(1, 2, 3));
}

TEST(Map, RefusesAPoolForTasks) {
  thread_pool pool({.threads = 1});
  EXPECT_THAT([&] { from(numbers{1}) | map(give_task, {.pool = &pool, .name = "ask"}); },
              ThrowsMessage<error>("ask: tasks run on the reactor, not on a pool"));
}

// Counts its calls, without a lock.
class counter {
 public:
  explicit counter(std::atomic<int>& made) { ++made; }
  int operator()(int) { return ++calls_; }

 private:
  int calls_ = 0;
};

TEST(Map, CreatesOneInstanceOfTheFunctionPerWorker) {
  runtime runtime({.threads = 3});
  for (unsigned concurrency : {1u, 3u}) {
    std::atomic<int> made = 0;
    auto counts = from(numbers{100}) |
                  map(per_worker([&] { return counter(made); }), {.concurrency = concurrency});
    auto all = collect(runtime, counts);
    EXPECT_EQ(all.size(), 100u);
    EXPECT_LE(made, static_cast<int>(concurrency));
    EXPECT_EQ(std::ranges::count(all, 1), made.load()) << "a first call for each instance";
  }
}

TEST(Map, KeepsTheInstancesOfWorkersForTheNextRun) {
  runtime runtime({.threads = 3});
  std::atomic<int> made = 0;
  auto counts = from(numbers{100}) | map(per_worker([&] { return counter(made); }));
  for (int epoch = 0; epoch < 5; ++epoch) collect(runtime, counts);
  EXPECT_LE(made, 3);
}

TEST(Map, FailsIfAnInstanceCannotBeMade) {
  runtime runtime({.threads = 2});
  auto make = [] {
    throw std::runtime_error("no model");
    return [](int i) { return i; };
  };
  for (unsigned concurrency : {1u, 2u})
    EXPECT_THAT(
        [&] {
          collect(runtime, from(numbers{3}) |
                               map(per_worker(make), {.concurrency = concurrency, .name = "t"}));
        },
        ThrowsMessage<stage_error>(HasSubstr("t: no model")));
}

TEST(Map, AFailedInstanceLosesNoEarlierItem) {
  runtime runtime({.threads = 3});
  std::atomic<int> made = 0;
  std::atomic<int> called = 0;
  auto make = [&] {
    if (made++ == 1) {
      while (called < 50) std::this_thread::yield();
      throw std::runtime_error("no model");
    }
    return [&](int i) { return ++called, i; };
  };
  auto items =
      runtime.run(from(numbers{-1}) | map(per_worker(make), {.concurrency = 2}) | prefetch(60));
  int taken = 0;
  EXPECT_THAT(
      [&] {
        while (auto item = items.wait_next()) EXPECT_EQ(*item, taken++);
      },
      ThrowsMessage<stage_error>(HasSubstr("no model")));
  EXPECT_GE(taken, 50);
}

TEST(Map, WithABufferOneAtATimeWorksAhead) {
  runtime runtime({.threads = 2});
  std::atomic<int> called = 0;
  auto count = [&](int i) { return ++called, i; };
  auto items =
      runtime.run(from(numbers{-1}) | map(count, {.concurrency = 1, .buffer = 30}), {.ready = 1});
  while (called < 31) std::this_thread::yield();
  EXPECT_EQ(items.wait_next(), 0);
}

// Each call of the next stage returns when the next call of this stage has started. So it must not
// run on the thread of this stage, which is only promised if the other thread is idle. Nothing else
// occupies that one: all items are ready before one is taken.
TEST(Map, OneLongCallAtATimeRunsBesideTheNextStage) {
  constexpr int last = 20;
  runtime runtime({.threads = 2});
  std::atomic<int> latest = -1;
  auto compute = [&](int i) {
    latest = i;
    latest.notify_all();
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    while (std::chrono::steady_clock::now() < end) {}
    while (!runtime.pool().has_idle_thread()) std::this_thread::yield();
    return i;
  };
  auto wait_for_next = [&](int i) {
    for (int seen = latest; seen <= i && i < last; seen = latest) latest.wait(seen);
    return i;
  };
  auto items = from(numbers{last + 1}) | map(compute, {.concurrency = 1, .buffer = 4}) |
               map(wait_for_next, {.concurrency = 1});
  EXPECT_THAT(collect(runtime, items, {.ready = last + 1}), SizeIs(last + 1));
}

TEST(Map, InlineMeasuresTheDurationOfItsCalls) {
  runtime runtime({.threads = 1});
  auto slow = [](int i) {
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
    while (std::chrono::steady_clock::now() < end) {}
    return i;
  };
  auto items = runtime.run(from(numbers{10}) | map(slow, {.concurrency = 1, .name = "slow"}));
  collect(items);
  auto stage = items.statistics().stages.back();
  EXPECT_EQ(stage.name, "slow");
  EXPECT_GE(stage.busy, std::chrono::milliseconds(20));
  EXPECT_EQ(stage.durations.total(), 10u);
  EXPECT_GT(stage.p50, std::chrono::milliseconds(1));
}

TEST(Map, InlineSamplesTheDurationOfManyShortCalls) {
  runtime runtime({.threads = 1});
  auto items =
      runtime.run(from(numbers{50'000}) | map([](int i) { return i; }, {.concurrency = 1}));
  collect(items);
  auto stage = items.statistics().stages.back();
  EXPECT_GT(stage.durations.total(), 49'000u);
  EXPECT_LE(stage.durations.total(), 50'000u);
  EXPECT_GT(stage.busy.count(), 0);
}

TEST(Map, OfAStdFunctionIsNamedAsItsKind) {
  const std::function<int(int)> same = [](int i) { return i; };
  EXPECT_EQ((from(test::up_to(1)) | map(same)).describe().stages.back().name, "map");
}

}  // namespace lade::map_test
