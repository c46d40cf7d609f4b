#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/promise.hpp>
#include <lade/runtime.hpp>
#include <lade/sleep.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>
#include <lade/with_stop.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>

#include "../support/coroutines.hpp"

namespace lade::with_stop_test {

using namespace std::chrono_literals;
using testing_support::code_of;
using testing_support::in;
using testing_support::stopped_by;

static task<> wait_for(event& awaited) { co_await awaited; }

TEST(WithStop, ReturnsWhatTheWorkDoes) {
  auto number = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(7); };
  auto fail = []() -> task<> {
    throw std::runtime_error("work");
    co_return;
  };
  EXPECT_EQ(*sync_wait(with_stop({}, number())), 7);
  EXPECT_THROW(sync_wait(with_stop({}, fail())), std::runtime_error);
}

TEST(WithStop, EitherStopEndsTheWork) {
  runtime runtime({.threads = 1});
  for (bool inner : {false, true}) {
    std::stop_source stops[2];
    event never;
    std::jthread stopper([&] { stops[inner].request_stop(); });
    EXPECT_EQ(code_of([&] {
                sync_wait(runtime, with_stop(stops[1].get_token(), wait_for(never)),
                          stops[0].get_token());
              }),
              errc::stopped);
  }
}

TEST(WithStop, AnEarlierStopEndsTheWorkAtItsFirstWait) {
  for (bool inner : {false, true}) {
    std::stop_source stops[2];
    stops[inner].request_stop();
    event never;
    auto work = with_stop(stops[1].get_token(), wait_for(never));
    EXPECT_EQ(code_of([&] { sync_wait(in(stopped_by(stops[0]), std::move(work))); }),
              errc::stopped);
  }
}

static task<bool> is_stopped() {
  auto execution = co_await this_context();
  co_return execution.stop.stop_requested();
}

static task<std::pair<bool, bool>> inside_and_behind(std::stop_source stop) {
  stop.request_stop();
  bool inside = co_await with_stop(stop.get_token(), is_stopped());
  bool behind = co_await is_stopped();
  co_return std::pair(inside, behind);
}

TEST(WithStop, DoesNotReachTheCoroutineAroundIt) {
  EXPECT_EQ(sync_wait(inside_and_behind({})), std::pair(true, false));
}

static task<> end_late(future<void> released, std::atomic<bool>& ended) {
  event never;
  try {
    co_await never;
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::stopped);
  }
  co_await std::move(released).uninterruptible();
  ended = true;
}

TEST(WithStop, ReturnsWhenTheWorkHasEnded) {
  runtime runtime({.threads = 1});
  std::stop_source stop;
  promise<> release;
  std::atomic<bool> ended = false;
  auto work = with_stop(stop.get_token(), end_late(release.get_future(), ended));
  std::jthread stopper([&] {
    stop.request_stop();
    release.set_value();
  });
  sync_wait(runtime, std::move(work));
  EXPECT_TRUE(ended);
}

TEST(WithStop, WithinATimeoutTheFirstOfBothEndsTheWork) {
  runtime runtime({.threads = 1});
  event never;
  EXPECT_EQ(code_of([&] { sync_wait(runtime, with_timeout(1ms, with_stop({}, wait_for(never)))); }),
            errc::timed_out);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(code_of([&] {
              sync_wait(runtime, with_timeout(10h, with_stop(stop.get_token(), wait_for(never))));
            }),
            errc::stopped);
}

}  // namespace lade::with_stop_test
