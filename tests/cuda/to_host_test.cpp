#include <lade/buffer_pool.hpp>
#include <lade/cuda/error.hpp>
#include <lade/cuda/to_device.hpp>
#include <lade/cuda/to_host.hpp>
#include <lade/error.hpp>
#include <lade/failure.hpp>
#include <lade/memory_resource.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "../support/coroutines.hpp"
#include "batches.hpp"
#include "fake_driver.hpp"
#include "worlds.hpp"

namespace lade::cuda::to_host_test {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing_support::code_of;

static std::vector<std::int32_t> elements(const tensor& of) {
  auto* first = of.data<std::int32_t>();
  return {first, first + of.spec().elements()};
}

class ToHost : public InBothWorlds {};
LADE_IN_BOTH_WORLDS(ToHost);

TEST_P(ToHost, BringsBackWhatWasCopiedToTheGpu) {
  world where(GetParam());
  runtime runtime({.threads = 2});
  int next = 0;
  auto batches = numbered_batches(101, {.size = 2, .fields = "number"}) | to_device() | to_host();
  for (auto& batch : runtime.run(batches)) {
    EXPECT_EQ(to_string(batch.tensor().where()), "cuda_host");
    EXPECT_TRUE(is_numbered(elements(batch["data"]), next));
    for (std::size_t i = 0; i < batch.size(); ++i, ++next) {
      EXPECT_EQ(batch["number"].data<std::int64_t>()[i], next);
      EXPECT_EQ(batch.labels().data<std::int64_t>()[i], 10 * next);
      EXPECT_EQ(batch.samples()[i].field("caption").text(), "a " + std::to_string(next));
    }
  }
  EXPECT_EQ(next, 101);
}

// A producer whose work is long and on another stream.
TEST_P(ToHost, IsOrderedBehindTheProducer) {
  world where(GetParam());
  runtime runtime({.threads = 2});
  auto memory = std::make_shared<device_memory>(device(0));
  stream producer(device(0));
  host_values<std::int32_t> source(1000, 7);
  std::vector<std::function<void()>> releases;
  auto produce = [&](int) {
    device_block block(*memory, 4000, producer);
    tensor made({element_type::i32, {1, 1000}}, block.slice(0, 4000));
    releases.push_back(where.block(producer));
    EXPECT_EQ(
        api().memcpy_async(made.bytes(), source.data(), 4000, cudaMemcpyDefault, producer.handle()),
        cudaSuccess);
    std::vector<named_tensor> tensors;
    tensors.emplace_back("made", made);
    std::vector<sample> samples{sample("a")};
    std::vector<device_block> blocks{block};
    return device_batch(std::move(tensors), std::move(samples), {}, std::move(blocks),
                        producer.record());
  };
  auto items = runtime.run(from(test::numbers{1}) | map(produce, {.concurrency = 1}) | to_host());
  where.until_called("memcpy_async", 2);
  releases.front()();
  auto batch = items.wait_next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(elements(batch->tensor()), std::vector<std::int32_t>(1000, 7));
}

TEST_P(ToHost, IsAStageOfTheTableOfTheRun) {
  world where(GetParam());
  runtime runtime({.threads = 2});
  auto items = runtime.run(numbered_batches(8) | to_device() | to_host());
  EXPECT_THAT(test::collect(items), SizeIs(4));
  auto stats = items.statistics();
  auto& stage = stats.stages.back();
  EXPECT_EQ(stage.name, "to_host");
  EXPECT_EQ(stage.out, 4u);
  EXPECT_GE(stage.bytes, 4u * 8000);
}

TEST_P(ToHost, UsesTheNameAndTheMemoryOfTheProgram) {
  world where(GetParam());
  arena memory(buffer(std::size_t{1} << 20), "download");
  runtime runtime({.threads = 2});
  auto items = runtime.run(numbered_batches(8) | to_device() |
                           to_host({.memory = &memory, .name = "download"}));
  for (auto& batch : items) {
    EXPECT_EQ(to_string(batch.tensor().where()), "cpu");
    EXPECT_LT(memory.free_bytes(), std::size_t{1} << 20);
  }
  EXPECT_EQ(items.statistics().stages.back().name, "download");
}

TEST_P(ToHost, StagesKeepTheMemoryOfTheirOptionsAlive) {
  world where(GetParam());
  std::vector<std::weak_ptr<memory_resource>> given;
  const auto make = [&] {
    auto memory = std::make_shared<device_memory>(device(0));
    auto pinned = std::make_shared<pinned_memory>(), arrived = std::make_shared<pinned_memory>();
    given = {memory, pinned, arrived};
    return numbered_batches(8) | to_device({.memory = memory.get(), .host_memory = pinned.get()}) |
           to_host({.memory = arrived.get()});
  };
  {
    const auto batches = make();
    for (auto& each : given) ASSERT_FALSE(each.expired());
    runtime runtime({.threads = 2});
    EXPECT_THAT(test::collect(runtime, batches), SizeIs(4));
  }
  for (auto& each : given) EXPECT_TRUE(each.expired());
}

TEST(ToHostMemory, IsPinnedOnNoReactor) {
  fake_driver driver;
  runtime runtime({.threads = 2});
  test::collect(runtime, numbered_batches(20) | to_device() | to_host());
  EXPECT_EQ(transfers_of(runtime).fallback_bytes, 0u);
  EXPECT_THAT(driver.faults(), IsEmpty());
}

// No copy back ends, so the stage takes no more batches than it has buffers.
TEST(ToHostMemory, IsBounded) {
  fake_driver driver;
  runtime runtime({.threads = 2});
  driver.hold();
  {
    auto items =
        runtime.run(numbered_batches(-1) | to_device({.buffers = 30}) | to_host({.buffers = 2}));
    // Two tensors each of the batches that wait for a copy back.
    while (driver.calls("memcpy_async") < 2u * 30) std::this_thread::yield();
    EXPECT_LE(items.statistics().stages.back().in, 2u);
  }
  driver.release();
}

TEST(ToHostStop, LeavesCopiesInFlightTheirMemory) {
  arena memory(buffer(std::size_t{1} << 20), "download");
  fake_driver driver;
  {
    runtime runtime({.threads = 2});
    driver.hold();
    {
      auto items = runtime.run(numbered_batches(-1) | to_device() | to_host({.memory = &memory}));
      // Two tensors each of the three batches that the stages hold, and two copies back.
      while (driver.calls("memcpy_async") < 8) std::this_thread::yield();
    }  // the run ends, though no copy has started
    // Others write to the memory that is free.
    auto pool = runtime.memory().over(memory);
    std::vector<buffer> others;
    for (int i = 0; i < 8; ++i) {
      others.push_back(pool.allocate_now(8064));  // as much as a batch takes
      std::memset(others.back().data(), 0x5A, 8064);
    }
    driver.release();
    device(0).synchronize();
    auto is_untouched = [](std::byte each) { return each == std::byte{0x5A}; };
    for (auto& each : others) EXPECT_TRUE(std::ranges::all_of(each.bytes(), is_untouched));
  }
  device(0).synchronize();
  EXPECT_THAT(driver.faults(), IsEmpty());
  EXPECT_EQ(driver.live().pinned_bytes, 0u);
  EXPECT_EQ(driver.live().device_bytes, 0u);
}

TEST(ToHostFailure, OfTheGpuEndsTheRunWhateverItsPolicy) {
  fake_driver driver;
  runtime runtime({.threads = 2});
  auto items =
      runtime.run(numbered_batches(-1) | to_device() | to_host(), {.on_error = on_error::skip});
  EXPECT_TRUE(items.wait_next());
  driver.break_device(cudaErrorIllegalAddress);
  EXPECT_EQ(code_of([&] {
              while (items.wait_next()) {}
            }),
            std::error_code(cudaErrorIllegalAddress, category()));
}

TEST(ToHostFailure, OfAnyCallEndsTheRunAndLosesNothing) {
  for (auto* function : {"stream_create", "malloc_async", "memcpy_async", "event_create",
                         "event_record", "stream_wait_event", "launch_host_func", "event_query"}) {
    for (std::size_t after : {0u, 1u, 6u}) {
      SCOPED_TRACE(function + std::to_string(after));
      fake_driver driver;
      {
        runtime runtime({.threads = 2});
        driver.fail_next(function, cudaErrorUnknown, after);
        try {
          test::collect(runtime, numbered_batches(20) | to_device() | to_host());
        } catch (const error& failure) {
          EXPECT_EQ(failure.code(), std::error_code(cudaErrorUnknown, category()));
        }
        driver.fail_no_more();
        EXPECT_THAT(test::collect(runtime, numbered_batches(20) | to_device() | to_host()),
                    SizeIs(10));
      }
      device(0).synchronize();
      EXPECT_THAT(driver.faults(), IsEmpty());
      auto live = driver.live();
      EXPECT_EQ(live.streams + live.events + live.pinned_bytes + live.device_bytes, 0u);
    }
  }
}

// A tensor whose elements do not follow each other, as a transposed one.
static device_batch every_other(device_batch batch) {
  auto& whole = batch.tensor();
  tensor part({element_type::i32, {2, 500}}, {1000, 2}, whole.memory(), whole.bytes());
  std::vector<named_tensor> tensors;
  tensors.emplace_back("part", part);
  device_block block(*std::make_shared<device_memory>(device(0)), 1, stream(device(0)));
  return {std::move(tensors), batch.samples(), std::nullopt, {block}, batch.ready()};
}

TEST(ToHostFailure, ATensorThatIsNotInOnePieceIsRefused) {
  fake_driver driver;
  runtime runtime({.threads = 2});
  auto copies = numbered_batches(2) | to_device() | map(every_other) | to_host();
  EXPECT_EQ(code_of([&] {
              for ([[maybe_unused]] auto& each : runtime.run(copies)) {}
            }),
            errc::invalid_argument);
}

TEST(ToHostFailure, BatchesAtFixedAddressesAreRefused) {
  fake_driver driver;
  runtime runtime({.threads = 2});
  device_block block(*std::make_shared<device_memory>(device(0)), 8000, stream(device(0)));
  std::vector<named_tensor> fixed{
      named_tensor("data", tensor({element_type::i32, {2, 1000}}, block.slice(0, 8000)))};
  auto copies = numbered_batches(4) | to_device({.into = fixed}) | to_host();
  EXPECT_EQ(code_of([&] { test::collect(runtime, copies); }), errc::invalid_argument);
}

TEST(ToHostOptions, ThatCannotWorkAreRefused) {
  fake_driver driver;
  EXPECT_EQ(code_of([] { to_host({.buffers = 0}); }), errc::invalid_argument);
  auto memory = std::make_shared<device_memory>(device(0));
  EXPECT_EQ(code_of([&] { to_host({.memory = memory.get()}); }), errc::invalid_argument);
}

}  // namespace lade::cuda::to_host_test
