#include <lade/buffer_pool.hpp>
#include <lade/cuda/error.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/cuda/to_device.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

#include "../../cuda/numa_policy.hpp"
#include "../../cuda/runtime_api.hpp"
#include "../../cuda/transfers.hpp"
#include "../support/coroutines.hpp"
#include "../support/pipelines.hpp"
#include "../support/seed.hpp"
#include "fake_driver.hpp"

namespace lade::cuda::memory_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::code_of;

static constexpr std::size_t mebibyte = std::size_t{1} << 20;

static std::error_code cuda_code(cudaError_t value) { return {value, category()}; }

TEST(PinnedMemory, IsPinnedInRegions) {
  fake_driver driver;
  {
    pinned_memory pinned;
    std::vector<void*> blocks;
    for (int i = 0; i < 31; ++i) blocks.push_back(pinned.allocate(mebibyte, 4096));
    EXPECT_EQ(driver.calls("host_alloc"), 1u);
    EXPECT_EQ(pinned.stats().pinned_bytes, 32 * mebibyte);
    auto* large = pinned.allocate(100 * mebibyte, 2 * mebibyte);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large) % (2 * mebibyte), 0u);
    EXPECT_EQ(pinned.stats().pinned_bytes, 134 * mebibyte);
    pinned.deallocate(large, 100 * mebibyte, 2 * mebibyte);
    EXPECT_EQ(pinned.allocate(100 * mebibyte, 2 * mebibyte), large);
    EXPECT_EQ(driver.calls("host_alloc"), 2u);
    EXPECT_EQ(pinned.stats().fallbacks, 0u);
    EXPECT_EQ(pinned.refusal(), "");
  }
  EXPECT_EQ(driver.live().pinned_bytes, 0u);
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(PinnedMemory, IsWhereTensorsSayThatItIs) {
  fake_driver driver;
  auto pinned = std::make_shared<pinned_memory>();
  tensor made({element_type::f32, {8}}, buffer(32, *pinned));
  EXPECT_EQ(to_string(made.where()), "cuda_host");
}

TEST(PinnedMemory, FallsBackToOrdinaryPagesWhereTheDriverRefuses) {
  fake_driver driver({.pinned_limit = 40 * mebibyte});
  {
    pinned_memory pinned;
    auto* first = pinned.allocate(20 * mebibyte, 4096);
    auto* second = pinned.allocate(20 * mebibyte, 4096);
    std::memset(second, 1, 20 * mebibyte);
    EXPECT_EQ(pinned.stats().fallback_bytes, 20 * mebibyte);
    EXPECT_EQ(pinned.stats().fallbacks, 1u);
    EXPECT_EQ(pinned.refusal(), "pin 33554432 bytes: cudaErrorMemoryAllocation: out of memory");
    pinned.deallocate(second, 20 * mebibyte, 4096);
    pinned.deallocate(first, 20 * mebibyte, 4096);
    EXPECT_EQ(pinned.stats().fallback_bytes, 0u);
  }
  EXPECT_EQ(driver.live().pinned_bytes, 0u);
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(PinnedMemory, WithoutADriverIsOrdinaryMemory) {
  fake_driver driver({.devices = 0});
  driver.break_device(cudaErrorInsufficientDriver);
  pinned_memory pinned;
  auto* memory = pinned.allocate(4096, 4096);
  EXPECT_EQ(pinned.stats().fallback_bytes, 4096u);
  EXPECT_THAT(pinned.refusal(), HasSubstr("driver version is insufficient"));
  pinned.deallocate(memory, 4096, 4096);
}

TEST(PinnedMemory, KeepsItsLimit) {
  fake_driver driver;
  pinned_memory pinned({.limit_bytes = 40 * mebibyte});
  auto* first = pinned.allocate(4 * mebibyte, 4096);
  auto* second = pinned.allocate(30 * mebibyte, 4096);  // no region is free
  EXPECT_EQ(pinned.stats().pinned_bytes, 32 * mebibyte);
  EXPECT_EQ(pinned.stats().fallback_bytes, 30 * mebibyte);
  EXPECT_EQ(pinned.refusal(), "the limit is 41943040 bytes");
  pinned.deallocate(second, 30 * mebibyte, 4096);
  pinned.deallocate(first, 4 * mebibyte, 4096);
  // The free region goes, since a new one would exceed the limit.
  first = pinned.allocate(36 * mebibyte, 4096);
  EXPECT_EQ(pinned.stats().pinned_bytes, 38 * mebibyte);
  EXPECT_EQ(pinned.stats().fallback_bytes, 0u);
  EXPECT_EQ(driver.calls("free_host"), 1u);
  pinned.deallocate(first, 36 * mebibyte, 4096);
}

TEST(PinnedMemory, HandsOutEachByteOnce) {
  auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  fake_driver driver({.pinned_limit = 100 * mebibyte});
  pinned_memory pinned({.limit_bytes = 80 * mebibyte});
  struct block {
    unsigned char* memory;
    std::size_t bytes;
    std::size_t alignment;
    unsigned char value;
  };
  std::vector<block> out;
  for (int step = 0; step < 400; ++step) {
    if (out.size() < 8 && random() % 3 > 0) {
      auto bytes = 1 + random() % (random() % 2 ? 9 * mebibyte : 5000);
      auto alignment = std::size_t{64} << random() % 16;
      auto* memory = static_cast<unsigned char*>(pinned.allocate(bytes, alignment));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % alignment, 0u);
      auto value = static_cast<unsigned char>(step);
      memory[0] = memory[bytes / 2] = memory[bytes - 1] = value;
      out.push_back({memory, bytes, alignment, value});
    } else if (!out.empty()) {
      auto at = out.begin() + static_cast<std::ptrdiff_t>(random() % out.size());
      EXPECT_EQ(at->memory[0], at->value);
      EXPECT_EQ(at->memory[at->bytes / 2], at->value);
      EXPECT_EQ(at->memory[at->bytes - 1], at->value);
      pinned.deallocate(at->memory, at->bytes, at->alignment);
      out.erase(at);
    }
    EXPECT_LE(pinned.stats().pinned_bytes, 80 * mebibyte);
  }
  for (auto& each : out) pinned.deallocate(each.memory, each.bytes, each.alignment);
  EXPECT_EQ(pinned.stats().fallback_bytes, 0u);
}

TEST(PinnedMemory, NearAGpuIsAllocatedOnItsNode) {
  fake_driver driver({.devices = 2, .numa_node = 0});
  pinned_memory pinned({.near = device(1)});
  auto* memory = pinned.allocate(64, 64);
  EXPECT_THAT(driver.pinnings(), ElementsAre(fake_driver::pinning{1, 0}));
  EXPECT_EQ(device::current(), device(0));
  pinned.deallocate(memory, 64, 64);
}

TEST(PinnedMemory, OfASystemWithoutNodesIsAllocatedAnywhere) {
  fake_driver driver;
  pinned_memory pinned({.near = device(0)});
  auto* memory = pinned.allocate(64, 64);
  EXPECT_THAT(driver.pinnings(), ElementsAre(fake_driver::pinning{0, -1}));
  pinned.deallocate(memory, 64, 64);
}

TEST(PinnedMemory, IsPinnedWhereTheNodeCannotBeAskedFor) {
  fake_driver driver({.numa_node = 0});
  pinned_memory pinned({.near = device(0)});
  driver.fail_next("device_get_attribute", cudaErrorInvalidValue);
  auto* memory = pinned.allocate(64, 64);
  EXPECT_THAT(driver.pinnings(), ElementsAre(fake_driver::pinning{0, -1}));
  EXPECT_EQ(pinned.stats().fallbacks, 0u);
  EXPECT_EQ(pinned.refusal(), "");
  pinned.deallocate(memory, 64, 64);
}

TEST(PinnedMemory, AndItsReleaseEndNoCaptureOfAnotherThread) {
  fake_driver driver;
  driver.begin_capture();
  {
    pinned_memory pinned({.limit_bytes = 40 * mebibyte});
    pinned.deallocate(pinned.allocate(mebibyte, 4096), mebibyte, 4096);
    pinned.deallocate(pinned.allocate(36 * mebibyte, 4096), 36 * mebibyte, 4096);
    EXPECT_EQ(driver.calls("free_host"), 1u);  // the first region made room for the second
    EXPECT_EQ(pinned.stats().fallbacks, 0u);
  }
  EXPECT_EQ(driver.live().pinned_bytes, 0u);
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(PinnedMemory, OfARuntimeIsBoundedByItsBudget) {
  fake_driver driver;
  runtime runtime({.threads = 1, .memory_bytes = 64 * mebibyte});
  auto& pinned = transfers::of(runtime).pinned(device(0));
  std::vector<void*> blocks;
  for (int i = 0; i < 50; ++i) blocks.push_back(pinned.allocate(4 * mebibyte, 4096));
  auto bytes = transfers_of(runtime).pinned_bytes;
  EXPECT_GE(bytes, 64 * mebibyte);
  EXPECT_LE(bytes, (64 + 16 + 32) * mebibyte);  // a quarter and 32 MiB more than the budget
  EXPECT_GE(transfers_of(runtime).fallback_bytes, 200 * mebibyte - bytes);
  for (auto* each : blocks) pinned.deallocate(each, 4 * mebibyte, 4096);
}

TEST(PinnedMemory, OfARuntimeWithoutABudgetHasNoBound) {
  fake_driver driver;
  runtime runtime({.threads = 1, .memory_bytes = buffer_pool::unlimited});
  auto& pinned = transfers::of(runtime).pinned(device(0));
  auto* memory = pinned.allocate(200 * mebibyte, 4096);
  EXPECT_EQ(pinned.stats().fallbacks, 0u);
  pinned.deallocate(memory, 200 * mebibyte, 4096);
}

TEST(PinnedMemory, IsReservedByTheConstructor) {
  fake_driver driver;
  pinned_memory pinned({.limit_bytes = 50 * mebibyte, .reserve_bytes = 40 * mebibyte});
  EXPECT_EQ(pinned.stats().pinned_bytes, 40 * mebibyte);
  auto* memory = pinned.allocate(39 * mebibyte, 4096);
  EXPECT_EQ(driver.calls("host_alloc"), 1u);
  pinned.deallocate(memory, 39 * mebibyte, 4096);
  memory = pinned.allocate(45 * mebibyte, 4096);  // what is reserved stays, though it is free
  EXPECT_EQ(pinned.stats().pinned_bytes, 40 * mebibyte);
  EXPECT_EQ(pinned.stats().fallbacks, 1u);
  pinned.deallocate(memory, 45 * mebibyte, 4096);
}

TEST(PinnedMemory, ReservesNoMoreThanItsLimit) {
  fake_driver driver;
  EXPECT_THAT([] { pinned_memory({.limit_bytes = 1000, .reserve_bytes = 1001}); },
              testing::ThrowsMessage<error>(HasSubstr("pinned_memory: reserve_bytes is 1001")));
  pinned_memory pinned({.limit_bytes = 5000, .reserve_bytes = 5000});
  EXPECT_EQ(pinned.stats().pinned_bytes, 5000u);
}

TEST(PinnedMemory, SaysIfNothingCouldBeReserved) {
  fake_driver driver({.pinned_limit = 0});
  pinned_memory pinned({.reserve_bytes = mebibyte});
  EXPECT_EQ(pinned.stats().pinned_bytes, 0u);
  EXPECT_THAT(pinned.refusal(), HasSubstr("out of memory"));
}

// Tasks of a stage run on a reactor.
static task<buffer> allocate_in_stage(int) { co_return co_await allocate(3000); }

TEST(PinnedMemory, IsNotPinnedByAReactor) {
  fake_driver driver;
  auto pinned = std::make_shared<pinned_memory>();
  {
    runtime runtime({.threads = 1, .memory = pinned.get()});
    auto buffers = test::collect(runtime, from(std::vector{1, 2, 3}) | map(allocate_in_stage));
    EXPECT_EQ(buffers.size(), 3u);
  }
  auto stats = pinned->stats();
  EXPECT_GE(stats.fallbacks_on_reactors, 1u);
  EXPECT_EQ(stats.fallbacks, stats.fallbacks_on_reactors);
  EXPECT_THAT(pinned->refusal(), HasSubstr("set reserve_bytes"));
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(PinnedMemory, ThatIsReservedServesReactors) {
  fake_driver driver;
  auto pinned =
      std::make_shared<pinned_memory>(pinned_memory_options{.reserve_bytes = 4 * mebibyte});
  {
    runtime runtime({.threads = 1, .memory = pinned.get()});
    test::collect(runtime, from(std::vector{1, 2, 3}) | map(allocate_in_stage));
  }
  EXPECT_EQ(pinned->stats().fallbacks, 0u);
  EXPECT_EQ(pinned->refusal(), "");
  EXPECT_THAT(driver.faults(), IsEmpty());
}

// A driver that pins when a test says so.
class slow_pinning {
 public:
  slow_pinning() {
    current_ = this;
    slow_ = faked_;
    slow_.host_alloc = [](void** memory, std::size_t bytes, unsigned flags) {
      ++current_->started_;
      current_->started_.notify_all();
      current_->open_.wait(false);
      return current_->faked_.host_alloc(memory, bytes, flags);
    };
    replace_api(&slow_);
  }
  slow_pinning(const slow_pinning&) = delete;
  ~slow_pinning() { replace_api(&faked_); }

  void open() {
    open_ = true;
    open_.notify_all();
  }
  int started() const { return started_; }
  void until_started(int count) const {
    for (int now = started_; now < count; now = started_) started_.wait(now);
  }

 private:
  static inline slow_pinning* current_ = nullptr;
  const runtime_api& faked_ = api();
  runtime_api slow_;
  std::atomic<bool> open_ = false;
  std::atomic<int> started_ = 0;
};

static std::thread allocate_on_a_thread(pinned_memory& from, std::size_t bytes) {
  return std::thread([&from, bytes] { from.deallocate(from.allocate(bytes, 4096), bytes, 4096); });
}

TEST(PinnedMemory, AllocatesFromFreeMemoryWhileAThreadPins) {
  fake_driver driver;
  pinned_memory pinned({.reserve_bytes = 4 * mebibyte});
  slow_pinning slow;
  auto pinning = allocate_on_a_thread(pinned, 100 * mebibyte);
  slow.until_started(1);
  auto* memory = pinned.allocate(mebibyte, 4096);
  EXPECT_EQ(pinned.stats().pinned_bytes, 4 * mebibyte);
  pinned.deallocate(memory, mebibyte, 4096);
  slow.open();
  pinning.join();
}

TEST(PinnedMemory, IsPinnedOnceForAllThatNeedItAtATime) {
  fake_driver driver;
  pinned_memory pinned;
  slow_pinning slow;
  std::atomic<int> started = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      ++started;
      auto* memory = pinned.allocate(mebibyte, 4096);
      pinned.deallocate(memory, mebibyte, 4096);
    });
  while (started < 4) std::this_thread::yield();
  slow.open();
  for (auto& each : threads) each.join();
  EXPECT_EQ(slow.started(), 1);
  EXPECT_EQ(pinned.stats().pinned_bytes, 32 * mebibyte);
}

TEST(PinnedMemory, PinsTwoRegionsConcurrentlyIfOneIsTooSmall) {
  fake_driver driver;
  pinned_memory pinned;
  slow_pinning slow;
  auto first = allocate_on_a_thread(pinned, 20 * mebibyte);
  auto second = allocate_on_a_thread(pinned, 20 * mebibyte);
  slow.until_started(2);
  slow.open();
  first.join();
  second.join();
  EXPECT_EQ(pinned.stats().pinned_bytes, 64 * mebibyte);
}

TEST(PinnedMemory, ThatIsFreedEndsTheWaitForAThreadThatPins) {
  fake_driver driver;
  pinned_memory pinned({.reserve_bytes = 4 * mebibyte});
  auto* all = pinned.allocate(4 * mebibyte, 4096);
  slow_pinning slow;
  auto pinning = allocate_on_a_thread(pinned, mebibyte);
  slow.until_started(1);
  auto waiting = allocate_on_a_thread(pinned, mebibyte);
  pinned.deallocate(all, 4 * mebibyte, 4096);
  waiting.join();
  slow.open();
  pinning.join();
  EXPECT_EQ(pinned.stats().fallbacks, 0u);
}

TEST(PinnedMemory, KeepsItsLimitWhileAThreadPins) {
  fake_driver driver;
  pinned_memory pinned({.limit_bytes = 40 * mebibyte});
  slow_pinning slow;
  auto pinning = allocate_on_a_thread(pinned, 20 * mebibyte);
  slow.until_started(1);
  auto* memory = pinned.allocate(20 * mebibyte, 4096);  // does not wait
  EXPECT_EQ(pinned.stats().fallbacks, 1u);
  pinned.deallocate(memory, 20 * mebibyte, 4096);
  slow.open();
  pinning.join();
  EXPECT_EQ(pinned.stats().pinned_bytes, 32 * mebibyte);
}

TEST(ManagedMemory, IsMemoryOfBothHostAndGpu) {
  fake_driver driver({.devices = 2});
  {
    managed_memory managed(device(1));
    EXPECT_EQ(managed.on(), device(1));
    EXPECT_EQ(to_string(managed.where()), "cuda_managed:1");
    auto* small = managed.allocate(100, 64);
    auto* large = managed.allocate(mebibyte, 2 * mebibyte);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large) % (2 * mebibyte), 0u);
    std::memset(large, 1, mebibyte);
    EXPECT_EQ(managed.used_bytes(), mebibyte + 100);
    EXPECT_GE(driver.live().managed_bytes, mebibyte + 100);
    managed.deallocate(small, 100, 64);
    managed.deallocate(large, mebibyte, 2 * mebibyte);
    EXPECT_EQ(managed.used_bytes(), 0u);
  }
  EXPECT_EQ(device::current(), device(0));
  EXPECT_EQ(driver.live().managed_bytes, 0u);
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(ManagedMemory, NeedsAGpuBesideWhichTheCpuMayUseIt) {
  fake_driver driver({.has_concurrent_managed = false});
  EXPECT_EQ(code_of([] { managed_memory(device(0)); }), errc::unsupported);
  driver.fail_next("device_get_attribute", cudaErrorUnknown);
  EXPECT_EQ(code_of([] { managed_memory(device(0)); }), cuda_code(cudaErrorUnknown));
}

TEST(ManagedMemory, SaysHowMuchThereWasNot) {
  fake_driver driver({.device_limit = 1000});
  managed_memory managed(device(0));
  EXPECT_THAT([&] { managed.allocate(1001, 64); },
              testing::ThrowsMessage<error>("allocate 1001 bytes of managed memory: "
                                            "cudaErrorMemoryAllocation: out of memory"));
  EXPECT_EQ(managed.used_bytes(), 0u);
}

TEST(ManagedMemory, EndsNoCaptureOfAnotherThread) {
  fake_driver driver;
  managed_memory managed(device(0));
  driver.begin_capture();
  managed.deallocate(managed.allocate(100, 64), 100, 64);
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(ManagedMemory, ServesPools) {
  fake_driver driver;
  {
    auto managed = std::make_shared<managed_memory>(device(0));
    buffer_pool pool(buffer_pool::unlimited, *managed);
    auto held = pool.allocate_now(3 * mebibyte);
    EXPECT_EQ(held.where(), (lade::device{lade::device::kind::cuda_managed, 0}));
  }
  EXPECT_EQ(driver.live().managed_bytes, 0u);
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(NumaPolicy, IgnoresNodesThatDoNotExist) {
  numa_policy none(std::nullopt);
  numa_policy first(0);
  numa_policy absent(1023);
  numa_policy impossible(4096);
}

TEST(DeviceMemory, IsAllocatedAndFreedInTheOrderOfAStream) {
  fake_driver driver({.works_by_itself = false});
  device_memory memory(device(0));
  stream order(device(0));
  auto* block = memory.allocate(1000, order);
  EXPECT_EQ(memory.used_bytes(), 1000u);
  EXPECT_EQ(to_string(memory.where()), "cuda:0");
  memory.deallocate(block, 1000, order);
  EXPECT_EQ(memory.used_bytes(), 0u);
  EXPECT_EQ(driver.live().device_bytes, 1000u);
  driver.run();
  EXPECT_EQ(driver.live().device_bytes, 0u);
  memory.trim();
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(DeviceMemory, SaysHowMuchThereWasNot) {
  fake_driver driver({.device_limit = 1000});
  device_memory memory(device(0));
  stream order(device(0));
  EXPECT_THAT([&] { memory.allocate(1001, order); },
              testing::ThrowsMessage<error>(
                  "allocate 1001 bytes of GPU 0: cudaErrorMemoryAllocation: out of memory"));
  EXPECT_EQ(memory.used_bytes(), 0u);
}

TEST(DeviceMemory, NeedsMemoryPools) {
  fake_driver driver;
  driver.fail_next("get_default_pool", cudaErrorNotSupported);
  EXPECT_EQ(code_of([] { device_memory(device(0)); }), cuda_code(cudaErrorNotSupported));
}

TEST(DeviceMemory, KeepsWhatTheProgramHasChosenForThePool) {
  fake_driver driver;
  device_memory first(device(0));
  EXPECT_EQ(driver.pool_keeps(), std::numeric_limits<std::uint64_t>::max());
  device_memory chosen(device(0), {.keep_bytes = 1000});
  device_memory later(device(0));
  EXPECT_EQ(driver.pool_keeps(), 1000u);
  device_memory none(device(0), {.keep_bytes = 0});
  EXPECT_EQ(driver.pool_keeps(), 0u);
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(DeviceMemory, EachGpuHasASeparatePool) {
  fake_driver driver({.devices = 2});
  device_memory memory(device(1), {.keep_bytes = 1000});
  EXPECT_EQ(driver.pool_keeps(0), 0u);
  EXPECT_EQ(driver.pool_keeps(1), 1000u);
  stream order(device(1));
  memory.deallocate(memory.allocate(100, order), 100, order);
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(DeviceMemory, SaysIfItCannotBeTrimmed) {
  fake_driver driver;
  device_memory memory(device(0));
  driver.fail_next("pool_trim", cudaErrorUnknown);
  EXPECT_EQ(code_of([&] { memory.trim(); }), cuda_code(cudaErrorUnknown));
}

TEST(DeviceMemory, ServesPools) {
  fake_driver driver;
  {
    auto memory = std::make_shared<device_memory>(device(0));
    buffer_pool pool(buffer_pool::unlimited, *memory);
    for (std::size_t bytes : {std::size_t{100}, std::size_t{5000}, 3 * mebibyte}) {
      auto held = pool.allocate_now(bytes);
      EXPECT_EQ(held.where(), (lade::device{lade::device::kind::cuda, 0}));
      auto alignment = bytes >= 2 * mebibyte ? 2 * mebibyte : bytes >= 4096 ? 4096 : 64;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(held.data()) % alignment, 0u);
    }
  }
  device(0).synchronize();
  EXPECT_EQ(driver.live().device_bytes, 0u);
  EXPECT_EQ(driver.live().streams, 0u);
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(DeviceMemory, IsFreedIfTheGpuFailsWhileItIsWaitedFor) {
  fake_driver driver;
  device_memory memory(device(0));
  driver.fail_next("stream_synchronize", cudaErrorUnknown);
  EXPECT_EQ(code_of([&] { memory.allocate(5000, std::size_t{4096}); }),
            cuda_code(cudaErrorUnknown));
  EXPECT_EQ(memory.used_bytes(), 0u);
}

using make_memory = std::unique_ptr<memory_resource> (*)();

class CudaMemory : public testing::TestWithParam<make_memory> {};

TEST_P(CudaMemory, OfAHugeSizeThrows) {
  fake_driver driver;
  const auto memory = GetParam()();
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  for (std::size_t bytes : {most, most - 100, most - 4096, most / 2 + 1})
    EXPECT_EQ(code_of([&] { memory->allocate(bytes, 4096); }), std::errc::not_enough_memory);
  for (const auto* function : {"host_alloc", "malloc_managed", "malloc_async"})
    EXPECT_EQ(driver.calls(function), 0u) << function;
}

template <class Memory>
static std::unique_ptr<memory_resource> memory_near_gpu() {
  return std::make_unique<Memory>(device(0));
}
INSTANTIATE_TEST_SUITE_P(Managed, CudaMemory, testing::Values(memory_near_gpu<managed_memory>));
INSTANTIATE_TEST_SUITE_P(Device, CudaMemory, testing::Values(memory_near_gpu<device_memory>));
INSTANTIATE_TEST_SUITE_P(Pinned, CudaMemory,
                         testing::Values([]() -> std::unique_ptr<memory_resource> {
                           return std::make_unique<pinned_memory>();
                         }));

TEST(DeviceMemory, EndsNoCaptureOfAnotherThread) {
  fake_driver driver;
  device_memory memory(device(0));
  driver.begin_capture();
  memory.deallocate(memory.allocate(5000, std::size_t{4096}), 5000, std::size_t{4096});
  memory.trim();
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(DeviceBlock, IsFreedBehindTheStreamsThatUseIt) {
  fake_driver driver({.works_by_itself = false});
  device_memory memory(device(0));
  stream home(device(0)), first(device(0)), second(device(0));
  auto release_first = driver.block(first.handle());
  auto release_second = driver.block(second.handle());
  {
    device_block block(memory, 1000, home);
    auto copy = block;
    copy.use_on(first);
    block.use_on(second);
    block.use_on(second);
    block.use_on(home);
  }
  driver.run();
  EXPECT_EQ(driver.live().device_bytes, 1000u);
  release_second();
  driver.run();
  EXPECT_EQ(driver.live().device_bytes, 1000u);
  release_first();
  driver.run();
  EXPECT_EQ(driver.live().device_bytes, 0u);
  EXPECT_EQ(driver.live().events, 0u);
}

TEST(DeviceBlock, DoesNotWaitForWorkBehindARecordedPoint) {
  fake_driver driver({.works_by_itself = false});
  device_memory memory(device(0));
  stream home(device(0)), user(device(0));
  std::function<void()> release;
  {
    device_block block(memory, 1000, home);
    block.use_on(user);
    block.record_on(user);
    release = driver.block(user.handle());
  }
  driver.run();
  EXPECT_EQ(driver.live().device_bytes, 0u);
  release();
}

TEST(DeviceBlock, CannotBeAllocatedOnAPerThreadDefaultStream) {
  fake_driver driver;
  auto memory = std::make_shared<device_memory>(device(0));
  auto of_thread = stream::per_thread_default(device(0));
  EXPECT_EQ(code_of([&] { device_block(*memory, 100, of_thread); }), errc::invalid_argument);
  device_block block(*memory, 100, stream(device(0)));
  auto before = driver.calls("event_record");
  block.use_on(of_thread);  // records here: another thread has another stream of that handle
  EXPECT_EQ(driver.calls("event_record"), before + 1);
}

TEST(DeviceBlock, SaysIfItsUseCannotBeRecorded) {
  fake_driver driver;
  auto memory = std::make_shared<device_memory>(device(0));
  device_block block(*memory, 100, stream(device(0)));
  stream user(device(0));
  driver.fail_next("event_record", cudaErrorUnknown);
  EXPECT_EQ(code_of([&] { block.record_on(user); }), cuda_code(cudaErrorUnknown));
  driver.fail_next("event_record", cudaErrorUnknown);
  EXPECT_EQ(code_of([&] { block.use_on(stream::per_thread_default(device(0))); }),
            cuda_code(cudaErrorUnknown));
}

TEST(DeviceBlock, IsSharedByItsSlices) {
  fake_driver driver;
  auto memory = std::make_shared<device_memory>(device(0));
  buffer part;
  {
    stream home(device(0));
    device_block block(*memory, 1000, home);
    part = block.slice(100, 200);
    EXPECT_EQ(part.data(), block.bytes().data() + 100);
    EXPECT_EQ(to_string(part.where()), "cuda:0");
    EXPECT_THROW(block.slice(900, 101), std::out_of_range);
  }
  memory.reset();
  device(0).synchronize();
  EXPECT_EQ(driver.live().device_bytes, 1000u);
  part = {};
  device(0).synchronize();
  EXPECT_EQ(driver.live().device_bytes, 0u);
}

// If no event can be had, the thread waits; if that fails, the memory is not freed.
TEST(DeviceBlock, IsNotFreedUnderWorkIfTheDriverRefuses) {
  fake_driver driver;
  device_memory memory(device(0));
  stream home(device(0)), user(device(0));
  for (auto* function : {"event_create", "event_record", "stream_wait_event"}) {
    SCOPED_TRACE(function);
    device_block block(memory, 1000, home);
    block.use_on(user);
    driver.fail_next(function, cudaErrorUnknown);
  }
  device(0).synchronize();
  EXPECT_EQ(driver.live().device_bytes, 0u);
  {
    device_block block(memory, 1000, home);
    block.use_on(user);
    driver.fail_next("event_create", cudaErrorUnknown);
    driver.fail_next("stream_synchronize", cudaErrorUnknown);
  }
  device(0).synchronize();
  EXPECT_EQ(driver.live().device_bytes, 1000u);
}

// As a framework's caching allocator is used.
class counting_resource final : public device_resource {
 public:
  using device_resource::device_resource;
  std::string_view name() const noexcept override { return "counting"; }
  int live = 0;

 private:
  void* do_allocate(std::size_t bytes, const stream&) override {
    ++live;
    return ::operator new(bytes);
  }
  void do_deallocate(void* memory, std::size_t, const stream&) noexcept override {
    --live;
    ::operator delete(memory);
  }
};

TEST(DeviceResource, MayBeOneOfTheProgram) {
  fake_driver driver;
  counting_resource resource(device(0));
  stream home(device(0));
  {
    device_block block(resource, 100, home);
    EXPECT_EQ(resource.live, 1);
    auto* aligned = resource.allocate(100, std::size_t{4096});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 4096, 0u);
    resource.deallocate(aligned, 100, std::size_t{4096});
  }
  EXPECT_EQ(resource.live, 0);
}

// As a framework's allocator that reports no memory by null.
class empty_resource final : public device_resource {
 public:
  using device_resource::device_resource;
  std::string_view name() const noexcept override { return "framework memory"; }

 private:
  void* do_allocate(std::size_t, const stream&) override { return nullptr; }
  void do_deallocate(void*, std::size_t, const stream&) noexcept override { ADD_FAILURE(); }
};

TEST(DeviceResource, ThatReturnsNullIsNamedByTheError) {
  fake_driver driver;
  empty_resource resource(device(0));
  stream home(device(0));
  auto is_named = testing::ThrowsMessage<error>(
      "allocate 100 bytes of framework memory: the resource returned null");
  EXPECT_THAT([&] { device_block(resource, 100, home); }, is_named);
  EXPECT_THAT([&] { resource.allocate(100, std::size_t{64}); }, is_named);
  EXPECT_EQ(code_of([&] { buffer(100, resource); }), std::errc::not_enough_memory);
}

}  // namespace lade::cuda::memory_test
