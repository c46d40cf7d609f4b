#include <lade/error.hpp>
#include <lade/promise.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sync_wait.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../support/coroutines.hpp"

namespace lade::promise_test {

using testing_support::code_of;
using testing_support::counted;
using testing_support::in;
using testing_support::stopped_by;

template <class T>
static task<T> wait_for(future<T> awaited) {
  co_return co_await std::move(awaited);
}

template <class T>
static task<T> wait_uninterrupted(future<T> awaited) {
  co_return co_await std::move(awaited).uninterruptible();
}

static task<> join(scope& children) { co_await children.join(); }

TEST(Promise, DeliversAValueThatIsSetBefore) {
  promise<std::string> unset;
  auto text = unset.get_future();
  unset.set_value("early");
  EXPECT_EQ(sync_wait(wait_for(std::move(text))), "early");
}

TEST(Promise, DeliversVoid) {
  promise<> unset;
  auto happened = unset.get_future();
  unset.set_value();
  sync_wait(wait_for(std::move(happened)));
}

TEST(Promise, DeliversAnExceptionThatIsSet) {
  promise<int> unset;
  auto value = unset.get_future();
  unset.set_exception(std::make_exception_ptr(std::out_of_range("beyond")));
  EXPECT_THROW(sync_wait(wait_for(std::move(value))), std::out_of_range);
}

TEST(Promise, DeliversFromAForeignThreadToTheThreadsOfTheRuntime) {
  runtime where({.threads = 2});
  auto work = [](runtime& home) -> task<int> {
    promise<int> unset;
    auto value = unset.get_future();
    std::thread foreign([to = std::move(unset)]() mutable { to.set_value(7); });
    auto got = co_await std::move(value);
    EXPECT_TRUE(home.pool().is_current());
    foreign.join();
    co_return got;
  };
  EXPECT_EQ(sync_wait(where, work(where)), 7);
}

TEST(Promise, TheRuntimeMayEndWhileTheForeignThreadIsStillInTheCall) {
  for (int round = 0; round < 200; ++round) {
    promise<int> unset;
    auto value = unset.get_future();
    std::thread foreign([to = std::move(unset)]() mutable { to.set_value(7); });
    {
      runtime where({.threads = 1});
      EXPECT_EQ(sync_wait(where, wait_for(std::move(value))), 7);
    }
    foreign.join();
  }
}

TEST(Promise, ThatIsDestroyedWithoutAResultIsAnError) {
  auto unset = std::make_unique<promise<int>>();
  auto value = unset->get_future();
  unset.reset();
  EXPECT_EQ(code_of([&] { sync_wait(wait_for(std::move(value))); }), errc::abandoned);
}

TEST(Promise, AbandonsItsFutureWhenItIsAssignedTo) {
  promise<int> first;
  auto value = first.get_future();
  promise<int> second;
  first = std::move(second);
  EXPECT_EQ(code_of([&] { sync_wait(wait_for(std::move(value))); }), errc::abandoned);
}

TEST(Promise, TakesOneResultAndHasOneFuture) {
  promise<int> unset;
  (void)unset.get_future();
  EXPECT_EQ(code_of([&] { (void)unset.get_future(); }), errc::closed);
  unset.set_value(1);
  EXPECT_EQ(code_of([&] { unset.set_value(2); }), errc::closed);
  EXPECT_EQ(code_of([&] { unset.set_exception({}); }), errc::closed);
  EXPECT_EQ(code_of([&] { (void)unset.get_future(); }), errc::closed);
}

static task<int> await_future(future<int>& awaited) { co_return co_await std::move(awaited); }
static task<int> await_uninterrupted(future<int>& awaited) {
  co_return co_await std::move(awaited).uninterruptible();
}

TEST(Promise, WhoseFutureIsAwaitedASecondTimeThrows) {
  promise<int> set;
  auto answer = set.get_future();
  set.set_value(7);
  EXPECT_EQ(sync_wait(await_future(answer)), 7);
  EXPECT_EQ(code_of([&] { sync_wait(await_future(answer)); }), errc::closed);
  EXPECT_EQ(code_of([&] { sync_wait(await_uninterrupted(answer)); }), errc::closed);
}

class unmovable_once {
 public:
  explicit unmovable_once(int value) : value_(value) {}
  unmovable_once(unmovable_once&& other) : value_(other.value_) {
    if (value_ < 0) throw std::runtime_error("does not move");
  }
  int value() const noexcept { return value_; }

 private:
  int value_;
};

TEST(Promise, AcceptsAnotherValueAfterAMoveThatThrows) {
  promise<unmovable_once> unset;
  auto value = unset.get_future();
  EXPECT_THROW(unset.set_value(unmovable_once(-1)), std::runtime_error);
  unset.set_value(unmovable_once(3));
  EXPECT_EQ(sync_wait(wait_for(std::move(value))).value(), 3);
}

TEST(Promise, AStopEndsTheWaitAndALaterResultIsDropped) {
  counted::check check;
  promise<counted> unset;
  std::stop_source source;
  scope children;
  auto wait = [](future<counted> awaited) -> task<> { (void)co_await std::move(awaited); };
  children.start(in(stopped_by(source), wait(unset.get_future())));
  source.request_stop();
  EXPECT_EQ(code_of([&] { sync_wait(join(children)); }), errc::stopped);
  unset.set_value(counted(1));
}

TEST(Promise, AStopDoesNotEndAnUninterruptibleWait) {
  promise<int> unset;
  std::stop_source source;
  scope children;
  int got = 0;
  auto wait = [](future<int> awaited, int& value) -> task<> {
    value = co_await std::move(awaited).uninterruptible();
  };
  children.start(in(stopped_by(source), wait(unset.get_future(), got)));
  source.request_stop();
  EXPECT_EQ(got, 0);
  unset.set_value(9);
  sync_wait(join(children));
  EXPECT_EQ(got, 9);
}

TEST(Promise, ThatNobodyAwaitsDropsItsResult) {
  counted::check check;
  promise<counted> unset;
  { auto dropped = unset.get_future(); }
  unset.set_value(counted(1));
}

// As a library of C calls back.
static void call_back(void* argument) {
  std::unique_ptr<promise<>> done(static_cast<promise<>*>(argument));
  done->set_value();
}

TEST(Promise, IsSetByACallbackOfC) {
  runtime where({.threads = 1});
  std::vector<std::thread> foreign;
  auto work = [](std::vector<std::thread>& threads) -> task<> {
    for (int i = 0; i < 100; ++i) {
      promise<> unset;
      auto happened = unset.get_future();
      threads.emplace_back(call_back, new promise<>(std::move(unset)));
      co_await std::move(happened).uninterruptible();
    }
  };
  sync_wait(where, work(foreign));
  for (auto& each : foreign) each.join();
}

}  // namespace lade::promise_test
