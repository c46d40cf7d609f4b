#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sleep.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "../support/coroutines.hpp"
#include "../support/live_allocations.hpp"

namespace lade::scope_test {

using namespace std::chrono_literals;
using testing_support::code_of;
using testing_support::counted;

static task<> join(scope& children) { co_await children.join(); }

static task<> add_one(std::atomic<int>& sum) {
  ++sum;
  co_return;
}

static task<> start_many(int n, std::atomic<int>& sum) {
  scope children(co_await this_context());
  for (int i = 0; i < n; ++i) children.start(add_one(sum));
  co_await children.join();
}

TEST(Scope, JoinWaitsForAllChildren) {
  runtime runtime({.threads = 2});
  std::atomic<int> sum = 0;
  sync_wait(runtime, start_many(100'000, sum));
  EXPECT_EQ(sum, 100'000);
  sync_wait(start_many(100'000, sum));
  EXPECT_EQ(sum, 200'000);
}

static task<int> start_without_memory(int n, std::atomic<int>& sum) {
  scope children(co_await this_context());
  int started = 0;
  for (int i = 0; i < n; ++i) {
    auto child = add_one(sum);
    test::failing_allocation none(static_cast<std::uint64_t>(i % 3));
    try {
      children.start(std::move(child));
      ++started;
    } catch (const std::bad_alloc&) {}
  }
  co_await children.join();
  co_return started;
}

TEST(Scope, AChildThatCannotBeStartedForLackOfMemoryIsNoChild) {
  runtime runtime({.threads = 1});
  std::atomic<int> sum = 0;
  EXPECT_EQ(sync_wait(runtime, start_without_memory(1000, sum)), sum);
}

TEST(Scope, ItsOwnerMayFailIt) {
  event never;
  scope children;
  children.start([](event& awaited) -> task<> { co_await awaited; }(never));
  children.fail(std::make_exception_ptr(error(errc::failed, "first")));
  children.fail(std::make_exception_ptr(error(errc::invalid_argument, "second")));
  EXPECT_EQ(code_of([&] { sync_wait(join(children)); }), errc::failed);
}

TEST(Scope, WithoutChildrenHasNothingToWaitFor) {
  scope children;
  sync_wait(join(children));
}

static task<int> give_counted(counted value) { co_return value.value(); }

TEST(Scope, DropsTheResultsOfItsChildren) {
  counted::check check;
  scope children;
  for (int i = 0; i < 3; ++i) children.start(give_counted(counted(i)));
  sync_wait(join(children));
}

static task<> wait_for(event& ready, std::atomic<int>& stopped) {
  try {
    co_await ready;
  } catch (const error& failure) {
    if (failure.code() == errc::stopped) ++stopped;
    throw;
  }
}

static task<> fail(std::string why) {
  throw std::runtime_error(why);
  co_return;
}

static task<std::string> fail_beside_waiters(std::atomic<int>& stopped) {
  event never;
  scope children(co_await this_context());
  for (int i = 0; i < 3; ++i) children.start(wait_for(never, stopped));
  children.start(fail("first"));
  try {
    co_await children.join();
  } catch (const std::runtime_error& failure) {
    co_return failure.what();
  }
  co_return "nothing";
}

TEST(Scope, TheFirstFailureStopsTheOthersAndIsThrown) {
  std::atomic<int> stopped = 0;
  EXPECT_EQ(sync_wait(fail_beside_waiters(stopped)), "first");
  EXPECT_EQ(stopped, 3);
  runtime runtime({.threads = 2});
  EXPECT_EQ(sync_wait(runtime, fail_beside_waiters(stopped)), "first");
  EXPECT_EQ(stopped, 6);
}

static task<> join_waiters(std::atomic<int>& stopped) {
  event never;
  scope children(co_await this_context());
  children.start(wait_for(never, stopped));
  co_await children.join();
}

TEST(Scope, AStopOfTheParentReachesTheChildren) {
  std::atomic<int> stopped = 0;
  for (int i = 0; i < 200; ++i) {
    std::stop_source source;
    std::jthread stopper([&source] { source.request_stop(); });
    auto work = testing_support::in(testing_support::stopped_by(source), join_waiters(stopped));
    EXPECT_EQ(code_of([&] { sync_wait(std::move(work)); }), errc::stopped);
  }
  EXPECT_EQ(stopped, 200);
}

TEST(Scope, CanBeStopped) {
  std::atomic<int> stopped = 0;
  event never;
  scope children;
  children.start(wait_for(never, stopped));
  EXPECT_FALSE(children.stop_token().stop_requested());
  children.stop();
  EXPECT_EQ(stopped, 1);
  EXPECT_EQ(code_of([&] { sync_wait(join(children)); }), errc::stopped);
}

// A child that wakes another when it is stopped, which then is the last: both end, and with them
// the scope, inside of the request to stop.
static task<> pass_on(event& never, event& next) {
  try {
    co_await never;
  } catch (const error&) {
    next.set();
  }
}

static task<> hold_until(event& last, event& never) {
  scope children(co_await this_context());
  children.start([](event& ready) -> task<> { co_await ready; }(last));
  children.start(pass_on(never, last));
  co_await children.join();
}

TEST(Scope, MayEndInsideOfTheStop) {
  event last, never;
  std::stop_source source;
  scope outer(testing_support::stopped_by(source));
  outer.start(hold_until(last, never));
  source.request_stop();
  sync_wait(join(outer));
}

TEST(Scope, ItsDestructorStopsAndWaits) {
  std::atomic<int> stopped = 0;
  event never;
  {
    scope children;
    for (int i = 0; i < 3; ++i) children.start(wait_for(never, stopped));
  }
  EXPECT_EQ(stopped, 3);
}

static task<> wake_and_wait(event& woken, event& never, std::atomic<int>& stopped) {
  woken.set();
  co_await wait_for(never, stopped);
}

// Woken by its child, it throws at once.
static task<> leave_when_woken(event& never, std::atomic<int>& stopped) {
  event woken;
  scope children(co_await this_context());
  children.start(wake_and_wait(woken, never, stopped));
  co_await woken;
  throw std::runtime_error("why");
}

TEST(Scope, MayBeDestroyedByAParentThatItsChildHasWoken) {
  runtime runtime({.threads = 1});
  event never;
  std::atomic<int> stopped = 0;
  EXPECT_THROW(sync_wait(runtime, leave_when_woken(never, stopped)), std::runtime_error);
  EXPECT_EQ(stopped, 1);
}

static task<> sleep_long(std::atomic<int>& ended, detail::executor* where) {
  if (where) co_await continue_on(*where);
  try {
    co_await sleep(10min);
  } catch (const error&) {
    ++ended;
    throw;
  }
}

// An exception passes a scope with live children, on the only thread that could run them.
static task<> leave_by_exception(std::atomic<int>& ended, detail::executor* children_at) {
  scope children(co_await this_context());
  for (int i = 0; i < 5; ++i) children.start(sleep_long(ended, children_at));
  co_await sleep(1ms);
  throw std::runtime_error("why");
}

TEST(Scope, MayBeDestroyedOnTheOnlyThreadOfItsPool) {
  runtime runtime({.threads = 1});
  std::atomic<int> ended = 0;
  EXPECT_THROW(sync_wait(runtime, leave_by_exception(ended, nullptr)), std::runtime_error);
  EXPECT_EQ(ended, 5);
}

static task<> leave_on(detail::executor& where, std::atomic<int>& ended,
                       detail::executor* children_at) {
  context execution = co_await this_context();
  execution.home = &where;
  co_await continue_on(where);
  co_await with_context(execution, leave_by_exception(ended, children_at));
}

TEST(Scope, MayBeDestroyedOnTheReactor) {
  for (auto kind : {reactor_kind::automatic, reactor_kind::fallback}) {
    runtime runtime({.threads = 1, .reactor = kind});
    std::atomic<int> ended = 0;
    auto work = leave_on(runtime.reactor(), ended, nullptr);
    EXPECT_THROW(sync_wait(runtime, std::move(work)), std::runtime_error);
    EXPECT_EQ(ended, 5);
  }
}

// The children belong to the pool, but only the reactor, which waits for them, can end them.
static task<> leave_on_reactor_with_children_of(runtime& where, std::atomic<int>& ended) {
  co_await continue_on(where.reactor());
  scope children(context{.runtime = &where, .home = &where.pool()});
  children.start(sleep_long(ended, nullptr));
}

TEST(Scope, MayBeDestroyedOnAnotherExecutorThanItsChildrens) {
  runtime runtime({.threads = 1});
  std::atomic<int> ended = 0;
  sync_wait(runtime, leave_on_reactor_with_children_of(runtime, ended));
  EXPECT_EQ(ended, 1);
}

static task<> record_thread(std::mutex& mutex, std::set<std::thread::id>& threads,
                            std::atomic<int>& arrived) {
  {
    std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  }
  ++arrived;
  while (arrived < 2) std::this_thread::yield();
  co_return;
}

static task<> run_in_parallel(std::mutex& mutex, std::set<std::thread::id>& threads) {
  std::atomic<int> arrived = 0;
  scope children(co_await this_context());
  for (int i = 0; i < 2; ++i) children.start(record_thread(mutex, threads, arrived));
  co_await children.join();
}

TEST(Scope, ChildrenOnThePoolRunInParallel) {
  runtime runtime({.threads = 2});
  std::mutex mutex;
  std::set<std::thread::id> threads;
  sync_wait(runtime, run_in_parallel(mutex, threads));
  EXPECT_EQ(threads.size(), 2u);
}

TEST(Scope, AnyThreadMayStartChildren) {
  std::atomic<int> sum = 0;
  thread_pool pool({.threads = 2});
  scope children(testing_support::at(pool));
  testing_support::race(
      2000, [&](int) { children.start(add_one(sum)); }, [&](int) { children.start(add_one(sum)); });
  sync_wait(join(children));
  EXPECT_EQ(sum, 4000);
}

TEST(Scope, TheLastEndMayRaceWithTheJoin) {
  thread_pool pool({.threads = 1});
  std::atomic<int> sum = 0;
  for (int i = 0; i < 5000; ++i) {
    scope children(testing_support::at(pool));
    children.start(add_one(sum));
    if (i % 2 == 0) sync_wait(join(children));
  }
  EXPECT_EQ(sum, 5000);
}

static task<> wait_until_ended(scope& children) { co_await children.ended(); }

static task<> fail_after(event& signal) {
  co_await signal;
  throw std::runtime_error("a child");
}

TEST(Scope, ItsEndMayBeAwaitedBeforeItsFailureIsTaken) {
  runtime runtime({.threads = 2});
  for (int i = 0; i < 100; ++i) {
    event signal;
    scope children(context{.runtime = &runtime, .home = &runtime.pool()});
    children.start(fail_after(signal));
    std::jthread signaller([&] { signal.set(); });
    sync_wait(runtime, wait_until_ended(children));
    EXPECT_THROW(sync_wait(runtime, join(children)), std::runtime_error);
  }
}

TEST(Scope, AStopEndsTheWaitForItsEndAndNotItsChildren) {
  runtime runtime({.threads = 2});
  std::atomic<int> stopped = 0;
  event never;
  scope children;
  children.start(wait_for(never, stopped));
  std::stop_source source;
  std::jthread stopper([&source] { source.request_stop(); });
  auto wait = [&] { sync_wait(runtime, wait_until_ended(children), source.get_token()); };
  EXPECT_EQ(code_of(wait), errc::stopped);
  EXPECT_EQ(stopped, 0);
}

}  // namespace lade::scope_test
