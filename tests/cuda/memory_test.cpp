#include <lade/buffer_pool.hpp>
#include <lade/cuda/error.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/error.hpp>
#include <lade/tensor.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include <cuda_runtime_api.h>

#include "../../cuda/numa_policy.hpp"
#include "../support/coroutines.hpp"
#include "../support/seed.hpp"
#include "fake_driver.hpp"

namespace lade::cuda {

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

TEST(PinnedMemory, OfAHugeSizeThrows) {
  fake_driver driver;
  pinned_memory pinned;
  EXPECT_EQ(code_of([&] { pinned.allocate(std::size_t{1} << 63, 4096); }),
            std::errc::not_enough_memory);
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

TEST(PinnedMemory, NearAGpuIsAllocatedThere) {
  fake_driver driver({.devices = 2});
  pinned_memory pinned({.near = device(1)});
  auto* memory = pinned.allocate(64, 64);
  EXPECT_EQ(driver.calls("set_device"), 2u);
  EXPECT_EQ(device::current(), device(0));
  pinned.deallocate(memory, 64, 64);
}

TEST(NumaPolicy, OfNodesThatAreNotThereDoesNothing) {
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

TEST(DeviceBlock, CannotBeAtHomeOnADefaultStreamOfAThread) {
  fake_driver driver;
  auto memory = std::make_shared<device_memory>(device(0));
  auto of_thread = stream::per_thread_default(device(0));
  EXPECT_EQ(code_of([&] { device_block(*memory, 100, of_thread); }), errc::invalid_argument);
  device_block block(*memory, 100, stream(device(0)));
  auto before = driver.calls("event_record");
  block.use_on(of_thread);  // records here: another thread has another stream of that handle
  EXPECT_EQ(driver.calls("event_record"), before + 1);
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

}  // namespace lade::cuda
