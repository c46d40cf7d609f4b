#include <lade/async_generator.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>
#include <lade/thread_pool.hpp>
#include <lade/when_all.hpp>

#include <gtest/gtest.h>

#include <concepts>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "../support/coroutines.hpp"

namespace lade::this_context_test {

using testing_support::at;
using testing_support::in;

static task<const context*> here() { co_return &co_await this_context_reference(); }

static task<const context*> one_deeper() { co_return co_await here(); }

static async_generator<const context*> yield_here() {
  const context* mine = &co_await this_context_reference();
  co_yield mine;
}

static task<const context*> through_generator() {
  auto generator = yield_here();
  co_return *co_await generator.next();
}

static task<const context*> through_when_all() {
  auto [a, b] = co_await when_all(here(), one_deeper());
  co_return a == b ? a : nullptr;
}

static task<bool> all_see(const context& execution) {
  const context* seen[] = {co_await here(), co_await one_deeper(), co_await through_generator(),
                           co_await through_when_all()};
  for (auto* each : seen)
    if (each != &execution) co_return false;
  co_return true;
}

static task<bool> pass_down() {
  context execution;
  auto work = all_see(execution);
  co_return co_await with_context(execution, std::move(work));
}

TEST(ThisContext, PassesFromAwaiterToAwaited) { EXPECT_TRUE(sync_wait(pass_down())); }

static task<bool> compare_around(const context& inner) {
  auto* before = co_await here();
  auto* inside = co_await with_context(inner, here());
  auto* after = co_await here();
  co_return before == after&& inside == &inner&& before != inside;
}

TEST(ThisContext, AnotherContextEndsWithTheAwait) {
  context outer, inner;
  EXPECT_TRUE(sync_wait(in(outer, compare_around(inner))));
}

static task<int> give_seven() { co_return 7; }

static task<> await_twice() {
  context inner;
  auto first = give_seven();
  auto second = std::move(first);
  co_await with_context(inner, std::move(first));
}

TEST(ThisContext, ATaskThatWasMovedFromIsRefusedInAnother) {
  EXPECT_EQ(testing_support::code_of([] { sync_wait(await_twice()); }), errc::invalid_argument);
}

static async_generator<int> yield_whether_stopped(std::vector<context>& seen) {
  while (true) {
    auto mine = co_await this_context();
    seen.push_back(mine);
    co_yield mine.stop.stop_requested();
  }
}

static task<int> next_of(async_generator<int>& from) { co_return *co_await from.next(); }

// What a generator has kept of a consumer stays valid when that consumer and its context are gone.
TEST(ThisContext, OfAGeneratorIsThatOfItsLastConsumer) {
  std::vector<context> seen;
  auto generator = yield_whether_stopped(seen);
  for (bool stopped : {false, true, false}) {
    std::stop_source source;
    if (stopped) source.request_stop();
    EXPECT_EQ(sync_wait(in(testing_support::stopped_by(source), next_of(generator))), stopped);
  }
  EXPECT_FALSE(seen[0].stop.stop_requested());
  EXPECT_TRUE(seen[1].stop.stop_requested());
}

TEST(ThisContext, IsReturnedByValue) {
  using given = decltype(std::declval<detail::this_context_awaiter>().await_resume());
  EXPECT_TRUE((std::same_as<given, context>));
}

static testing_support::foreign_coroutine ask_in_foreign(context& seen) {
  seen = co_await this_context();
}

static task<std::string> name_of_stage(int) { co_return (co_await this_context()).stage_name(); }

TEST(ThisContext, NamesTheStage) {
  runtime runtime({.threads = 1});
  auto names = from(std::vector{1}) | map(name_of_stage, {.name = "first"});
  EXPECT_EQ(runtime.run(names).wait_next(), "first");
  EXPECT_EQ(sync_wait(name_of_stage(1)), "");
}

TEST(ThisContext, OfAForeignCoroutineIsEmpty) {
  thread_pool pool({.threads = 1});
  context seen = at(pool);
  ask_in_foreign(seen);
  EXPECT_EQ(seen.home, nullptr);
  EXPECT_EQ(seen.runtime, nullptr);
}

static int same(int value) { return value; }

static task<bool> stay_at_home(thread_pool& home, thread_pool& away) {
  co_await continue_on(home);
  bool home_before = detail::this_executor == &home;
  int value = co_await away.run(same, 1);
  co_return home_before&& value == 1 && detail::this_executor == &home;
}

TEST(ThisContext, CoroutinesResumeOnTheirExecutor) {
  thread_pool home({.threads = 1}), away({.threads = 1});
  EXPECT_TRUE(sync_wait(in(at(home), stay_at_home(home, away))));
}

}  // namespace lade::this_context_test
