#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/scope.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>
#include <lade/thread_pool.hpp>
#include <lade/when_all.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "../support/coroutines.hpp"

namespace lade::task_test {

using testing_support::counted;
using testing_support::foreign_coroutine;
using testing_support::other_threads;

static task<int> give(int value) { co_return value; }

static task<> note(std::string& text, std::string word) {
  text += word;
  co_return;
}

static task<> await_in_turn(std::string& text, task<> first, task<> second) {
  text += "(";
  co_await std::move(first);
  text += "-";
  co_await std::move(second);
  text += ")";
}

TEST(Task, RunsWhenItIsAwaited) {
  std::string text;
  auto work = await_in_turn(text, note(text, "a"), note(text, "b"));
  EXPECT_EQ(text, "");
  sync_wait(std::move(work));
  EXPECT_EQ(text, "(a-b)");
}

TEST(Task, ThatIsNeverAwaitedNeverRuns) {
  counted::check check;
  std::string text;
  {
    auto work = [](std::string& out, counted) -> task<> {
      out += "ran";
      co_return;
    }(text, counted(1));
  }
  EXPECT_EQ(text, "");
}

static task<int&> refer_to(int& variable) { co_return variable; }

TEST(Task, ReturnsAReference) {
  int variable = 1;
  EXPECT_EQ(&sync_wait(refer_to(variable)), &variable);
}

static task<std::unique_ptr<int>> own(int value) { co_return std::make_unique<int>(value); }

static task<int> sum_of_owned(int a, int b) {
  auto first = co_await own(a);
  auto second = co_await own(b);
  co_return *first + *second;
}

TEST(Task, ReturnsMoveOnlyValues) { EXPECT_EQ(sync_wait(sum_of_owned(3, 4)), 7); }

struct named_value {
  std::string name;
  counted value;
};

static task<named_value> make_aggregate() {
  co_return named_value{"a name that is too long for the string itself", counted(5)};
}

static task<named_value> pass_aggregate(named_value value) {
  auto other = co_await make_aggregate();
  value.name += other.name;
  co_return std::move(value);
}

TEST(Task, AggregatesPassThrough) {
  counted::check check;
  named_value value{"x ", counted(1)};
  auto passed = sync_wait(pass_aggregate(std::move(value)));
  EXPECT_EQ(passed.name, "x a name that is too long for the string itself");
  EXPECT_EQ(passed.value.value(), 1);
}

static task<int> fail(std::string why) {
  throw std::runtime_error(why);
  co_return 0;
}

static task<std::string> catch_failure() {
  try {
    co_await fail("why");
  } catch (const std::runtime_error& failure) {
    co_return failure.what();
  }
  co_return "nothing";
}

TEST(Task, ThrowsToItsAwaiter) {
  EXPECT_EQ(sync_wait(catch_failure()), "why");
  EXPECT_THROW(sync_wait(fail("again")), std::runtime_error);
}

struct throws_at_its_end {
  ~throws_at_its_end() noexcept(false) { throw std::runtime_error("at the end"); }
};

static task<named_value> throw_after_the_result() {
  throws_at_its_end last;
  co_return named_value{"never seen", counted(1)};
}

// It replaces the result that had been stored before.
TEST(Task, AnExceptionOfALocalVariablesDestructorIsThrownToItsAwaiter) {
  counted::check check;
  EXPECT_THROW(sync_wait(throw_after_the_result()), std::runtime_error);
}

struct throws_when_moved {
  throws_when_moved() = default;
  throws_when_moved(throws_when_moved&&) { throw std::runtime_error("moved"); }
};

static task<throws_when_moved> throw_in_the_result() { co_return throws_when_moved(); }

TEST(Task, AnExceptionOfTheResultsConstructorIsThrownToItsAwaiter) {
  EXPECT_THROW(sync_wait(throw_in_the_result()), std::runtime_error);
}

static task<> throw_through(counted, task<int> work) { co_await std::move(work); }

TEST(Task, AnExceptionDestroysTheFramesThatItPasses) {
  counted::check check;
  EXPECT_THROW(sync_wait(throw_through(counted(1), fail("why"))), std::runtime_error);
}

static task<int> descend(int depth) {
  if (depth == 0) co_return 0;
  co_return 1 + co_await descend(depth - 1);
}

TEST(Task, AwaitsNest) { EXPECT_EQ(sync_wait(descend(1000)), 1000); }

TEST(Task, CanBeMoved) {
  auto first = give(1);
  auto second = give(2);
  first = std::move(second);
  EXPECT_EQ(sync_wait(std::move(first)), 2);
}

static task<std::thread::id> visit_other_thread(other_threads& threads) {
  co_await threads.next();
  co_return std::this_thread::get_id();
}

static task<bool> reach_other_thread(other_threads& threads) {
  auto here = std::this_thread::get_id();
  auto there = co_await visit_other_thread(threads);
  co_return there != here;
}

TEST(Task, AwaitsAForeignAwaitable) {
  other_threads threads;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(sync_wait(reach_other_thread(threads)));
}

static foreign_coroutine await_in_foreign(task<int> work, int& result) {
  result = co_await std::move(work);
}

TEST(Task, IsAwaitedByAForeignCoroutine) {
  int result = 0;
  await_in_foreign(give(3), result);
  EXPECT_EQ(result, 3);
}

static task<int> wait_and_give(event& ready, int value) {
  co_await ready;
  co_return value;
}

TEST(Task, ResumesAForeignCoroutineLater) {
  event ready;
  int result = 0;
  await_in_foreign(wait_and_give(ready, 4), result);
  EXPECT_EQ(result, 0);
  ready.set();
  EXPECT_EQ(result, 4);
}

static int same(int value) { return value; }

static task<long> sum_from_pool(thread_pool& pool, int n) {
  long sum = 0;
  for (int i = 0; i < n; ++i) sum += co_await pool.run(same, i);
  co_return sum;
}

// The child ends on another thread while its parent is about to suspend.
TEST(Task, TheEndMayRaceWithTheAwait) {
  thread_pool here({.threads = 1}), there({.threads = 1});
  auto sum =
      sync_wait(testing_support::in(testing_support::at(here), sum_from_pool(there, 10'000)));
  EXPECT_EQ(sum, 49'995'000);
}

static task<> await_again(task<int> work, std::string& why) {
  co_await std::move(work);
  try {
    co_await std::move(work);
  } catch (const error& refusal) {
    why = refusal.what();
  }
}

TEST(Task, AwaitedTwiceIsRefused) {
  std::string why;
  sync_wait(await_again(give(1), why));
  EXPECT_EQ(why, "await a task: it has been awaited before");
}

TEST(Task, ThatWasMovedFromIsRefused) {
  using testing::ThrowsMessage;
  auto work = give(1);
  auto moved = std::move(work);
  auto refused = ThrowsMessage<error>("await a task: it has been moved from");
  EXPECT_THAT([&] { sync_wait(std::move(work)); }, refused);
  EXPECT_THAT([&] { (void)when_all(std::move(moved), std::move(work)); }, refused);
  scope children;
  EXPECT_THAT([&] { children.start(std::move(work)); }, refused);
}

}  // namespace lade::task_test
