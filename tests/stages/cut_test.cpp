#include <lade/batch.hpp>
#include <lade/batch_by.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/equal_steps.hpp>
#include <lade/error.hpp>
#include <lade/filter.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/random.hpp>
#include <lade/route.hpp>
#include <lade/shuffle.hpp>
#include <lade/tee.hpp>
#include <lade/through.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace lade::cut_test {

using test::collect;
using test::numbers;
using test::up_to;
using testing::ElementsAre;

static int same(int i) { return i; }

// Counts what is taken from it.
static async_generator<int> counted(std::atomic<int>& taken, int end) {
  for (int i = 0; i != end; ++i) {
    ++taken;
    int item = i;
    co_yield item;
  }
}

TEST(Take, TakesNoItemTooMany) {
  runtime runtime({.threads = 1});
  std::atomic<int> taken = 0;
  auto some = from([&] { return counted(taken, -1); }) | take(3);
  EXPECT_THAT(collect(runtime, some), ElementsAre(0, 1, 2));
  EXPECT_EQ(taken, 3);
}

static int all_but_five(int i) {
  if (i == 5) throw std::runtime_error("broken");
  return i;
}

// An accumulator for batch_by.
class groups_of_four {
 public:
  std::optional<std::vector<int>> add(int item) {
    held_.push_back(item);
    return held_.size() == 4 ? flush() : std::nullopt;
  }
  std::optional<std::vector<int>> flush() {
    if (held_.empty()) return std::nullopt;
    return std::exchange(held_, {});
  }

 private:
  std::vector<int> held_;
};

// Item 5 is in the second batch. A batch or window that a failure cuts short may be the last one
// that such a stage takes: then the run would end without the failure.
TEST(StagesThatEndEarly, DoNotEndARunWithoutTheFailureThatCutsABatchShort) {
  runtime runtime({.threads = 2});
  auto list = from(up_to(8)) | map(all_but_five, {.concurrency = 1});
  auto batches = list | batch(4);
  auto fails = [&](const auto& pipeline) {
    EXPECT_THAT([&] { collect(runtime, pipeline); },
                testing::ThrowsMessage<stage_error>(testing::HasSubstr("broken")));
  };
  fails(batches | take(2));
  fails(batches | prefetch(1) | take(2));
  fails(batches | equal_steps({.steps = 2}));
  fails(list | batch(2) | equal_steps({.steps = 3}));
  fails(batches | end_together([](bool ended) { return ended; }));
  fails(list | filter([](int) { return true; }) | shuffle({.window = 4}) | take(5));
  fails(batches | tee(take(2), prefetch(1)));
  fails(batches | route([](const std::vector<int>&) { return 0; }, take(2)));
  fails(batches | route([](const std::vector<int>&) { return 0; }, chain(map(std::identity()))) |
        take(2));
  fails(list | batch_by(groups_of_four()) | take(2));
  auto other = from(up_to(4)) | batch(4);
  fails(merge(std::vector<pipeline<std::vector<int>>>{batches, other}, {.end = merge_end::first}));
  EXPECT_EQ(collect(runtime, batches | take(1)).size(), 1u);
}

TEST(Take, OfNothingEndsAnEndlessPipeline) {
  runtime runtime({.threads = 2});
  auto endless = from(numbers{-1}) | map(same, {.concurrency = 2}) | prefetch(3);
  EXPECT_TRUE(collect(runtime, endless | take(0)).empty());
  EXPECT_TRUE(collect(runtime, endless | take(0) | map(same, {.concurrency = 2})).empty());
}

TEST(Repeat, ReopensItsInputForEveryRound) {
  runtime runtime({.threads = 2});
  auto twice = from(numbers{3}) | map(same, {.concurrency = 2}) | repeat(2);
  EXPECT_THAT(collect(runtime, twice), ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(Repeat, CountsAStageOnceHoweverOftenItIsOpened) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(numbers{3}) | map(same, {.concurrency = 2}) | repeat(50));
  EXPECT_EQ(collect(items).size(), 150u);
  auto stages = items.statistics().stages;
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0].out, 150u);
  EXPECT_EQ(stages[1].in, 150u);
}

TEST(Prefetch, RunsAheadUpToItsCount) {
  runtime runtime({.threads = 2});
  std::atomic<int> taken = 0;
  auto stalled = [](async_generator<int> in) -> async_generator<int> {
    while (auto item = co_await in.next()) co_yield std::move(*item);
  };
  auto ahead = from([&] { return counted(taken, -1); }) | prefetch(7) | through(stalled);
  auto items = runtime.run(ahead, {.ready = 1});
  // In the ring, one of them waiting in the run's hand; one ready for the consumer.
  test::wait_until([&] { return taken >= 8; });
  test::pause(20);
  EXPECT_LE(taken, 9);
}

// Adds a number to every item, and ends at the first negative one.
static async_generator<int> add(async_generator<int> in, int number) {
  while (auto item = co_await in.next()) {
    if (*item < 0) throw std::runtime_error("negative");
    co_yield *item + number;
  }
}

TEST(Through, RunsACustomStageWithArguments) {
  runtime runtime({.threads = 2});
  EXPECT_THAT(collect(runtime, from(numbers{3}) | through(add, {}, 10)), ElementsAre(10, 11, 12));
}

static async_generator<int> thrice(async_generator<int> in) {
  while (auto* item = co_await in.next())
    for (int n = 0; n < 3; ++n) {
      int value = 3 * *item + n;
      co_yield value;
    }
}

TEST(Through, SeveralItemsOfOneDrawDifferentNumbersInAnyOrder) {
  runtime runtime({.threads = 3});
  auto draw = map([](int i, random numbers) { return std::pair(i, numbers()); });
  auto uneven = [](int i) {
    test::pause(i % 4);
    return i;
  };
  for (auto& items : {from(numbers{20}) | through(thrice), combine(thrice, from(numbers{20}))}) {
    auto drawn = collect(runtime, items | map(uneven, {.concurrency = 1}) | draw);
    std::set<std::uint64_t> different;
    for (auto& each : drawn) different.insert(each.second);
    EXPECT_EQ(different.size(), 60u);
    auto as_they_come = map(uneven, {.concurrency = 4, .order = item_order::completion});
    auto mixed = collect(runtime, items | as_they_come | draw);
    std::ranges::sort(mixed);
    EXPECT_EQ(mixed, drawn);
  }
}

TEST(Through, ItemsBeforeTheFirstInputDrawDifferentRandomNumbers) {
  runtime runtime({.threads = 1});
  auto with_header = [](async_generator<int> in) -> async_generator<int> {
    for (int n = 0; n < 2; ++n) co_yield int(n);
    while (auto* item = co_await in.next()) co_yield *item;
  };
  auto draw = map([](int, random numbers) { return numbers(); });
  auto drawn = collect(runtime, from(numbers{3}) | through(with_header) | draw);
  EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), 5u);
}

TEST(Through, CountsItsInputAndOutput) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(numbers{9}) | through(add, {}, 10));
  collect(items);
  auto stage = items.statistics().stages.back();
  EXPECT_EQ(stage.in, 9u);
  EXPECT_EQ(stage.out, 9u);
}

TEST(Through, IsNamedForWhatItThrowsButNotForTheFailuresOfOthers) {
  runtime runtime({.threads = 2});
  auto stage_of = [&](const pipeline<int>& broken) {
    try {
      collect(runtime, broken);
    } catch (const stage_error& e) {
      return e.stage();
    }
    return std::string("none");
  };
  EXPECT_EQ(stage_of(from(std::vector{1, -1}) | through(add, {}, 1)), "through");
  auto refuse = [](int) -> int { throw std::runtime_error("no"); };
  EXPECT_EQ(stage_of(from(numbers{3}) | map(refuse, {.name = "refuse"}) | through(add, {}, 1)),
            "refuse");
}

}  // namespace lade::cut_test
