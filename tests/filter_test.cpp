#include <lade/filter.hpp>
#include <lade/from.hpp>

#include "support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

namespace lade {

using test::collect;
using test::numbers;
using testing::ElementsAre;
using testing::ElementsAreArray;

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

TEST(Filter, MayCallItsPredicateForSeveralItemsAtATime) {
  runtime runtime({.threads = 3});
  test::gate gate;
  auto together = [&](int i) {
    gate.pass();
    return i % 3 > 0;
  };
  auto items = runtime.run(from(numbers{30}) | filter(together, {.concurrency = 3}));
  gate.wait_for(3);
  gate.open();
  EXPECT_THAT(collect(items),
              ElementsAreArray(
                  collect(runtime, from(numbers{30}) | filter([](int i) { return i % 3 > 0; }))));
}

TEST(Filter, CallsAPredicateThatThrowsAgain) {
  runtime runtime({.threads = 2});
  std::atomic<int> calls = 0;
  auto second_time = [&](int) {
    if (++calls % 2) throw std::runtime_error("not yet");
    return true;
  };
  lade::retry at_once{.attempts = 2, .pause = {}};
  EXPECT_THAT(collect(runtime, from(numbers{3}) | filter(second_time, {.retry = at_once})),
              ElementsAre(0, 1, 2));
  EXPECT_EQ(calls, 6);
}

TEST(Filter, PassesItemsThatOnlyMove) {
  runtime runtime({.threads = 2});
  auto boxed = map([](int i) { return std::make_unique<int>(i); });
  auto items = collect(runtime, from(numbers{4}) | boxed |
                                    filter([](const std::unique_ptr<int>& i) { return *i > 2; }));
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(*items[0], 3);
}

}  // namespace lade
