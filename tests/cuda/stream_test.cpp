#include <lade/cuda/error.hpp>
#include <lade/cuda/event.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "../support/coroutines.hpp"
#include "fake_driver.hpp"

namespace lade::cuda {

using testing::IsEmpty;
using testing_support::code_of;

static std::error_code cuda_code(cudaError_t value) { return {value, category()}; }

static task<> wait_for_event(event awaited) { co_await awaited; }
static task<> wait_uninterrupted(event awaited) { co_await awaited.uninterruptible(); }
static task<> wait_for_stream(stream awaited) { co_await awaited; }

// Blocks until the driver has been called so often.
static void until_called(const fake_driver& driver, const std::string& function,
                         std::size_t calls) {
  while (driver.calls(function) < calls) std::this_thread::yield();
}

TEST(CudaStream, IsAwaited) {
  fake_driver driver;
  {
    runtime runtime({.threads = 2});
    stream work(device(0));
    EXPECT_TRUE(work.is_idle());
    for (int i = 0; i < 100; ++i) {
      work.record();
      sync_wait(runtime, wait_for_stream(work));
    }
  }
  EXPECT_THAT(driver.faults(), IsEmpty());
  EXPECT_EQ(driver.live().streams, 0u);
  EXPECT_EQ(driver.live().events, 0u);
}

TEST(CudaStream, WaitsForAnEventOfAnother) {
  fake_driver driver({.works_by_itself = false});
  stream first(device(0)), second(device(0));
  driver.hold();
  auto behind_first = first.record();
  second.wait(behind_first);
  auto behind_second = second.record();
  driver.release();
  EXPECT_FALSE(behind_second.is_complete());
  driver.run();
  EXPECT_TRUE(behind_first.is_complete());
  EXPECT_TRUE(behind_second.is_complete());
  EXPECT_TRUE(second.is_idle());
}

TEST(CudaStream, OfOthersIsNotDestroyed) {
  fake_driver driver;
  stream own(device(0));
  {
    auto external = stream::external(own.handle(), device(0));
    external.record();
  }
  stream::legacy_default(device(0)).record();
  stream::per_thread_default(device(0)).record();
  EXPECT_EQ(driver.live().streams, 1u);
  own.synchronize();
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(CudaStream, IsMadeOnItsDevice) {
  fake_driver driver({.devices = 2});
  stream second(device(1), {.priority = -1});
  EXPECT_EQ(second.on(), device(1));
  EXPECT_EQ(device::current(), device(0));
}

TEST(CudaEvent, ThatWasNeverRecordedHasBeenPassed) {
  fake_driver driver;
  runtime runtime({.threads = 1});
  event fresh(device(0));
  EXPECT_TRUE(fresh.is_complete());
  sync_wait(runtime, wait_for_event(fresh));
  EXPECT_EQ(driver.calls("launch_host_func"), 0u);
}

TEST(CudaEvent, MeasuresTime) {
  fake_driver driver;
  stream work(device(0));
  event first(device(0), {.timing = true}), last(device(0), {.timing = true});
  first.record(work);
  last.record(work);
  last.synchronize();
  EXPECT_EQ(last.since(first).count(), 1);
  EXPECT_EQ(code_of([&] { (void)last.since(event(device(0))); }),
            cuda_code(cudaErrorInvalidResourceHandle));
}

TEST(CudaEvent, NeedsARuntimeToBeAwaited) {
  fake_driver driver;
  event fresh(device(0));
  EXPECT_EQ(code_of([&] { sync_wait(wait_for_event(fresh)); }), errc::no_runtime);
}

TEST(CudaEvent, MustNotBlockAThreadOfARuntime) {
  fake_driver driver;
  runtime runtime({.threads = 1});
  auto wait = []() -> task<> {
    event(device(0)).synchronize();
    co_return;
  };
  EXPECT_EQ(code_of([&] { sync_wait(runtime, wait()); }), errc::wrong_thread);
}

static task<> wait_for_all(std::vector<event> awaited, std::atomic<int>& woken) {
  scope children(co_await this_context());
  auto wait = [](event each, std::atomic<int>& count) -> task<> {
    co_await each;
    ++count;
  };
  for (auto& each : awaited) children.start(wait(each, woken));
  co_await children.join();
}

TEST(CudaEvent, ManyAreAwaitedAtOnceInAnyOrder) {
  fake_driver driver;
  {
    runtime runtime({.threads = 2});
    for (int round = 0; round < 20; ++round) {
      driver.hold();
      std::vector<event> events;
      for (int i = 0; i < 50; ++i) events.push_back(stream(device(0)).record());
      std::atomic<int> woken = 0;
      auto before = driver.calls("launch_host_func");
      std::thread releasing([&] {
        until_called(driver, "launch_host_func", before + 50);
        driver.release();
      });
      sync_wait(runtime, wait_for_all(events, woken));
      releasing.join();
      EXPECT_EQ(woken, 50);
    }
    EXPECT_LE(driver.live().streams, 50u + 50u);  // side streams are used again
  }
  EXPECT_THAT(driver.faults(), IsEmpty());
  EXPECT_EQ(driver.live().events, 0u);
}

// One that is held up must not hold up another that is awaited after it.
TEST(CudaEvent, DoesNotWaitForOthersThatAreAwaited) {
  fake_driver driver;
  runtime runtime({.threads = 1});
  stream slow(device(0)), fast(device(0));
  auto unblock = driver.block(slow.handle());
  driver.hold();
  auto late = slow.record();
  auto early = fast.record();
  std::stop_source stop;
  std::thread waiting([&] {
    auto wait = [&] { sync_wait(runtime, wait_for_event(late), stop.get_token()); };
    EXPECT_EQ(code_of(wait), errc::stopped);
  });
  until_called(driver, "launch_host_func", 1);
  std::thread other([&] { sync_wait(runtime, wait_for_event(early)); });
  until_called(driver, "launch_host_func", 2);
  driver.release();
  other.join();
  EXPECT_FALSE(late.is_complete());
  stop.request_stop();
  waiting.join();
  unblock();
}

TEST(CudaEvent, AStopEndsTheWaitAndTheCallbackMayComeLater) {
  fake_driver driver({.works_by_itself = false});
  {
    runtime runtime({.threads = 1});
    driver.hold();
    auto held = stream(device(0)).record();
    std::stop_source stop;
    std::thread stopping([&] {
      until_called(driver, "launch_host_func", 1);
      stop.request_stop();
    });
    EXPECT_EQ(code_of([&] { sync_wait(runtime, wait_for_event(held), stop.get_token()); }),
              errc::stopped);
    stopping.join();
  }
  driver.release();
  driver.run();  // the runtime has ended
  EXPECT_THAT(driver.faults(), IsEmpty());
  EXPECT_EQ(driver.live().events, 0u);
  EXPECT_EQ(driver.live().streams, 0u);
}

TEST(CudaEvent, AStopDoesNotEndAnUninterruptibleWait) {
  fake_driver driver({.works_by_itself = false});
  runtime runtime({.threads = 1});
  driver.hold();
  auto held = stream(device(0)).record();
  std::stop_source stop;
  std::atomic<bool> released = false;
  std::thread stopping([&] {
    until_called(driver, "launch_host_func", 1);
    stop.request_stop();
    released = true;
    driver.release();
    driver.run();
  });
  sync_wait(runtime, wait_uninterrupted(held), stop.get_token());
  EXPECT_TRUE(released);
  stopping.join();
}

TEST(CudaEvent, OfADeviceThatFailsThrowsThoughNobodyIsCalledBack) {
  fake_driver driver({.works_by_itself = false});
  runtime runtime({.threads = 1});
  driver.hold();
  stream work(device(0));
  auto held = work.record();
  std::thread breaking([&] {
    until_called(driver, "launch_host_func", 1);
    driver.break_device(cudaErrorIllegalAddress);
  });
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(code_of([&] { sync_wait(runtime, wait_uninterrupted(held)); }),
              cuda_code(cudaErrorIllegalAddress));
  breaking.join();
  EXPECT_EQ(code_of([&] { work.synchronize(); }), cuda_code(cudaErrorIllegalAddress));
}

TEST(CudaEvent, AFailureOfAnyCallThrowsAndLosesNothing) {
  for (auto* function : {"stream_create", "stream_wait_event", "launch_host_func", "event_query"}) {
    SCOPED_TRACE(function);
    fake_driver driver;
    {
      runtime runtime({.threads = 1});
      driver.hold();
      stream work(device(0));
      auto awaited = work.record();
      driver.fail_next(function, cudaErrorUnknown);
      EXPECT_EQ(code_of([&] { sync_wait(runtime, wait_for_event(awaited)); }),
                cuda_code(cudaErrorUnknown));
      driver.release();
      sync_wait(runtime, wait_for_event(awaited));
      sync_wait(runtime, wait_for_stream(work));
    }
    EXPECT_EQ(driver.live().streams, 0u);
    EXPECT_EQ(driver.live().events, 0u);
    EXPECT_THAT(driver.faults(), IsEmpty());
  }
}

TEST(CudaEvent, CannotBeMadeOrRecordedWhereADeviceRefuses) {
  fake_driver driver;
  stream work(device(0));
  driver.fail_next("event_create", cudaErrorMemoryAllocation);
  EXPECT_EQ(code_of([] { event(device(0)); }), cuda_code(cudaErrorMemoryAllocation));
  driver.fail_next("event_record", cudaErrorUnknown);
  EXPECT_EQ(code_of([&] { work.record(); }), cuda_code(cudaErrorUnknown));
  driver.fail_next("stream_wait_event", cudaErrorUnknown);
  EXPECT_EQ(code_of([&] { work.wait(event(device(0))); }), cuda_code(cudaErrorUnknown));
  driver.fail_next("stream_query", cudaErrorUnknown);
  EXPECT_EQ(code_of([&] { (void)work.is_idle(); }), cuda_code(cudaErrorUnknown));
  driver.fail_next("stream_create", cudaErrorUnknown);
  EXPECT_EQ(code_of([] { stream(device(0)); }), cuda_code(cudaErrorUnknown));
  EXPECT_EQ(driver.live().events, 0u);
}

}  // namespace lade::cuda
