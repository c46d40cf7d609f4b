#include <lade/cuda/error.hpp>
#include <lade/cuda/event.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "../../cuda/runtime_api.hpp"
#include "../support/coroutines.hpp"
#include "fake_driver.hpp"
#include "worlds.hpp"

namespace lade::cuda::stream_test {

using testing::IsEmpty;
using testing_support::code_of;

static std::error_code cuda_code(cudaError_t value) { return {value, category()}; }

static task<> wait_for_event(event awaited) { co_await awaited; }
static task<> wait_uninterrupted(event awaited) { co_await awaited.uninterruptible(); }
static task<> wait_for_stream(stream awaited) { co_await awaited; }

class CudaStream : public InBothWorlds {};
class CudaEvent : public InBothWorlds {};
LADE_IN_BOTH_WORLDS(CudaStream);
LADE_IN_BOTH_WORLDS(CudaEvent);

TEST_P(CudaStream, IsAwaited) {
  world there(GetParam());
  {
    runtime runtime({.threads = 2});
    stream work(device(0));
    EXPECT_TRUE(work.is_idle());
    for (int i = 0; i < 100; ++i) {
      auto unblock = there.block(work);
      auto last = work.record();
      EXPECT_FALSE(last.is_complete());
      unblock();
      sync_wait(runtime, wait_for_stream(work));
      EXPECT_TRUE(last.is_complete());
    }
  }
  if (there.fake()) {
    EXPECT_EQ(there.fake()->live().streams, 0u);
    EXPECT_EQ(there.fake()->live().events, 0u);
  }
}

TEST_P(CudaStream, WaitsForAnEventOfAnother) {
  world there(GetParam());
  stream first(device(0)), second(device(0));
  auto unblock = there.block(first);
  auto behind_first = first.record();
  second.wait(behind_first);
  auto behind_second = second.record();
  EXPECT_FALSE(behind_second.is_complete());
  unblock();
  second.synchronize();
  EXPECT_TRUE(behind_first.is_complete());
  EXPECT_TRUE(behind_second.is_complete());
  EXPECT_TRUE(second.is_idle());
}

TEST_P(CudaStream, ABorrowedStreamIsNotDestroyed) {
  world there(GetParam());
  stream own(device(0));
  {
    auto external = stream::external(own.handle(), device(0));
    external.record();
  }
  EXPECT_EQ(stream::external(nullptr, device(0)).handle(), nullptr);
  stream::legacy_default(device(0)).record();
  stream::per_thread_default(device(0)).record();
  own.synchronize();
}

TEST_P(CudaStream, ThatWasMovedFromIsStillTheSame) {
  world there(GetParam());
  stream work(device(0));
  auto* handle = work.handle();
  {
    auto moved = std::move(work);
    EXPECT_EQ(moved.handle(), handle);
  }
  EXPECT_EQ(work.handle(), handle);
  work.record();
  work.synchronize();
}

TEST(CudaStreamOptions, SayOnWhichDeviceItIsMade) {
  fake_driver driver({.devices = 2});
  stream second(device(1), {.priority = -1});
  EXPECT_EQ(second.on(), device(1));
  EXPECT_EQ(driver.priority_of(second.handle()), -1);
  EXPECT_EQ(device::current(), device(0));
  second.record();
  second.synchronize();
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(CudaStreamDefaults, AreThoseOfTheirDevice) {
  fake_driver driver({.devices = 2, .works_by_itself = false});
  auto first = stream::legacy_default(device(0)), second = stream::legacy_default(device(1));
  first.record();
  EXPECT_FALSE(first.is_idle());
  EXPECT_TRUE(second.is_idle());
  first.synchronize();
  EXPECT_TRUE(first.is_idle());
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(CudaStreamFailures, OfASynchronizationThrows) {
  fake_driver driver;
  stream work(device(0));
  auto last = work.record();
  driver.fail_next("stream_synchronize", cudaErrorUnknown);
  EXPECT_EQ(code_of([&] { work.synchronize(); }), cuda_code(cudaErrorUnknown));
  driver.fail_next("event_synchronize", cudaErrorUnknown);
  EXPECT_EQ(code_of([&] { last.synchronize(); }), cuda_code(cudaErrorUnknown));
  driver.fail_next("event_query", cudaErrorUnknown);
  EXPECT_EQ(code_of([&] { (void)last.is_complete(); }), cuda_code(cudaErrorUnknown));
}

TEST(FakeDriver, WaitsForAStreamUntilItIsReleased) {
  fake_driver driver;
  stream work(device(0));
  driver.hold();
  work.record();
  std::thread releasing([&] {
    while (driver.calls("stream_synchronize") < 1) std::this_thread::yield();
    driver.release();
  });
  work.synchronize();
  releasing.join();
  EXPECT_TRUE(work.is_idle());
}

// What misuse is noticed.
static std::string first_fault(const fake_driver& driver) {
  auto faults = driver.faults();
  return faults.empty() ? "" : faults.front();
}

// This thread's mode, which stays as it is.
static cudaStreamCaptureMode mode_of_this_thread() {
  auto mode = cudaStreamCaptureModeGlobal;
  EXPECT_EQ(api().exchange_capture_mode(&mode), cudaSuccess);
  auto found = mode;
  EXPECT_EQ(api().exchange_capture_mode(&mode), cudaSuccess);
  return found;
}

TEST(CudaCapture, OfAnotherThreadIsNotEndedByQueriesAndWaits) {
  fake_driver driver;
  {
    runtime runtime({.threads = 1});
    driver.begin_capture();
    stream work(device(0));
    sync_wait(runtime, wait_for_stream(work));
    auto last = work.record();
    last.synchronize();
    EXPECT_TRUE(last.is_complete());
    work.synchronize();
    EXPECT_TRUE(work.is_idle());
  }
  EXPECT_EQ(mode_of_this_thread(), cudaStreamCaptureModeGlobal);
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(FakeDriver, NoticesCallsThatEndACapture) {
  fake_driver driver;
  stream work(device(0));
  EXPECT_EQ(api().stream_query(work.handle()), cudaSuccess);
  driver.begin_capture();
  EXPECT_EQ(api().stream_query(work.handle()), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(first_fault(driver), "stream_query ended a capture");
  driver.end_capture();
  EXPECT_EQ(api().stream_query(work.handle()), cudaSuccess);
}

TEST(FakeDriver, NoticesMemoryThatIsUsedBeforeAnotherStreamHasAllocatedIt) {
  fake_driver driver;
  stream first(device(0)), second(device(0));
  int value = 0;
  void* memory = nullptr;
  EXPECT_EQ(api().malloc_async(&memory, 4, first.handle()), cudaSuccess);
  second.wait(first.record());
  EXPECT_EQ(api().memcpy_async(memory, &value, 4, cudaMemcpyHostToDevice, second.handle()),
            cudaSuccess);
  EXPECT_EQ(first_fault(driver), "");
  EXPECT_EQ(api().malloc_async(&memory, 4, first.handle()), cudaSuccess);
  EXPECT_EQ(api().memcpy_async(memory, &value, 4, cudaMemcpyHostToDevice, second.handle()),
            cudaSuccess);
  EXPECT_EQ(first_fault(driver),
            "a stream uses memory that another has allocated, without waiting for it");
}

TEST(FakeDriver, NoticesMemoryThatIsFreedUnderAnotherStream) {
  fake_driver driver({.works_by_itself = false});
  stream first(device(0)), second(device(0));
  int value = 0;
  void* memory = nullptr;
  EXPECT_EQ(api().malloc_async(&memory, 4, first.handle()), cudaSuccess);
  first.synchronize();
  EXPECT_EQ(api().memcpy_async(memory, &value, 4, cudaMemcpyHostToDevice, second.handle()),
            cudaSuccess);
  EXPECT_EQ(first_fault(driver), "");
  EXPECT_EQ(api().free_async(memory, first.handle()), cudaSuccess);
  EXPECT_EQ(first_fault(driver),
            "memory is freed on a stream that does not wait for another that uses it");
}

TEST(FakeDriver, NoticesTheWrongKindOfMemory) {
  fake_driver driver;
  stream work(device(0));
  int value = 0;
  void* memory = nullptr;
  EXPECT_EQ(api().malloc_async(&memory, 4, work.handle()), cudaSuccess);
  EXPECT_EQ(api().memcpy_async(&value, memory, 4, cudaMemcpyHostToDevice, work.handle()),
            cudaSuccess);
  EXPECT_EQ(driver.faults().size(), 2u);
}

TEST(FakeDriver, NoticesStreamsAndMemoryOfAnotherDevice) {
  fake_driver driver({.devices = 2});
  stream first(device(0)), second(device(1));
  void* memory = nullptr;
  EXPECT_EQ(api().malloc_async(&memory, 4, first.handle()), cudaSuccess);
  first.synchronize();
  EXPECT_EQ(api().malloc_async(&memory, 4, second.handle()), cudaSuccess);
  EXPECT_EQ(first_fault(driver), "malloc_async on a stream of a device that is not current");
}

TEST_P(CudaEvent, ThatWasNeverRecordedIsComplete) {
  world there(GetParam());
  runtime runtime({.threads = 1});
  event fresh(device(0));
  EXPECT_TRUE(fresh.is_complete());
  sync_wait(runtime, wait_for_event(fresh));
  if (there.fake()) {
    EXPECT_EQ(there.fake()->calls("launch_host_func"), 0u);
  }
}

TEST_P(CudaEvent, MeasuresTime) {
  world there(GetParam());
  stream work(device(0));
  event first(device(0), {.timing = true}), last(device(0), {.timing = true});
  first.record(work);
  last.record(work);
  last.synchronize();
  EXPECT_GE(last.since(first).count(), 0);
  EXPECT_EQ(code_of([&] { (void)last.since(event(device(0))); }),
            cuda_code(cudaErrorInvalidResourceHandle));
}

TEST_P(CudaEvent, NeedsARuntimeToBeAwaited) {
  world there(GetParam());
  event fresh(device(0));
  EXPECT_EQ(code_of([&] { sync_wait(wait_for_event(fresh)); }), errc::no_runtime);
}

TEST_P(CudaEvent, MustNotBlockAThreadOfARuntime) {
  world there(GetParam());
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

TEST_P(CudaEvent, ManyAreAwaitedAtOnceInAnyOrder) {
  world there(GetParam());
  {
    runtime runtime({.threads = 2});
    for (std::size_t round = 0; round < 20; ++round) {
      std::vector<std::function<void()>> unblock;
      std::vector<event> events;
      for (int i = 0; i < 30; ++i) {
        stream each(device(0));
        unblock.push_back(there.block(each));
        events.push_back(each.record());
      }
      std::atomic<int> woken = 0;
      std::thread releasing([&] {
        there.until_called("launch_host_func", 30 * (round + 1));
        while (!unblock.empty()) {
          unblock.back()();
          unblock.pop_back();
        }
      });
      sync_wait(runtime, wait_for_all(events, woken));
      releasing.join();
      EXPECT_EQ(woken, 30);
    }
    if (there.fake()) {
      EXPECT_LE(there.fake()->live().streams, 30u);  // side streams are reused
    }
  }
  if (there.fake()) {
    EXPECT_EQ(there.fake()->live().events, 0u);
  }
}

// One that is held up must not hold up another that is awaited after it.
TEST_P(CudaEvent, DoesNotWaitForOthersThatAreAwaited) {
  world there(GetParam());
  runtime runtime({.threads = 1});
  stream slow(device(0)), fast(device(0));
  auto unblock_slow = there.block(slow);
  auto unblock_fast = there.block(fast);
  auto late = slow.record();
  auto early = fast.record();
  std::stop_source stop;
  std::thread waiting([&] {
    auto wait = [&] { sync_wait(runtime, wait_for_event(late), stop.get_token()); };
    EXPECT_EQ(code_of(wait), errc::stopped);
  });
  there.until_called("launch_host_func", 1);
  std::thread other([&] { sync_wait(runtime, wait_for_event(early)); });
  there.until_called("launch_host_func", 2);
  unblock_fast();
  other.join();
  EXPECT_FALSE(late.is_complete());
  stop.request_stop();
  waiting.join();
  unblock_slow();
  slow.synchronize();
}

TEST_P(CudaEvent, AStopEndsTheWaitBeforeTheCallback) {
  world there(GetParam());
  stream work(device(0));
  auto unblock = there.block(work);
  {
    runtime runtime({.threads = 1});
    auto held = work.record();
    std::stop_source stop;
    std::thread stopping([&] {
      there.until_called("launch_host_func", 1);
      stop.request_stop();
    });
    EXPECT_EQ(code_of([&] { sync_wait(runtime, wait_for_event(held), stop.get_token()); }),
              errc::stopped);
    stopping.join();
  }
  unblock();  // the runtime has ended
  work.synchronize();
  device(0).synchronize();
}

static task<int> wait_behind(stream work, int value) {
  co_await work;
  co_return value;
}

// The driver finds a fault where a reactor calls it.
TEST_P(CudaEvent, IsAwaitedByTasksOfAStage) {
  world there(GetParam());
  runtime runtime({.threads = 2});
  stream work(device(0));
  auto unblock = there.block(work);
  auto wait = [work](int value) { return wait_behind(work, value); };
  auto items = runtime.run(from(std::vector{1, 2, 3}) | map(wait, {.concurrency = 3}));
  std::thread unblocking([&] {
    there.until_called("launch_host_func", 3);
    unblock();
  });
  int sum = 0;
  for (auto& each : items) sum += each;
  EXPECT_EQ(sum, 6);
  unblocking.join();
}

TEST_P(CudaEvent, AStopDoesNotEndAnUninterruptibleWait) {
  world there(GetParam());
  runtime runtime({.threads = 1});
  stream work(device(0));
  auto unblock = there.block(work);
  auto held = work.record();
  std::stop_source stop;
  std::atomic<bool> unblocked = false;
  std::thread stopping([&] {
    there.until_called("launch_host_func", 1);
    stop.request_stop();
    unblocked = true;
    unblock();
  });
  sync_wait(runtime, wait_uninterrupted(held), stop.get_token());
  EXPECT_TRUE(unblocked);
  stopping.join();
}

TEST(CudaEventFailures, OfADeviceThatFailsThrowsThoughNobodyIsCalledBack) {
  fake_driver driver({.works_by_itself = false});
  runtime runtime({.threads = 1});
  driver.hold();
  stream work(device(0));
  auto held = work.record();
  std::thread breaking([&] {
    while (driver.calls("launch_host_func") < 1) std::this_thread::yield();
    driver.break_device(cudaErrorIllegalAddress);
  });
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(code_of([&] { sync_wait(runtime, wait_uninterrupted(held)); }),
              cuda_code(cudaErrorIllegalAddress));
  breaking.join();
  EXPECT_EQ(code_of([&] { work.synchronize(); }), cuda_code(cudaErrorIllegalAddress));
}

TEST(CudaEventFailures, AFailureOfAnyCallThrowsAndLosesNothing) {
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

TEST(CudaEventFailures, CannotBeMadeOrRecordedWhereADeviceRefuses) {
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

}  // namespace lade::cuda::stream_test
