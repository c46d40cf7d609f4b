#include <lade/async_generator.hpp>
#include <lade/continue_on.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/sleep.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>
#include <lade/thread_pool.hpp>
#include <lade/when_all.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "../support/coroutines.hpp"
#include "../support/reactors.hpp"

namespace lade::continue_on_test {

using testing_support::code_of;

class ContinueOn : public testing_support::ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, ContinueOn,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         testing_support::reactor_name);

// Whether this is the thread of a reactor: at first, on the pool, and after the next await.
static task<std::vector<bool>> visit_the_pool(runtime& where) {
  std::vector<bool> seen{on_reactor_thread()};
  co_await continue_on_pool();
  if (where.pool().is_current()) seen.push_back(on_reactor_thread());
  co_await continue_on_pool();  // is there already
  if (where.pool().is_current()) seen.push_back(on_reactor_thread());
  co_await sleep(std::chrono::nanoseconds(1));
  seen.push_back(on_reactor_thread());
  co_return seen;
}

TEST_P(ContinueOn, ThePoolOfTheRuntimeUntilTheNextAwaitThatSuspends) {
  runtime where(options());
  auto seen = wait_on_reactor({.runtime = &where}, visit_the_pool(where));
  EXPECT_EQ(seen, (std::vector{true, false, false, true}));
}

// Suspends its coroutine, which another thread resumes before await_suspend has returned.
struct resumed_elsewhere_at_once {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> coroutine) const { std::thread(coroutine).join(); }
  void await_resume() const noexcept {}
};

static task<> suspend() { co_await resumed_elsewhere_at_once(); }

static async_generator<int> suspend_before_each() {
  for (int i = 0; i < 2; ++i) {
    co_await suspend();
    co_yield i;
  }
}

static std::vector<task<>> two_that_suspend() {
  std::vector<task<>> both;
  both.push_back(suspend());
  both.push_back(suspend());
  return both;
}

// Whether the coroutine is back on the reactor after each kind of await that it begins on the pool.
static task<std::vector<bool>> await_on_the_pool() {
  std::vector<bool> seen;
  co_await continue_on_pool();
  co_await suspend();
  seen.push_back(on_reactor_thread());
  co_await continue_on_pool();
  co_await when_all(suspend(), suspend());
  seen.push_back(on_reactor_thread());
  co_await continue_on_pool();
  co_await when_all(two_that_suspend());
  seen.push_back(on_reactor_thread());
  context same = co_await this_context();
  co_await continue_on_pool();
  co_await with_context(same, suspend());
  seen.push_back(on_reactor_thread());
  auto numbers = suspend_before_each();
  for (bool more = true; more;) {
    co_await continue_on_pool();
    more = co_await numbers.next();
    if (more) seen.push_back(on_reactor_thread());
  }
  co_return seen;
}

TEST_P(ContinueOn, AnAwaitThatEndsElsewhereBeforeItsCallReturnsHasSuspended) {
  runtime where(options());
  auto seen = wait_on_reactor({.runtime = &where}, await_on_the_pool());
  EXPECT_EQ(seen, std::vector(6, true));
}

static task<> end_at_once() { co_return; }

static task<bool> stay_on_the_pool() {
  co_await continue_on_pool();
  co_await end_at_once();
  co_await when_all(end_at_once(), end_at_once());
  context same = co_await this_context();
  co_await with_context(same, end_at_once());
  co_return on_reactor_thread();
}

TEST_P(ContinueOn, AnAwaitThatDoesNotSuspendLeavesTheCoroutineOnThePool) {
  runtime where(options());
  EXPECT_FALSE(wait_on_reactor({.runtime = &where}, stay_on_the_pool()));
}

static task<bool> visit(thread_pool& other) {
  co_await continue_on(other);
  co_return other.is_current();
}

TEST_P(ContinueOn, AnotherPool) {
  runtime where(options());
  thread_pool other({.threads = 1});
  EXPECT_TRUE(sync_wait(where, visit(other)));
  EXPECT_FALSE(on_reactor_thread());
}

static task<std::thread::id> go_to_no_pool() {
  co_await continue_on_pool();
  co_return std::this_thread::get_id();
}

TEST(ContinueOnPool, StaysOnTheThreadOutsideARuntime) {
  EXPECT_EQ(sync_wait(go_to_no_pool()), std::this_thread::get_id());
}

class WaitOnReactor : public testing_support::ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, WaitOnReactor,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         testing_support::reactor_name);

static task<int> sleep_and_return(int value) {
  co_await sleep(std::chrono::nanoseconds(1));
  if (value < 0) throw std::out_of_range("negative");
  co_return value;
}

TEST_P(WaitOnReactor, ReturnsWhatTheTaskReturnsOrThrows) {
  runtime where(options());
  context here{.runtime = &where};
  EXPECT_EQ(wait_on_reactor(here, sleep_and_return(3)), 3);
  EXPECT_THROW(wait_on_reactor(here, sleep_and_return(-1)), std::out_of_range);
}

TEST_P(WaitOnReactor, PassesTheStopOfTheContext) {
  runtime where(options());
  std::stop_source source;
  source.request_stop();
  context here{.runtime = &where, .stop = source.get_token()};
  EXPECT_EQ(code_of([&] { wait_on_reactor(here, sleep_and_return(3)); }), errc::stopped);
}

static task<int> wait_within(context here) { co_return wait_on_reactor(here, sleep_and_return(3)); }

TEST_P(WaitOnReactor, IsRefusedOnTheThreadOfAReactorAndWithoutARuntime) {
  runtime where(options());
  context here{.runtime = &where};
  EXPECT_EQ(code_of([&] { wait_on_reactor(here, wait_within(here)); }), errc::wrong_thread);
  EXPECT_EQ(sync_wait(where, wait_within(here)), 3);  // on the pool it may
  EXPECT_EQ(code_of([] { wait_on_reactor({}, sleep_and_return(3)); }), errc::no_runtime);
}

TEST_P(WaitOnReactor, RefusesATaskThatWasMovedFrom) {
  runtime where(options());
  auto first = sleep_and_return(3);
  auto second = std::move(first);
  auto wait = [&] { wait_on_reactor({.runtime = &where}, std::move(first)); };
  EXPECT_EQ(code_of(wait), errc::invalid_argument);
}

}  // namespace lade::continue_on_test
