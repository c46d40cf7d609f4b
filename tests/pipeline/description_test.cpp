#include <lade/batch.hpp>
#include <lade/cache.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/description.hpp>
#include <lade/draw.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/route.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/tee.hpp>
#include <lade/thread_pool.hpp>
#include <lade/through.hpp>
#include <lade/window.hpp>

#include "../support/pipelines.hpp"
#include "../support/seed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

namespace lade {

using testing::HasSubstr;
using testing::Optional;
using testing::SizeIs;

static pipeline<int> list_of(int size) { return from(test::up_to(size)); }

static int twice(int i) { return 2 * i; }
static task<int> later(int i) { co_return i; }
static bool is_even(int i) { return i % 2 == 0; }
static int half_of(int i) { return i % 2; }

TEST(Description, IsALineForEachStage) {
  thread_pool own({.threads = 1});
  auto images = list_of(1'000) | shuffle({.seed = 7}) | shard({.rank = 1, .world = 4}) |
                map(later, {.concurrency = 64, .name = "read"}) |
                map(twice, {.buffer = 9, .retry = {.attempts = 3}, .pool = &own}) |
                filter(is_even) | batch({.size = 8, .drop_last = true});
  EXPECT_EQ(to_string(images.describe()),
            "1 source: from, order shuffle 7, shard 1 of 4, 250 items\n"
            "2 read: map of 1, on the reactor, concurrency 64, 250 items\n"
            "3 map of 2, on a pool of its own, buffer 9, attempts 3, 250 items\n"
            "4 filter of 3\n"
            "5 batch of 4, size 8, drop_last\n");
}

TEST(Description, LinesArePrintable) {
  auto items = list_of(3) | map(twice, {.name = "clear\x1b[2J\nscreen"});
  EXPECT_THAT(to_string(items.describe()), HasSubstr("clear\\x1b[2J\\nscreen: map"));
  EXPECT_EQ(items.describe().stages.at(1).name, "clear\x1b[2J\nscreen");
}

TEST(Description, TellsHowAShardTreatsTheRemainder) {
  auto list = list_of(10);
  EXPECT_EQ(to_string((list | shard({1, 4, remainder::keep})).describe()),
            "1 source: from, shard 1 of 4, remainder keep, 3 items\n");
  EXPECT_EQ(to_string((list | map(twice) | shard({1, 4, remainder::pad})).describe()),
            "1 source: from, 10 items\n"
            "2 map of 1, on the CPU pool, 10 items\n"
            "3 shard of 2, rank 1, world 4, remainder pad, no state, 3 items\n");
}

TEST(Description, IsJson) {
  auto items = from(test::up_to(10), {.name = "\"a\""}) | batch(4);
  EXPECT_EQ(to_json(items.describe()),
            R"({"stages":[{"name":"\"a\"","kind":"from","inputs":[],"cardinality":"source",)"
            R"("executor":"in_place","ordering":"kept","options":{},"size":10,)"
            R"("held_items":null,"held_bytes":null,"refuses_state":null},)"
            R"({"name":"batch","kind":"batch","inputs":[0],"cardinality":"group",)"
            R"("executor":"in_place","ordering":"kept","options":{"size":"4"},"size":3,)"
            R"("held_items":4,"held_bytes":null,"refuses_state":null}]})");
  EXPECT_THAT(to_json((items | filter([](auto&) { return true; })).describe()),
              HasSubstr(R"("size":null,)"));
}

TEST(Description, TellsWhatAStageMakesOfItsItems) {
  auto kind_of = [](const auto& what) { return what.describe().stages.back().cardinality; };
  auto some = [](int i) { return std::optional(i); };
  auto custom = [](async_generator<int> in) { return in; };
  EXPECT_EQ(kind_of(list_of(3)), cardinality::source);
  EXPECT_EQ(kind_of(list_of(3) | map(twice)), cardinality::one);
  EXPECT_EQ(kind_of(list_of(3) | map(some)), cardinality::at_most_one);
  EXPECT_EQ(kind_of(list_of(3) | filter(is_even)), cardinality::at_most_one);
  EXPECT_EQ(kind_of(list_of(3) | flat_map(test::up_to)), cardinality::several);
  EXPECT_EQ(kind_of(list_of(3) | window(2)), cardinality::group);
  EXPECT_EQ(kind_of(list_of(3) | through(custom)), cardinality::custom);
}

TEST(Description, TellsWhereAStageComputes) {
  thread_pool own({.threads = 1});
  auto executor_of = [](const auto& what) { return what.describe().stages.back().executor; };
  EXPECT_EQ(executor_of(list_of(3) | map(twice, {.concurrency = 1})), stage_executor::in_place);
  EXPECT_EQ(executor_of(list_of(3) | map(twice)), stage_executor::cpu_pool);
  EXPECT_EQ(executor_of(list_of(3) | map(twice, {.pool = &own})), stage_executor::own_pool);
  EXPECT_EQ(executor_of(list_of(3) | map(later)), stage_executor::reactor);
  EXPECT_EQ(executor_of(list_of(3) | prefetch(2)), stage_executor::cpu_pool);
  EXPECT_EQ(executor_of(list_of(3) | tee(map(twice), map(twice))), stage_executor::cpu_pool);
  const std::vector inputs{list_of(3), list_of(3)};
  EXPECT_EQ(executor_of(merge(inputs, {.order = merge_order::arrival})), stage_executor::cpu_pool);
  EXPECT_EQ(executor_of(merge(inputs)), stage_executor::in_place);
}

TEST(Description, TellsInWhichOrderAStageYieldsItsItems) {
  auto order_of = [](const auto& what) { return what.describe().stages.back().ordering; };
  auto custom = [](async_generator<int> in) { return in; };
  EXPECT_EQ(order_of(list_of(3) | map(twice)), stage_ordering::kept);
  EXPECT_EQ(order_of(list_of(3) | map(twice, {.order = item_order::completion})),
            stage_ordering::changed);
  EXPECT_EQ(order_of(list_of(3) | map(twice) | shuffle()), stage_ordering::changed);
  EXPECT_EQ(order_of(merge<int>({list_of(3), list_of(3)})), stage_ordering::changed);
  EXPECT_EQ(order_of(list_of(3) | through(custom)), stage_ordering::custom);
}

TEST(Description, TellsHowMuchAStageHolds) {
  auto last_of = [](const auto& what) { return what.describe().stages.back(); };
  EXPECT_EQ(last_of(list_of(3) | map(twice, {.concurrency = 3, .buffer = 5})).held_items, 8u);
  EXPECT_EQ(last_of(list_of(3) | map(later, {.concurrency = 3})).held_items, 6u);
  EXPECT_EQ(last_of(list_of(3) | map(twice)).held_items, std::nullopt);
  EXPECT_EQ(last_of(list_of(3) | prefetch(7)).held_items, 7u);
  EXPECT_EQ(last_of(list_of(3) | batch(4)).held_items, 4u);
  EXPECT_EQ(last_of(list_of(3) | map(twice) | shuffle({.window = 9})).held_items, 9u);
  auto cached = last_of(list_of(3) | cache({.items = 10}));
  EXPECT_EQ(cached.held_items, 10u);
  EXPECT_EQ(cached.held_bytes, std::nullopt);
}

// In the words of the error that a run's state() throws.
TEST(Description, TellsWhyAStageRefusesAState) {
  auto custom = [](async_generator<int> in) { return in; };
  auto list = list_of(9);
  auto mapped = list | map(twice);
  runtime where({.threads = 2});
  auto check = [&](const auto& what) {
    auto why = what.describe().stages.back().refuses_state;
    EXPECT_NE(why, "");
    auto items = where.run(what);
    items.wait_next();
    EXPECT_THAT([&] { items.state(); }, ThrowsMessage<error>(HasSubstr(why)));
  };
  check(list | through(custom));
  check(mapped | take(3));
  check(mapped | skip(1));
  check(mapped | repeat(2));
  check(mapped | shard({}));
  check(mapped | window(2, {.step = 1}));
  check(mapped | cache());
  check(list | take(3) | repeat(2));
  check(merge<int>({list, list}, {.end = merge_end::first}));
  EXPECT_EQ((mapped | repeat(1)).describe().stages.back().refuses_state, "");
  EXPECT_EQ(mapped.describe().stages.back().refuses_state, "");
}

// The paths take items of the stage that splits them, and the next stage those of all paths.
TEST(Description, IsAGraph) {
  auto inner = route(half_of, map(twice, {.name = "a"}), map(twice, {.name = "b"}));
  auto items =
      list_of(9) | tee(chain(prefetch(2), inner, map(twice, {.name = "c"})), chain()) | batch(2);
  EXPECT_EQ(to_string(items.describe()),
            "1 source: from, 9 items\n"
            "2 tee of 1, on the CPU pool, buffer 16\n"
            "3 prefetch of 2, on the CPU pool, count 2, 9 items\n"
            "4 route of 3, on the CPU pool, reordered\n"
            "5 a: map of 4, on the CPU pool, 9 items\n"
            "6 b: map of 4, on the CPU pool, 9 items\n"
            "7 c: map of 5 and 6, on the CPU pool\n"
            "8 batch of 7 and 2, size 2\n");
}

// Stages that statistics do not count are not in the pipelines of this.
template <class T>
static void expect_names_of_statistics(const pipeline<T>& what) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(what);
  test::collect(items);
  std::vector<std::string> names;
  for (auto& each : items.statistics().stages) names.push_back(each.name);
  std::vector<std::string> described;
  for (auto& each : what.describe().stages) described.push_back(each.name);
  EXPECT_EQ(described, names);
}

TEST(Description, NamesStagesAsStatisticsDo) {
  auto list = list_of(20);
  auto mapped = list | map(twice) | map(twice) | prefetch(3) | map(later);
  expect_names_of_statistics(mapped | cache());
  expect_names_of_statistics(zip(mapped, list | batch(3), mapped));
  expect_names_of_statistics(merge<int>({list | map(twice), mapped, list}) | map(twice));
  expect_names_of_statistics(
      merge<int>({list | map(twice), mapped}, {.order = merge_order::arrival}));
  expect_names_of_statistics(mapped |
                             route(half_of, map(twice), chain(filter(is_even), map(twice))) |
                             flat_map(test::up_to));
  expect_names_of_statistics(
      zip(list, list | tee(map(twice), chain(map(twice), route(half_of, map(twice), chain())))) |
      prefetch(1));
}

// What a list, a stream of it, and either with random stages behind yields.
TEST(Description, SizesAreThoseOfRuns) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto below = [&](std::uint64_t end) { return random() % end; };
  runtime runtime({.threads = 2});
  for (int round = 0; round < 200; ++round) {
    auto items = list_of(static_cast<int>(below(30)));
    if (below(2) == 0) items = items | map(twice);
    for (auto stages = below(6); stages-- > 0;) {
      const std::uint64_t world = 1 + below(4);
      switch (below(9)) {
        case 0: items = items | take(below(20)); break;
        case 1: items = items | skip(below(5)); break;
        case 2: items = items | repeat(below(4)); break;
        case 3:
          items = items | shard({.rank = below(world),
                                 .world = world,
                                 .remainder = static_cast<remainder>(below(4))});
          break;
        case 4: items = items | shuffle({.seed = below(9), .window = 1 + below(9)}); break;
        case 5: items = items | prefetch(1 + below(4)); break;
        case 6: items = merge<int>({items, items | map(twice)}); break;
        case 7:
          items =
              zip(items, items | take(3)) | map([](const auto& row) { return std::get<0>(row); });
          break;
        default:
          items = items | batch({.size = 1 + below(5), .drop_last = below(2) == 0}) |
                  map([](const std::vector<int>& in) { return in.front(); });
      }
    }
    const auto size = items.size();
    ASSERT_TRUE(size.has_value()) << to_string(items.describe());
    ASSERT_EQ(test::collect(runtime, items).size(), *size) << to_string(items.describe());
  }
}

TEST(Description, SizesThatOnlyARunCanTellAreNone) {
  auto list = list_of(10);
  EXPECT_EQ(from(test::numbers{3}).size(), std::nullopt);
  EXPECT_EQ((list | filter(is_even)).size(), std::nullopt);
  EXPECT_EQ((list | flat_map(test::up_to)).size(), std::nullopt);
  EXPECT_EQ((list | batch(3) | unbatch()).size(), std::nullopt);
  EXPECT_EQ((list | route(half_of, map(twice), map(twice))).size(), std::nullopt);
  EXPECT_EQ(merge<int>({list, list}, {.end = merge_end::first}).size(), std::nullopt);
  EXPECT_EQ((list | draw({.weights = {1, 2}})).size(), std::nullopt);  // of which a run throws
  EXPECT_EQ((list | repeat(~std::uint64_t{0})).size(), std::nullopt);
}

TEST(Description, ASizeOfDrawsNeedsNoSizeOfTheList) {
  auto listed = from([] { return test::up_to(2); }) | draw({.weights = {1, 2}, .count = 7});
  EXPECT_THAT(listed.size(), Optional(7u));
}

TEST(Description, OfALongPipelineNeedsNoStack) {
  auto items = list_of(2);
  auto first_of = [](const std::vector<int>& in) { return in.front(); };
  for (int i = 0; i < 100'000; ++i) items = items | batch(1) | map(first_of);
  EXPECT_THAT(items.describe().stages, SizeIs(200'001));
}

TEST(Description, OfAPipelineThatHasBeenMovedFromIsRefused) {
  auto items = list_of(2);
  auto other = std::move(items);
  EXPECT_THROW(items.describe(), error);  // NOLINT(bugprone-use-after-move)
  EXPECT_THROW(static_cast<void>(items.size()), error);
}

}  // namespace lade
