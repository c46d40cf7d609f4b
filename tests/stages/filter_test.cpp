#include <lade/filter.hpp>
#include <lade/from.hpp>
#include <lade/thread_pool.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <vector>

namespace lade::filter_test {

using test::collect;
using test::numbers;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

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

TEST(Filter, InCompletionOrderTheFastOvertakeTheSlow) {
  runtime runtime({.threads = 2});
  test::gate gate;
  auto slow_first = [&](int i) {
    if (i == 0) gate.pass();
    return i != 2;
  };
  auto items = runtime.run(from(numbers{5}) |
                           filter(slow_first, {.concurrency = 2, .order = item_order::completion}));
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) order.push_back(items.wait_next().value());
  EXPECT_THAT(order, ElementsAre(1, 3, 4));
  gate.open();
  EXPECT_EQ(items.wait_next(), 0);
  EXPECT_FALSE(items.wait_next());
}

TEST(Filter, DropsItemsThatTakeTooLong) {
  runtime runtime({.threads = 2});
  auto slow = [](int) {
    test::outlast_a_microsecond();
    return true;
  };
  for (unsigned concurrency : {1u, 2u}) {
    filter_options late{.concurrency = concurrency, .on_error = on_error::skip};
    late.timeout = std::chrono::microseconds(1);
    auto items = runtime.run(from(numbers{3}) | filter(slow, late));
    EXPECT_THAT(collect(items), IsEmpty());
    ASSERT_EQ(items.failures().size(), 3u);
    EXPECT_THAT(items.failures()[0].what, HasSubstr("wait for the stage's function"));
    late.timeout = std::chrono::hours(1);
    EXPECT_THAT(collect(runtime, from(numbers{3}) | filter(slow, late)), ElementsAre(0, 1, 2));
  }
}

TEST(Filter, DoesNotRetryAfterTheDeadline) {
  runtime runtime({.threads = 2});
  std::atomic<int> calls = 0;
  auto slow = [&](int) -> bool {
    ++calls;
    test::outlast_a_microsecond();
    throw std::runtime_error("not yet");
  };
  filter_options late{.retry = {.attempts = 5, .pause = {}}, .on_error = on_error::skip};
  late.deadline = std::chrono::microseconds(1);
  EXPECT_THAT(collect(runtime, from(numbers{3}) | filter(slow, late)), IsEmpty());
  EXPECT_EQ(calls, 3);
  late.deadline = std::chrono::hours(1);
  EXPECT_THAT(collect(runtime, from(numbers{3}) | filter(slow, late)), IsEmpty());
  EXPECT_EQ(calls, 3 + 3 * 5);
}

TEST(Filter, RunsOnADedicatedPool) {
  runtime runtime({.threads = 2});
  thread_pool own({.threads = 1});
  auto there = [&](int) { return detail::this_executor == &own; };
  for (unsigned concurrency : {1u, 4u})
    EXPECT_THAT(collect(runtime, from(numbers{3}) |
                                     filter(there, {.concurrency = concurrency, .pool = &own})),
                ElementsAre(0, 1, 2));
}

TEST(Filter, TakesExactlyItsCapacityWhenItsPredicatesBlock) {
  runtime runtime({.threads = 6});
  for (auto order : {item_order::input, item_order::completion}) {
    std::atomic<int> taken = 0;
    test::gate gate;
    auto blocked = [&](int) {
      gate.pass();
      return true;
    };
    auto items = runtime.run(from([&] { return test::counted(taken); }) |
                             filter(blocked, {.concurrency = 3, .order = order}));
    test::wait_until([&] { return taken == 3 + 3; });
    gate.wait_for(3);
    test::pause(20);
    EXPECT_EQ(taken, 3 + 3);
    gate.open();
  }
}

TEST(Filter, PassesItemsThatOnlyMove) {
  runtime runtime({.threads = 2});
  auto boxed = map([](int i) { return std::make_unique<int>(i); });
  auto items = collect(runtime, from(numbers{4}) | boxed |
                                    filter([](const std::unique_ptr<int>& i) { return *i > 2; }));
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(*items[0], 3);
}

}  // namespace lade::filter_test
