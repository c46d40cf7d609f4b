#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>
#include <lade/thread_pool.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <stop_token>
#include <thread>

#include "../support/coroutines.hpp"

namespace lade::sync_wait_test {

using testing_support::code_of;
using testing_support::other_threads;

static task<std::thread::id> where_it_runs() { co_return std::this_thread::get_id(); }

TEST(SyncWait, RunsTheTaskOnThisThread) {
  EXPECT_EQ(sync_wait(where_it_runs()), std::this_thread::get_id());
}

static task<std::unique_ptr<int>> come_from_other_thread(other_threads& threads) {
  co_await threads.next();
  co_return std::make_unique<int>(5);
}

TEST(SyncWait, WaitsForAnotherThread) {
  other_threads threads;
  for (int i = 0; i < 200; ++i) EXPECT_EQ(*sync_wait(come_from_other_thread(threads)), 5);
}

static task<> fail_on_other_thread(other_threads& threads) {
  co_await threads.next();
  throw std::runtime_error("why");
}

TEST(SyncWait, ThrowsWhatTheTaskThrows) {
  other_threads threads;
  EXPECT_THROW(sync_wait(fail_on_other_thread(threads)), std::runtime_error);
}

static task<> do_nothing() { co_return; }

static std::error_code code_of_nested_wait() {
  return code_of([] { sync_wait(do_nothing()); });
}

static task<std::error_code> code_of_wait_on(detail::executor& where) {
  co_await continue_on(where);
  co_return code_of_nested_wait();
}

TEST(SyncWait, IsRefusedOnAThreadOfTheRuntime) {
  runtime runtime({.threads = 1});
  EXPECT_EQ(sync_wait(code_of_wait_on(runtime.pool())), errc::wrong_thread);
  EXPECT_EQ(sync_wait(code_of_wait_on(runtime.reactor())), errc::wrong_thread);
  auto nested = [](lade::runtime& where) -> task<std::error_code> {
    co_return code_of([&where] { sync_wait(where, do_nothing()); });
  };
  EXPECT_EQ(sync_wait(runtime, nested(runtime)), errc::wrong_thread);
}

static task<context> context_here() { co_return co_await this_context(); }

TEST(SyncWait, RunsTheTaskInTheContextOfTheRuntime) {
  runtime runtime({.threads = 1});
  std::stop_source source;
  auto execution = sync_wait(runtime, context_here(), source.get_token());
  EXPECT_EQ(execution.runtime, &runtime);
  EXPECT_EQ(execution.home, &runtime.pool());
  EXPECT_EQ(execution.stop, source.get_token());
  EXPECT_NE(sync_wait(runtime, where_it_runs()), std::this_thread::get_id());
}

TEST(SyncWait, WithoutARuntimeTheContextIsEmpty) {
  auto execution = sync_wait(context_here());
  EXPECT_EQ(execution.runtime, nullptr);
  EXPECT_EQ(execution.home, nullptr);
  EXPECT_FALSE(execution.stop.stop_possible());
}

TEST(SyncWait, SeveralThreadsMayWaitAtATime) {
  runtime runtime({.threads = 2});
  testing_support::race(
      1000, [&](int) { sync_wait(runtime, do_nothing()); },
      [&](int) { sync_wait(runtime, do_nothing()); });
}

}  // namespace lade::sync_wait_test
