#include <lade/background.hpp>
#include <lade/batch.hpp>
#include <lade/cache.hpp>
#include <lade/cut.hpp>
#include <lade/event.hpp>
#include <lade/failure.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/shuffle.hpp>
#include <lade/sleep.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lade::background_test {

using namespace std::chrono_literals;
using test::collect;
using test::numbers;
using test::up_to;
using testing::HasSubstr;
using testing::ThrowsMessage;

// What the work of a test has done.
struct work_log {
  std::atomic<int> started = 0;
  std::atomic<int> stopped = 0;
  event working;
  event may_fail;
};
using shared_log = std::shared_ptr<work_log>;

static task<> work_for_ever(shared_log log) {
  ++log->started;
  log->working.set();
  try {
    co_await sleep(std::chrono::nanoseconds::max());
  } catch (const error&) {
    ++log->stopped;
    throw;
  }
}

static task<> return_at_once(shared_log log) {
  ++log->started;
  co_return;
}

static task<> fail_when_told(shared_log log) {
  co_await log->may_fail;
  throw std::runtime_error("the token has expired");
}

static task<> fail_when_stopped(shared_log log) {
  log->working.set();
  try {
    co_await sleep(std::chrono::nanoseconds::max());
  } catch (const error&) {
    throw std::runtime_error("cannot write what is left");
  }
}

static task<> wait_until_working(shared_log log) { co_await log->working; }

static task<int> pass_when_working(shared_log log, int item) {
  co_await log->working;
  co_return item;
}

TEST(Background, WorksBesideTheItemsUntilTheRunIsOver) {
  auto log = std::make_shared<work_log>();
  runtime runtime({.threads = 2});
  auto waits = [log](int item) { return pass_when_working(log, item); };
  auto all = from(up_to(100)) | background(work_for_ever, {}, log) | map(waits, {.concurrency = 4});
  EXPECT_EQ(collect(runtime, all), up_to(100));
  EXPECT_EQ(log->started, 1);
  EXPECT_EQ(log->stopped, 1);
  EXPECT_EQ(collect(runtime, all), up_to(100));
  EXPECT_EQ(log->started, 2);
}

TEST(Background, EndsWithARunThatIsLeftStoppedOrFails) {
  auto log = std::make_shared<work_log>();
  runtime runtime({.threads = 2});
  auto endless = from(numbers{-1}) | background(work_for_ever, {}, log);
  {
    auto run = runtime.run(endless);
    EXPECT_EQ(run.wait_next(), 0);
    sync_wait(wait_until_working(log));
  }
  EXPECT_EQ(log->stopped, 1);
  {
    auto run = runtime.run(endless);
    run.stop();
    EXPECT_THROW(while (run.wait_next()){}, error);
  }
  EXPECT_EQ(log->stopped, log->started);
  auto fails = endless | map([](int item) -> int {
                 if (item == 3) throw std::runtime_error("bad");
                 return item;
               });
  EXPECT_THROW(collect(runtime, fails), stage_error);
  EXPECT_EQ(log->stopped, log->started);
}

TEST(Background, MayReturnBeforeTheRunEnds) {
  auto log = std::make_shared<work_log>();
  runtime runtime({.threads = 2});
  EXPECT_EQ(collect(runtime, from(up_to(10)) | background(return_at_once, {}, log)), up_to(10));
  EXPECT_EQ(log->started, 1);
}

TEST(Background, AFailureEndsTheRunAndIsNamed) {
  auto log = std::make_shared<work_log>();
  runtime runtime({.threads = 2});
  auto endless = from(numbers{-1}) | background(fail_when_told, {.name = "refresh"}, log);
  auto take_all = [&] {
    auto run = runtime.run(endless);
    run.wait_next();
    log->may_fail.set();
    while (run.wait_next()) {}
  };
  EXPECT_THAT(take_all, ThrowsMessage<stage_error>(HasSubstr("refresh: the token has expired")));
}

TEST(Background, AFailureOfTheCallThatMakesTheTaskIsNamedToo) {
  runtime runtime({.threads = 2});
  auto refuse = []() -> task<> { throw std::runtime_error("no credentials"); };
  auto items = from(up_to(3)) | background(refuse, {.name = "renew"});
  EXPECT_THAT([&] { collect(runtime, items); },
              ThrowsMessage<stage_error>(HasSubstr("renew: no credentials")));
}

static task<> stop_by_itself(shared_log log) {
  co_await log->may_fail;
  throw error(errc::stopped, "refresh a token");
}

TEST(Background, AStopThatNobodyAskedForIsAFailure) {
  auto log = std::make_shared<work_log>();
  runtime runtime({.threads = 2});
  auto endless = from(numbers{-1}) | background(stop_by_itself, {.name = "refresh"}, log);
  auto take_all = [&] {
    auto run = runtime.run(endless);
    run.wait_next();
    log->may_fail.set();
    while (run.wait_next()) {}
  };
  EXPECT_THAT(take_all, ThrowsMessage<stage_error>(HasSubstr("refresh: refresh a token")));
}

TEST(Background, AFailureAfterTheLastItemIsNotLost) {
  auto log = std::make_shared<work_log>();
  runtime runtime({.threads = 2});
  auto all = from(up_to(3)) | background(fail_when_stopped, {.name = "write"}, log);
  auto waits = [log](int item) { return pass_when_working(log, item); };
  EXPECT_THAT([&] { collect(runtime, all | map(waits)); },
              ThrowsMessage<stage_error>(HasSubstr("write: cannot write what is left")));
}

TEST(Background, StartsOnceInARunWhoseStepsAreOpenedSeveralTimes) {
  auto log = std::make_shared<work_log>();
  runtime runtime({.threads = 2});
  auto once = from(up_to(20)) | background(return_at_once, {}, log);
  EXPECT_EQ(collect(runtime, once | repeat(3)).size(), 60u);
  EXPECT_EQ(log->started, 1);
}

TEST(Background, UpstreamOfAFullCacheDoesNotStart) {
  auto log = std::make_shared<work_log>();
  runtime runtime({.threads = 2});
  auto kept = from(up_to(20)) | background(return_at_once, {}, log) | cache();
  EXPECT_EQ(collect(runtime, kept), up_to(20));
  EXPECT_EQ(collect(runtime, kept), up_to(20));
  EXPECT_EQ(log->started, 1);
}

TEST(Background, LeavesAListReachedByIndexAndItsStateExact) {
  auto log = std::make_shared<work_log>();
  runtime runtime({.threads = 2});
  auto plain = from(up_to(100)) | shuffle({.seed = 5});
  auto beside = from(up_to(100)) | background(work_for_ever, {}, log) | shuffle({.seed = 5});
  EXPECT_EQ(collect(runtime, beside), collect(runtime, plain));
  std::vector<int> items;
  state at;
  {
    auto run = runtime.run(beside);
    for (int i = 0; i < 40; ++i) items.push_back(*run.wait_next());
    at = run.state();
  }
  for (auto item : collect(runtime, beside, {.state = at})) items.push_back(item);
  EXPECT_EQ(items, collect(runtime, plain));
}

static task<int> start_once(shared_log log, int item) {
  auto where = co_await this_context();
  start_background(where, log.get(), "helper", [log] { return work_for_ever(log); });
  co_return item;
}

TEST(StartBackground, StartsWorkOfAKeyOnceInARun) {
  auto log = std::make_shared<work_log>();
  runtime runtime({.threads = 2});
  auto all = from(up_to(200)) |
             map([log](int item) { return start_once(log, item); }, {.concurrency = 16});
  EXPECT_EQ(collect(runtime, all), up_to(200));
  EXPECT_EQ(log->started, 1);
  EXPECT_EQ(log->stopped, 1);
  collect(runtime, all);
  EXPECT_EQ(log->started, 2);
}

TEST(StartBackground, DoesNothingOutsideOfARun) {
  auto log = std::make_shared<work_log>();
  EXPECT_FALSE(start_background({}, log.get(), "helper", [log] { return return_at_once(log); }));
  EXPECT_EQ(log->started, 0);
}

}  // namespace lade::background_test
