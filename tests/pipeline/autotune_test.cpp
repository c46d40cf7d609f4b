#include <lade/autotune.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/cut.hpp>
#include <lade/epochs.hpp>
#include <lade/event.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/random.hpp>
#include <lade/run.hpp>
#include <lade/semaphore.hpp>
#include <lade/sleep.hpp>
#include <lade/this_context.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace lade::autotune_test {

using namespace test;
using namespace std::chrono_literals;
using detail::tuner;
using detail::tuning_sample;
using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::Le;

// A stage that gives so many items a second with a concurrency.
using served = std::function<double(unsigned)>;

// What it looks like when such a stage is all that limits a run, up to a rate at which the next
// stage is the slower one, for `samples` samples. The noise is in parts of the rate.
static unsigned tuned_to(const served& rate, double most_wanted, int samples, double noise = 0) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  tuner climb({16, 16}, 256, 768);
  for (int i = 0; i < samples; ++i) {
    auto possible = rate(climb.now().concurrency);
    auto given = std::min(possible, most_wanted) * (1 + noise * draw.uniform(-1, 1));
    auto slack = std::max(0.0, 1 - possible / most_wanted);
    climb.step({.rate = given, .starved = slack, .busy = std::min(1.0, given / possible)});
  }
  return climb.now().concurrency;
}

static double best_rate(const served& rate) {
  double best = 0;
  for (unsigned i = 1; i <= 256; ++i) best = std::max(best, rate(i));
  return best;
}

constexpr double no_limit = 1e12;
constexpr int ten_seconds = 33;  // of intervals that are judged, every second one of 150 ms

TEST(Tuner, FindsNineTenthsOfTheBestSetting) {
  const served latency = [](unsigned n) { return n / 0.005; };
  const served few_servers = [](unsigned n) { return std::min(n, 24u) / 0.005; };
  const served one_server = [](unsigned) { return 1000.0; };
  const served thrashing = [](unsigned n) { return n / (0.005 + 1e-5 * n * n); };
  const served soon_thrashing = [](unsigned n) { return n / (0.005 + 1e-3 * n * n); };
  for (auto& rate : {latency, few_servers, one_server, thrashing, soon_thrashing})
    for (double noise : {0.0, 0.02}) {
      auto found = tuned_to(rate, no_limit, ten_seconds, noise);
      EXPECT_GE(rate(found), 0.9 * best_rate(rate)) << found;
      EXPECT_GE(rate(found), 0.95 * rate(16)) << found;
    }
}

TEST(Tuner, LeavesAStageThatDoesNotLimitTheRun) {
  EXPECT_EQ(tuned_to([](unsigned n) { return n * 100.0; }, 1000, 100), 16u);
}

TEST(Tuner, StopsWhereTheNextStageLimits) {
  auto found = tuned_to([](unsigned n) { return n * 100.0; }, 6000, 100);
  EXPECT_THAT(found, AllOf(Ge(60u), Le(128u)));
}

TEST(Tuner, KeepsWithinItsBounds) {
  tuner climb({1, 1}, 4, 12);
  for (int i = 0; i < 200; ++i) {
    climb.step({.rate = climb.now().concurrency * 10.0, .starved = 1, .busy = 1});
    ASSERT_THAT(climb.now().concurrency, AllOf(Ge(1u), Le(4u)));
  }
  EXPECT_EQ(climb.now().concurrency, 4u);
}

constexpr tuning_sample held_up{.rate = 100, .starved = 0.5, .busy = 0.2, .blocked = 0.6};
constexpr tuning_sample limits_the_run{.rate = 100, .starved = 1, .busy = 1};

TEST(Tuner, EnlargesTheBufferBehindSlowItems) {
  tuner climb({16, 16}, 256, 768);
  EXPECT_TRUE(climb.step(held_up));
  EXPECT_EQ(climb.now(), (tuner::setting{16, 32}));
}

TEST(Tuner, KeepsTheBufferWithinTheLimit) {
  tuner climb({16, 16}, 256, 80);
  EXPECT_TRUE(climb.step(held_up));
  EXPECT_TRUE(climb.step(held_up));
  EXPECT_EQ(climb.now(), (tuner::setting{16, 64}));
  EXPECT_FALSE(climb.step(held_up));
  EXPECT_TRUE(climb.step(limits_the_run));
  EXPECT_EQ(climb.now(), (tuner::setting{32, 48}));
}

TEST(Tuner, DoublesAQueueThatIsEmptyAfterItWasFullUpToItsLimit) {
  auto climb = detail::queue_tuner(10);
  EXPECT_EQ(climb.now(), (tuner::setting{0, 2}));
  EXPECT_FALSE(climb.step({.rate = 100, .starved = 1, .blocked = 0}));
  EXPECT_FALSE(climb.step({.rate = 100, .starved = 0, .blocked = 1}));
  for (unsigned buffer : {4u, 8u, 10u}) {
    EXPECT_TRUE(climb.step(held_up));
    EXPECT_EQ(climb.now(), (tuner::setting{0, buffer}));
  }
  EXPECT_FALSE(climb.step(held_up));
}

TEST(Tuner, SettlesForTheBestSoFarAmidATrial) {
  tuner climb({16, 16}, 256, 768);
  EXPECT_TRUE(climb.step(limits_the_run));
  EXPECT_EQ(climb.now().concurrency, 32u);
  climb.settle();
  EXPECT_EQ(climb.now(), (tuner::setting{16, 16}));
  EXPECT_TRUE(climb.step(limits_the_run));
  EXPECT_EQ(climb.now().concurrency, 32u);
}

TEST(Autotune, RaisesTheConcurrencyOfTasksThatWait) {
  runtime runtime({.threads = 2});
  auto wait = [](int i) -> task<int> {
    co_await sleep(5ms);
    co_return i;
  };
  auto items =
      runtime.run(from(numbers{-1}) | map(wait, {.concurrency = automatic, .name = "wait"}));
  EXPECT_THAT(items.settings(), testing::SizeIs(Le(1u)));
  int expected = 0;
  while (items.settings().empty() || items.settings()[0].concurrency < 64)
    ASSERT_EQ(items.wait_next(), expected++);
  items.freeze();
  auto settings = items.settings();
  EXPECT_EQ(settings[0].stage, "wait");
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(items.wait_next(), expected++);
  EXPECT_EQ(items.settings(), settings);
}

static task<int> wait_a_little(int i) {
  co_await sleep(5ms);
  co_return i;
}

// Part i, after a wait as for a server.
static async_generator<int> parts_after_a_wait(int i) {
  co_await sleep(5ms);
  co_yield i;
}

TEST(Autotune, RaisesTheConcurrencyOfAFlatMapWhoseGeneratorsWait) {
  for (auto order : {item_order::input, item_order::completion}) {
    runtime runtime({.threads = 2});
    auto items = runtime.run(
        from(numbers{-1}) |
        flat_map(parts_after_a_wait, {.concurrency = automatic, .order = order, .name = "expand"}));
    int taken = 0;
    auto take_one = [&] {
      auto part = items.wait_next();
      ASSERT_TRUE(part);
      if (order == item_order::input) {
        ASSERT_EQ(part, taken);
      }
      ++taken;
    };
    while (items.settings().empty() || items.settings()[0].concurrency < 64) take_one();
    items.freeze();
    auto settings = items.settings();
    EXPECT_EQ(settings[0].stage, "expand");
    EXPECT_EQ(settings[0].buffer, flat_map_options().buffer);
    for (int i = 0; i < 2000; ++i) take_one();
    EXPECT_EQ(items.settings(), settings);
    EXPECT_EQ(items.statistics().stages.back().workers, settings[0].concurrency);
  }
}

// Nothing is delivered, so nothing is tuned.
TEST(Autotune, SlotsAreThoseOfTheCurrentSetting) {
  runtime runtime({.threads = 2});
  event never;
  auto wait = [&never](int i) -> task<int> {
    co_await never;
    co_return i;
  };
  auto parts = [&never](int i) -> async_generator<int> {
    co_await never;
    co_yield i;
  };
  auto begun = from(numbers{-1}) | prefetch(automatic);
  std::vector<std::pair<pipeline<int>, std::size_t>> full{
      {begun | map(wait, {.concurrency = automatic}), 16 + 16},
      {begun | flat_map(parts, {.concurrency = automatic}), 16 + 1},
      {begun | flat_map(parts, {.concurrency = automatic, .order = item_order::completion}), 16}};
  for (auto& [stages, slots] : full) {
    auto items = runtime.run(stages);
    auto now = [&] {
      auto all = items.statistics().stages;
      return all.size() == 3 ? all[2] : stage_statistics();
    };
    test::wait_until([&] { return now().output_wait.count() > 0; });
    EXPECT_EQ(now().slots, slots);
    EXPECT_EQ(now().most_workers, tune_options().most);
    EXPECT_EQ(items.statistics().stages[1].most_workers, 0u);
    EXPECT_EQ(items.statistics().stages[1].slots, 2u);
  }
}

TEST(Autotune, ContinuesInEveryRoundOfARepeat) {
  runtime runtime({.threads = 2});
  auto stage = map(wait_a_little, {.concurrency = automatic});
  auto items = runtime.run(from(numbers{1000}) | stage | repeat(1'000'000));
  int taken = 0;
  for (auto tuned = 16u; tuned < 64; ++taken) {
    ASSERT_EQ(items.wait_next(), taken % 1000);
    ASSERT_THAT(items.settings(), testing::SizeIs(1));
    tuned = items.settings()[0].concurrency;
  }
  items.freeze();
  auto settings = items.settings();
  EXPECT_GE(settings[0].concurrency, 32u);
  for (auto end = taken + 3000; taken < end; ++taken) ASSERT_EQ(items.wait_next(), taken % 1000);
  EXPECT_EQ(items.settings(), settings);
}

static async_generator<int> count_until(const std::atomic<bool>& enough) {
  for (int i = 0; i < 100 || !enough; ++i) {
    int item = i;
    co_yield item;
  }
}

TEST(Autotune, StartsAnEpochWithTheSettingsOfTheLast) {
  runtime runtime({.threads = 2});
  std::atomic<bool> enough = false;
  auto items =
      from([&] { return count_until(enough); }) | map(wait_a_little, {.concurrency = automatic});
  epochs all(runtime, items, 2);
  auto* epoch = all.next();
  while (epoch->wait_next() && epoch->settings()[0].concurrency < 64) {}
  epoch->freeze();
  auto settings = epoch->settings();
  EXPECT_GE(settings[0].concurrency, 32u);
  enough = true;
  collect(*epoch);
  epoch = all.next();
  EXPECT_EQ(collect(*epoch).size(), 100u);
  EXPECT_EQ(epoch->settings(), settings);
  EXPECT_EQ(epoch->statistics().stages.back().workers, settings[0].concurrency);
}

TEST(Autotune, LeavesAStageThatIsFasterThanTheOneItFeeds) {
  runtime runtime({.threads = 2});
  auto fast = [](int i) -> task<int> {
    co_await sleep(2ms);
    co_return i;
  };
  auto slow = [](int i) -> task<int> {
    co_await sleep(20ms);
    co_return i;
  };
  auto items =
      runtime.run(from(numbers{-1}) | map(fast, {.concurrency = automatic, .name = "fast"}) |
                  map(slow, {.concurrency = automatic, .name = "slow"}));
  auto concurrency = [&](std::size_t stage) {
    auto settings = items.settings();
    return stage < settings.size() ? settings[stage].concurrency : 16u;
  };
  while (concurrency(1) < 32) items.wait_next();
  EXPECT_EQ(concurrency(0), 16u);
}

TEST(Autotune, StartsNoMoreItemsThanTheMemoryAllows) {
  constexpr std::size_t bytes = 1 << 20;
  runtime runtime({.threads = 2, .memory_bytes = 8 * bytes});
  auto fetch = [](int) -> task<buffer> {
    auto content = allocate_now(co_await this_context(), bytes);
    co_await sleep(2ms);
    co_return content;
  };
  auto items = runtime.run(from(numbers{2000}) | map(fetch, {.concurrency = automatic}));
  int taken = 0;
  for (auto& item : items) {
    EXPECT_EQ(item.size(), bytes);
    if (++taken <= 100) continue;  // what an item needs is not known yet
    EXPECT_LE(runtime.memory().stats().used_bytes, 9 * bytes);
  }
  EXPECT_EQ(taken, 2000);
}

TEST(Tuner, KeepsTheBufferOfAStageWhoseBufferIsFixed) {
  tuner climb({16, {}}, 256, 256);
  EXPECT_FALSE(climb.step({.rate = 100, .starved = 1, .busy = 0.1, .blocked = 1}));
  EXPECT_TRUE(climb.step(limits_the_run));
  EXPECT_EQ(climb.now(), (tuner::setting{32, {}}));
}

static task<int> wait_inside(occupancy& inside, int i) {
  inside.enter();
  co_await sleep(1ms);
  inside.leave();
  co_return i;
}

TEST(Autotune, HasNoMoreItemsInFlightThanItsMaximum) {
  runtime runtime({.threads = 2});
  occupancy inside;
  auto wait = [&](int i) { return wait_inside(inside, i); };
  auto items = runtime.run(from(numbers{2000}) | map(wait, {.concurrency = automatic}),
                           {.tune = {.most = 24}});
  EXPECT_EQ(collect(items).size(), 2000u);
  EXPECT_LE(inside.most(), 24);
  EXPECT_THAT(items.settings()[0].concurrency, AllOf(Ge(1u), Le(24u)));
}

TEST(Autotune, AFlatMapHasNoMoreItemsInFlightThanItsMaximum) {
  for (auto order : {item_order::input, item_order::completion}) {
    runtime runtime({.threads = 2});
    occupancy inside;
    auto wait = [&](int i) -> async_generator<int> {
      auto part = co_await wait_inside(inside, i);
      co_yield part;
    };
    auto stage = flat_map(wait, {.concurrency = automatic, .order = order});
    auto items = runtime.run(from(numbers{2000}) | stage, {.tune = {.most = 24}});
    EXPECT_EQ(collect(items).size(), 2000u);
    EXPECT_LE(inside.most(), 24);
    EXPECT_THAT(items.settings()[0].concurrency, AllOf(Ge(1u), Le(24u)));
  }
}

TEST(Autotune, LetsFunctionsThatComputeKeepTheirConcurrency) {
  runtime runtime({.threads = 4});
  auto compute = [](int i) {
    for (int turn = 0; turn < 200; ++turn) outlast_a_microsecond();
    return i;
  };
  std::vector<pipeline<int>> both{
      from(numbers{-1}) | map(wait_a_little, {.concurrency = automatic, .name = "wait"}),
      from(numbers{-1}) | map(compute, {.concurrency = automatic, .name = "compute"})};
  auto items = runtime.run(merge(both, {.order = merge_order::arrival}));
  while (items.wait_next() && items.settings()[1].concurrency < 64)
    ASSERT_EQ(items.settings()[0], (stage_setting{"compute", 3, 3}));
}

// So many calls at a time, of all automatic stages of a run.
static int most_calls(unsigned threads, const tune_options& tune) {
  runtime runtime({.threads = threads});
  occupancy inside;
  auto compute = [&](int i) {
    inside.enter();
    pause(3);
    inside.leave();
    return i + 1;
  };
  auto twice = from(numbers{3000}) | map(compute, {.concurrency = automatic}) |
               map(compute, {.concurrency = automatic});
  auto items = runtime.run(twice, {.tune = tune});
  int expected = 2;
  for (auto& item : items) EXPECT_EQ(item, expected++);
  EXPECT_EQ(expected, 3002);
  return inside.most();
}

TEST(Autotune, LeavesTheTrainerItsCpus) {
  EXPECT_LE(most_calls(4, {}), 3);
  EXPECT_LE(most_calls(4, {.cpus = 2}), 2);
  EXPECT_EQ(most_calls(4, {.cpus = 1}), 1);
  EXPECT_EQ(most_calls(1, {.cpus = 4}), 1);
}

TEST(Autotune, UsesAllItsCpus) {
  runtime runtime({.threads = 4});
  gate both;
  auto meet = [&](int i) {
    both.pass();
    return i;
  };
  auto met = from(numbers{8}) | map(meet, {.concurrency = automatic}) |
             map(meet, {.concurrency = automatic});
  auto items = runtime.run(met, {.tune = {.cpus = 2}});
  both.wait_for(2);
  both.open();
  EXPECT_EQ(collect(items), up_to(8));
}

static task<int> take_one_and_leave(runtime& runtime, const pipeline<int>& of) {
  auto items = runtime.run(of, {.tune = {.cpus = 1}});
  auto first = co_await items.next();
  co_return *first;
}

TEST(Autotune, ARunMayEndWhileItsOneCpuIsInUse) {
  runtime runtime({.threads = 2});
  auto compute = [](int i) { return i + 1; };
  auto twice = from(numbers{-1}) | map(compute, {.concurrency = automatic}) |
               map(compute, {.concurrency = automatic});
  for (int i = 0; i < 200; ++i)
    ASSERT_EQ(sync_wait(runtime, take_one_and_leave(runtime, twice)), 2);
}

TEST(Autotune, KeepsTheOrderAndLosesNothingWhileItChanges) {
  runtime runtime({.threads = 2});
  auto wait = [](int i) -> task<int> {
    co_await sleep(std::chrono::microseconds(i % 97 * 20));
    co_return i;
  };
  auto items = runtime.run(from(numbers{20'000}) | map(wait, {.concurrency = automatic}));
  int expected = 0;
  for (auto& item : items) ASSERT_EQ(item, expected++);
  EXPECT_EQ(expected, 20'000);
}

// Items in bursts of 32, with a pause after each.
static async_generator<int> in_bursts(async_generator<int> in) {
  int count = 0;
  while (auto* item = co_await in.next()) {
    co_yield *item;
    if (++count % 32 == 0) co_await lade::sleep(40ms);
  }
}

static const auto bursts = from(numbers{1'000'000}) | through(in_bursts);

TEST(Autotune, DeepensAQueueWhoseItemsArriveInBursts) {
  runtime runtime({.threads = 2});
  auto slow = [](int i) {
    std::this_thread::sleep_for(1ms);
    return i;
  };
  auto items = runtime.run(bursts | prefetch(automatic) | map(slow, {.concurrency = 1}));
  int expected = 0;
  do ASSERT_EQ(items.wait_next(), expected++);
  while (items.settings().at(0).buffer == 2u);
  EXPECT_EQ(items.settings().at(0).stage, "prefetch");
  EXPECT_EQ(items.settings().at(0).concurrency, 0u);
}

TEST(Autotune, DeepensTheOutputQueueOfARunWhoseItemsArriveInBursts) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(bursts, {.ready = automatic});
  int expected = 0;
  do {
    ASSERT_EQ(items.wait_next(), expected++);
    std::this_thread::sleep_for(1ms);
  } while (expected == 1 || items.settings().at(0).buffer == 2u);
  EXPECT_EQ(items.settings().at(0).stage, "run");
}

TEST(Autotune, NamesStagesOfOneNameAsTheStatisticsDo) {
  runtime runtime({.threads = 2});
  auto same = [](int i) { return i; };
  auto items = runtime.run(from(up_to(3)) | map(wait_a_little, {.concurrency = automatic}) |
                           prefetch(automatic) | map(same, {.concurrency = automatic}) |
                           prefetch(automatic));
  EXPECT_EQ(collect(items), up_to(3));
  std::vector<std::string> tuned, counted;
  for (auto& each : items.settings()) tuned.push_back(each.stage);
  for (auto& each : items.statistics().stages) counted.push_back(each.name);
  EXPECT_THAT(tuned, ElementsAre("map", "prefetch", "map (2)", "prefetch (2)"));
  EXPECT_THAT(counted, ElementsAre("source", "map", "prefetch", "map (2)", "prefetch (2)"));
}

TEST(Autotune, QueuesNoMoreItemsThanItsMaximum) {
  runtime runtime({.threads = 2});
  std::atomic<int> started = 0;
  auto count = [&](int i) {
    ++started;
    return i;
  };
  auto counted = from(numbers{1'000}) | map(count, {.concurrency = 1}) | prefetch(automatic);
  {
    auto items = runtime.run(counted, {.ready = automatic, .tune = {.most = 1}});
    EXPECT_EQ(items.wait_next(), 0);
  }
  EXPECT_LE(started, 6);  // taken, ready, in the hand of the output queue, and prefetched
}

TEST(Autotune, PrintsItsSettingsAsCode) {
  std::vector<stage_setting> settings{{"read", 48, 96}, {"prefetch", 0, 8}, {"parse", 3, 3}};
  EXPECT_EQ(to_code(settings),
            "read: {.concurrency = 48, .buffer = 96}\nprefetch: 8\n"
            "parse: {.concurrency = 3, .buffer = 3}\n");
}

}  // namespace lade::autotune_test
