#include <lade/async_generator.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>
#include <lade/thread_pool.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <concepts>
#include <new>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include "../support/coroutines.hpp"
#include "../support/failing_new.hpp"

namespace lade::async_generator_test {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::counted;
using testing_support::other_threads;

static async_generator<int> count_to(int last) {
  for (int i = 1; i <= last; ++i) co_yield i;
}

template <class T>
static task<std::vector<T>> collect(async_generator<T> in) {
  std::vector<T> all;
  while (auto item = co_await in.next()) all.push_back(std::move(*item));
  co_return all;
}

TEST(AsyncGenerator, CannotBeConstructedFromAnotherType) {
  EXPECT_FALSE((std::constructible_from<async_generator<int>, async_generator<float>>));
  EXPECT_TRUE((std::constructible_from<async_generator<int>, async_generator<int>>));
}

TEST(AsyncGenerator, YieldsUntilItEnds) {
  EXPECT_THAT(sync_wait(collect(count_to(3))), ElementsAre(1, 2, 3));
  EXPECT_THAT(sync_wait(collect(count_to(0))), IsEmpty());
}

static task<int> ask_past_the_end() {
  auto numbers = count_to(1);
  co_await numbers.next();
  int nulls = 0;
  for (int i = 0; i < 3; ++i) {
    auto* item = co_await numbers.next();
    nulls += item == nullptr;
  }
  co_return nulls;
}

TEST(AsyncGenerator, ReturnsNothingPastItsEnd) { EXPECT_EQ(sync_wait(ask_past_the_end()), 3); }

static async_generator<int> every_second_in(other_threads& threads) {
  for (int i = 0; i < 4; ++i) {
    if (i % 2 == 1) co_await threads.next();
    co_yield i;
  }
}

static task<std::vector<bool>> which_are_awaited(other_threads& threads) {
  auto items = every_second_in(threads);
  std::vector<bool> awaited;
  while (auto* item = co_await items.next()) {
    EXPECT_EQ(*item % 2 == 1, awaited.size() % 2 == 1);
    awaited.push_back(items.awaited());
  }
  co_return awaited;
}

TEST(AsyncGenerator, ReportsWhetherAValueWasAwaited) {
  other_threads threads;
  auto awaited = sync_wait(which_are_awaited(threads));
  ASSERT_EQ(awaited.size(), 4u);
  EXPECT_FALSE(awaited[0]);
  EXPECT_FALSE(awaited[2]);
}

static async_generator<int> fail_after_one() {
  co_yield 1;
  throw std::runtime_error("why");
}

static task<std::string> use_after_failure() {
  auto failing = fail_after_one();
  std::string text = std::to_string(*co_await failing.next());
  try {
    co_await failing.next();
  } catch (const std::runtime_error& failure) {
    text += failure.what();
  }
  auto* item = co_await failing.next();
  co_return item ? "more" : text;
}

TEST(AsyncGenerator, ThrowsOnceAndThenIsAtItsEnd) {
  EXPECT_EQ(sync_wait(use_after_failure()), "1why");
}

static async_generator<counted> yield_counted(int n, counted kept) {
  for (int i = 0; i < n; ++i) {
    co_yield counted(i);
    counted named(n + i);
    co_yield named;
    co_yield std::move(named);
  }
  EXPECT_EQ(kept.value(), 9);
}

static async_generator<counted> move_on(async_generator<counted> in) {
  while (auto item = co_await in.next()) co_yield std::move(*item);
}

static task<int> add_values(async_generator<counted> in) {
  int sum = 0;
  while (auto item = co_await in.next()) {
    counted mine = std::move(*item);
    sum += mine.value();
  }
  co_return sum;
}

TEST(AsyncGenerator, DestroysEveryValueOnce) {
  counted::check check;
  // Of 0; 2, moved from: -1; 1; 3, -1.
  EXPECT_EQ(sync_wait(add_values(move_on(yield_counted(2, counted(9))))), 0 + 2 - 1 + 1 + 3 - 1);
}

static task<> take_one(async_generator<counted> in) { co_await in.next(); }

TEST(AsyncGenerator, DestroysItsValuesIfItIsNotReadToItsEnd) {
  counted::check check;
  sync_wait(take_one(move_on(yield_counted(100, counted(9)))));
  { auto never_started = yield_counted(100, counted(9)); }
}

struct named_number {
  std::string name;
  counted number;
};

static async_generator<named_number> yield_aggregates(int n) {
  for (int i = 0; i < n; ++i) {
    named_number item{"a name that is too long for the string itself", counted(i)};
    co_yield item;
  }
}

static task<int> add_numbers(async_generator<named_number> in) {
  int sum = 0;
  while (auto item = co_await in.next()) {
    EXPECT_EQ(item->name, "a name that is too long for the string itself");
    sum += item->number.value();
  }
  co_return sum;
}

TEST(AsyncGenerator, YieldsNamedAggregates) {
  counted::check check;
  EXPECT_EQ(sync_wait(add_numbers(yield_aggregates(4))), 6);
}

static async_generator<int> yield_from_other_threads(other_threads& threads, int n) {
  for (int i = 0; i < n; ++i) {
    co_await threads.next();
    co_yield i;
  }
  co_await threads.next();
}

static async_generator<int> go_on_elsewhere(other_threads& threads, async_generator<int> in) {
  while (auto item = co_await in.next()) {
    co_await threads.next();
    co_yield *item;
  }
}

TEST(AsyncGenerator, YieldsFromOtherThreads) {
  other_threads threads;
  EXPECT_THAT(sync_wait(collect(yield_from_other_threads(threads, 3))), ElementsAre(0, 1, 2));
  EXPECT_THAT(sync_wait(collect(go_on_elsewhere(threads, yield_from_other_threads(threads, 3)))),
              ElementsAre(0, 1, 2));
}

static async_generator<int> yield_from_pool(thread_pool& pool, int n) {
  for (int i = 0; i < n; ++i) {
    if (i % 3 != 0) co_await continue_on(pool);
    co_yield i;
  }
}

static task<long> add_up(async_generator<int> in) {
  long sum = 0;
  while (auto item = co_await in.next()) sum += *item;
  co_return sum;
}

// The item is there while the consumer is about to suspend.
TEST(AsyncGenerator, AnItemMayRaceWithTheWaitForIt) {
  thread_pool here({.threads = 1}), there({.threads = 1});
  auto sum = sync_wait(
      testing_support::in(testing_support::at(here), add_up(yield_from_pool(there, 10'000))));
  EXPECT_EQ(sum, 49'995'000);
}

static async_generator<bool> yield_stop_requests() {
  while (true) {
    auto execution = co_await this_context();
    co_yield execution.stop.stop_requested();
  }
}

static task<std::vector<bool>> ask_in_two_contexts() {
  std::stop_source source;
  source.request_stop();
  auto generator = yield_stop_requests();
  auto ask = [](async_generator<bool>& from) -> task<bool> { co_return *co_await from.next(); };
  bool outside = co_await ask(generator);
  bool inside = co_await testing_support::in(testing_support::stopped_by(source), ask(generator));
  co_return std::vector{outside, inside};
}

TEST(AsyncGenerator, InheritsTheContextOfTheConsumer) {
  EXPECT_THAT(sync_wait(ask_in_two_contexts()), ElementsAre(false, true));
}

static async_generator<int> from_positions(std::vector<std::uint64_t> positions) {
  for (auto position : positions) {
    int value = static_cast<int>(position) * 10;
    detail::positioned<int> item{position, value};
    co_yield item;
  }
}

static task<int> first_of(async_generator<int>& in) { co_return *co_await in.next(); }

static async_generator<int> add_pairs(async_generator<int> in) {
  while (auto item = co_await in.next()) {
    int first = *item;
    int second = co_await first_of(in);  // what a task consumes counts to its awaiter
    co_yield first + second;
  }
}

static async_generator<int> drop_odd_tens(async_generator<int> in) {
  while (auto item = co_await in.next())
    if (*item % 20 == 0) co_yield *item;
}

static task<std::vector<std::string>> origins(async_generator<int> in) {
  std::vector<std::string> all;
  while (co_await in.next()) all.push_back(to_string(in.origin()));
  co_return all;
}

TEST(AsyncGenerator, ItemsKnowTheirPositions) {
  EXPECT_THAT(sync_wait(origins(from_positions({4, 7}))), ElementsAre("4", "7"));
}

TEST(AsyncGenerator, AnItemHasThePositionsOfAllConsumedItems) {
  EXPECT_THAT(sync_wait(origins(add_pairs(from_positions({1, 2, 5, 3})))),
              ElementsAre("1-2", "3, 5"));
}

TEST(AsyncGenerator, ADroppedItemAddsItsPositionToTheNext) {
  EXPECT_THAT(sync_wait(origins(drop_odd_tens(from_positions({0, 1, 2})))),
              ElementsAre("0", "1-2"));
}

static async_generator<int> two_of_each(async_generator<int> in) {
  while (auto item = co_await in.next()) {
    int value = *item;
    auto origin = in.origin();
    co_yield value;
    detail::with_lineage<int> again{origin, value};
    co_yield again;
  }
}

TEST(AsyncGenerator, AnItemMayTakeOverAKeptLineage) {
  EXPECT_THAT(sync_wait(origins(two_of_each(from_positions({1, 2})))),
              ElementsAre("1", "1", "2", "2"));
}

static async_generator<int> hold_back(async_generator<int> in) {
  int held = *co_await in.next().apart();
  auto origin = in.origin();
  while (auto item = co_await in.next().apart()) {
    detail::with_lineage<int> yielded{origin, held};
    co_yield yielded;
    held = *item;
    origin = in.origin();
  }
}

TEST(AsyncGenerator, ItemsAwaitedApartAddNoPositions) {
  EXPECT_THAT(sync_wait(origins(hold_back(from_positions({5, 6, 7})))), ElementsAre("5", "6"));
}

static async_generator<int> fail_after(int last) {
  for (int i = 0; i <= last; ++i) co_yield i;
  throw std::runtime_error("no more");
}

static async_generator<int> one_behind(async_generator<int> in) {
  std::exception_ptr failure;
  int* held = nullptr;
  int kept = 0;
  while (auto* item = co_await in.next().apart().deferring(failure)) {
    if (held) co_yield *held;
    held = &(kept = *item);
  }
  if (held) co_yield *held;
  if (failure) std::rethrow_exception(failure);
}

static task<std::string> texts_of(async_generator<int> in) {
  std::string texts;
  try {
    while (auto* item = co_await in.next()) texts += std::to_string(*item) + ' ';
  } catch (const std::runtime_error& e) {
    texts += e.what();
  }
  co_return texts;
}

TEST(AsyncGenerator, HeldItemsAreYieldedBeforeAFailure) {
  EXPECT_EQ(sync_wait(texts_of(one_behind(fail_after(1)))), "0 1 no more");
  EXPECT_EQ(sync_wait(texts_of(one_behind(from_positions({5, 6})))), "50 60 ");
}

static async_generator<int> yield_without_memory() {
  lineage apart(1);
  apart.add(5);
  held<int> item(7, std::move(apart));
  test::failing_allocation next(0);
  co_yield std::move(item);
}

TEST(AsyncGenerator, AYieldForWhichThereIsNoMemoryThrows) {
  if (!test::allocations_can_fail) GTEST_SKIP() << "the operator new of TSan does not fail";
  EXPECT_THROW(sync_wait(collect(yield_without_memory())), std::bad_alloc);
}

TEST(AsyncGenerator, ThatWasMovedFromIsRefused) {
  auto numbers = count_to(3);
  auto taken = std::move(numbers);
  EXPECT_THAT(
      [&] { (void)numbers.next(); },
      testing::ThrowsMessage<error>("await an item of a generator: it has been moved from"));
}

}  // namespace lade::async_generator_test
