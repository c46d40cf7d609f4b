#include <lade/async_generator.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>
#include <lade/thread_pool.hpp>
#include <lade/when_all.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "../support/coroutines.hpp"

namespace lade::when_all_test {

using testing::ElementsAre;
using testing_support::counted;
using testing_support::other_threads;

static task<int> give(int value) { co_return value; }
static task<std::unique_ptr<int>> own(int value) { co_return std::make_unique<int>(value); }
static task<> note(std::string& text, char letter) {
  text += letter;
  co_return;
}

static task<int> add_up_a_tuple() {
  std::string text;
  auto [number, owned, nothing] = co_await when_all(give(1), own(2), note(text, 'a'));
  static_assert(std::is_same_v<decltype(nothing), std::monostate>);
  co_return number + *owned + static_cast<int>(text.size());
}

TEST(WhenAll, ReturnsATupleOfResults) { EXPECT_EQ(sync_wait(add_up_a_tuple()), 4); }

static task<std::vector<int>> await_vector(int n) {
  std::vector<task<int>> children;
  for (int i = 0; i < n; ++i) children.push_back(give(i));
  co_return co_await when_all(std::move(children));
}

TEST(WhenAll, ReturnsAVectorOfResults) {
  EXPECT_THAT(sync_wait(await_vector(3)), ElementsAre(0, 1, 2));
  EXPECT_TRUE(sync_wait(await_vector(0)).empty());
}

static task<std::string> start_in_order() {
  std::string text;
  std::vector<task<>> children;
  for (char letter : {'a', 'b', 'c'}) children.push_back(note(text, letter));
  co_await when_all(std::move(children));
  co_await when_all(note(text, 'd'), note(text, 'e'));
  co_return text;
}

TEST(WhenAll, StartsItsChildrenInOrder) { EXPECT_EQ(sync_wait(start_in_order()), "abcde"); }

static task<> wait_and_note(event& ready, std::string& text, char letter) {
  co_await ready;
  text += letter;
}

static task<> fail(std::string why) {
  throw std::runtime_error(why);
  co_return;
}

static task<> set(event& ready) {
  ready.set();
  co_return;
}

static task<std::string> fail_and_wait() {
  std::string text;
  event ready;
  try {
    co_await when_all(wait_and_note(ready, text, 'a'), fail("x"), fail("y"), set(ready));
  } catch (const std::runtime_error& failure) {
    text += failure.what();
  }
  std::vector<task<>> children;
  children.push_back(fail("z"));
  children.push_back(note(text, 'b'));
  try {
    co_await when_all(std::move(children));
  } catch (const std::runtime_error& failure) {
    text += failure.what();
  }
  co_return text;
}

TEST(WhenAll, WaitsForAllAndThrowsTheFirstFailure) {
  EXPECT_EQ(sync_wait(fail_and_wait()), "axbz");
}

static task<counted> make_counted(int value) { co_return counted(value); }

static task<int> add_counted() {
  auto [a, b] = co_await when_all(make_counted(1), make_counted(2));
  std::vector<task<counted>> children;
  for (int i = 0; i < 5; ++i) children.push_back(make_counted(i));
  auto values = co_await when_all(std::move(children));
  co_return a.value() + b.value() + values[4].value();
}

TEST(WhenAll, DestroysEveryResultOnce) {
  counted::check check;
  EXPECT_EQ(sync_wait(add_counted()), 7);
  { auto never_awaited = when_all(make_counted(1), make_counted(2)); }
}

static task<int> give_from(other_threads& threads, int value) {
  co_await threads.next();
  co_return value;
}

static task<int> add_from_other_threads(other_threads& threads) {
  auto [a, b, c] = co_await when_all(give_from(threads, 1), give(2), give_from(threads, 3));
  co_return a + b + c;
}

TEST(WhenAll, ChildrenMayEndOnOtherThreads) {
  other_threads threads;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(sync_wait(add_from_other_threads(threads)), 6);
}

static int same(int value) { return value; }

static task<int> await_pool(thread_pool& pool, int rounds) {
  int sum = 0;
  for (int i = 0; i < rounds; ++i) {
    auto [a, b] = co_await when_all(pool.run(same, 1), pool.run(same, 1));
    sum += a + b;
  }
  co_return sum;
}

TEST(WhenAll, TheEndsMayRaceWithTheAwait) {
  thread_pool here({.threads = 1}), there({.threads = 2});
  auto sum = sync_wait(testing_support::in(testing_support::at(here), await_pool(there, 5000)));
  EXPECT_EQ(sum, 10'000);
}

static async_generator<int> from_positions(std::uint64_t first, int n) {
  for (int i = 0; i < n; ++i) {
    detail::positioned<int> item{first + static_cast<std::uint64_t>(i), i};
    co_yield item;
  }
}

static task<int> take(async_generator<int>& in) { co_return *co_await in.next(); }

static async_generator<int> zip(async_generator<int> left, async_generator<int> right) {
  for (int i = 0; i < 2; ++i) {
    auto [a, b] = co_await when_all(take(left), take(right));
    co_yield a + b;
  }
  std::vector<task<int>> both;
  both.push_back(take(left));
  both.push_back(take(right));
  auto values = co_await when_all(std::move(both));
  co_yield values[0] + values[1];
}

static task<std::vector<std::string>> origins(async_generator<int> in) {
  std::vector<std::string> all;
  while (co_await in.next()) all.push_back(to_string(in.origin()));
  co_return all;
}

TEST(WhenAll, TheParentHasTheLineageOfItsChildren) {
  EXPECT_THAT(sync_wait(origins(zip(from_positions(0, 3), from_positions(10, 3)))),
              ElementsAre("0, 10", "1, 11", "2, 12"));
}

static task<> wait_for(event& never) { co_await never; }

static task<> wait_twice(event& never) { co_await when_all(wait_for(never), wait_for(never)); }

TEST(WhenAll, AStopReachesTheChildren) {
  event never;
  std::stop_source source;
  std::jthread stopper([&source] { source.request_stop(); });
  auto waiting = testing_support::in(testing_support::stopped_by(source), wait_twice(never));
  EXPECT_EQ(testing_support::code_of([&] { sync_wait(std::move(waiting)); }), errc::stopped);
}

}  // namespace lade::when_all_test
