#include <lade/filter.hpp>
#include <lade/from.hpp>
#include <lade/sleep.hpp>

#include "support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <vector>

namespace lade {

using test::collect;
using test::count_to;
using test::numbers;
using testing::ElementsAre;

TEST(Filter, KeepsWhatItsPredicateAccepts) {
  runtime runtime({.threads = 2});
  EXPECT_THAT(collect(runtime, from(numbers{6}) | filter([](int i) { return i % 2 == 0; })),
              ElementsAre(0, 2, 4));
}

TEST(Filter, DropsAndNamesItemsWhosePredicateThrows) {
  runtime runtime({.threads = 2});
  auto refuse = [](int i) {
    if (i == 1) throw std::runtime_error("one");
    return true;
  };
  auto items = runtime.run(from(numbers{3}) | filter(refuse, {.on_error = on_error::skip}));
  EXPECT_THAT(collect(items), ElementsAre(0, 2));
  ASSERT_EQ(items.failures().size(), 1u);
  EXPECT_EQ(items.failures()[0].item, "1");
  EXPECT_THROW(collect(runtime, from(numbers{3}) | filter(refuse)), stage_error);
}

TEST(FlatMap, OfGeneratorsInGenerators) {
  runtime runtime({.threads = 2});
  auto nested = from(numbers{4}) | flat_map(count_to) | flat_map(count_to);
  EXPECT_THAT(collect(runtime, nested), ElementsAre(0, 0, 0, 1));
}

static async_generator<int> then_fail(int i) {
  co_yield int(i);
  if (i == 1) throw std::runtime_error("one");
}

TEST(FlatMap, KeepsWhatWasYieldedBeforeAFailure) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(numbers{3}) | flat_map(then_fail, {.on_error = on_error::skip}));
  EXPECT_THAT(collect(items), ElementsAre(0, 1, 2));
  EXPECT_EQ(items.failures().size(), 1u);
}

static async_generator<int> then_sleep(int i) {
  co_yield int(i);
  if (i == 1) co_await sleep(std::chrono::hours(10));
}

TEST(FlatMap, IsStoppedWhileItsGeneratorSleeps) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(numbers{-1}) | flat_map(then_sleep, {.on_error = on_error::skip}));
  EXPECT_EQ(items.wait_next(), 0);
  EXPECT_EQ(items.wait_next(), 1);
  items.stop();
  EXPECT_THROW(items.wait_next(), error);
  EXPECT_TRUE(items.failures().empty());
}

}  // namespace lade
