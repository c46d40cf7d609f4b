#include <lade/async_generator.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>
#include <lade/thread_pool.hpp>
#include <lade/when_all.hpp>

#include <gtest/gtest.h>

#include <stop_token>
#include <utility>

#include "support/coroutines.hpp"

namespace lade {

using testing_support::at;
using testing_support::in;

static task<const context*> here() { co_return &co_await this_context(); }

static task<const context*> one_deeper() { co_return co_await here(); }

static async_generator<const context*> yield_here() {
  const context* mine = &co_await this_context();
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

static task<bool> all_see(const context& surroundings) {
  const context* seen[] = {co_await here(), co_await one_deeper(), co_await through_generator(),
                           co_await through_when_all()};
  for (auto* each : seen)
    if (each != &surroundings) co_return false;
  co_return true;
}

static task<bool> pass_down() {
  context surroundings;
  auto work = all_see(surroundings);
  co_return co_await detail::under(surroundings, std::move(work));
}

TEST(ThisContext, PassesFromAwaiterToAwaited) { EXPECT_TRUE(sync_wait(pass_down())); }

static task<bool> compare_around(const context& inner) {
  auto* before = co_await here();
  auto* inside = co_await detail::under(inner, here());
  auto* after = co_await here();
  co_return before == after&& inside == &inner&& before != inside;
}

TEST(ThisContext, OtherSurroundingsEndWithTheAwait) {
  context outer, inner;
  EXPECT_TRUE(sync_wait(in(outer, compare_around(inner))));
}

static testing_support::foreign_coroutine ask_in_foreign(context& seen) {
  seen = co_await this_context();
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
  co_await detail::continue_on(home);
  bool home_before = detail::this_executor == &home;
  int value = co_await away.run(same, 1);
  co_return home_before&& value == 1 && detail::this_executor == &home;
}

TEST(ThisContext, CoroutinesResumeAtHome) {
  thread_pool home({.threads = 1}), away({.threads = 1});
  EXPECT_TRUE(sync_wait(in(at(home), stay_at_home(home, away))));
}

}  // namespace lade
