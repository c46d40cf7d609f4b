#include <lade/batch.hpp>
#include <lade/cuda/error.hpp>
#include <lade/cuda/to_device.hpp>
#include <lade/cuda/to_host.hpp>
#include <lade/error.hpp>
#include <lade/failure.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/stats.hpp>
#include <lade/trace.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "../../cuda/gpu_work.hpp"
#include "../../cuda/transfers.hpp"
#include "../support/coroutines.hpp"
#include "../support/temp_dir.hpp"
#include "batches.hpp"
#include "fake_driver.hpp"
#include "worlds.hpp"

namespace lade::cuda::to_device_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing_support::code_of;

static std::error_code cuda_code(cudaError_t value) { return {value, category()}; }

static const auto error_message = [](auto run) -> std::string {
  try {
    run();
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return "no exception";
};

class ToDevice : public InBothWorlds {};
LADE_IN_BOTH_WORLDS(ToDevice);

TEST_P(ToDevice, CopiesTensorsAndLabelsAndKeepsSamples) {
  world where(GetParam());
  runtime runtime({.threads = 2});
  stream trainer(device(0));
  int next = 0;
  auto batches = numbered_batches(7, {.size = 2, .fields = "number"}) | to_device();
  for (auto& batch : runtime.run(batches)) {
    auto size = batch.size();
    EXPECT_EQ(size, next < 6 ? 2u : 1u);
    batch.wait_on(trainer);
    EXPECT_EQ(to_string(batch.tensor().where()), "cuda:0");
    EXPECT_EQ(batch.on(), device(0));
    EXPECT_TRUE(is_numbered(values<std::int32_t>(batch["data"], trainer), next));
    auto numbers = values<std::int64_t>(batch["number"], trainer);
    auto labels = values<std::int64_t>(batch.labels(), trainer);
    ASSERT_EQ(batch.samples().size(), size);
    for (std::size_t i = 0; i < size; ++i) {
      EXPECT_EQ(numbers[i], next);
      EXPECT_EQ(labels[i], 10 * next);
      EXPECT_EQ(batch.samples()[i].key(), std::to_string(next));
      EXPECT_EQ(batch.samples()[i].field("caption").text(), "a " + std::to_string(next));
      ++next;
    }
  }
  EXPECT_EQ(next, 7);
  auto stats = transfers_of(runtime);
  EXPECT_EQ(stats.batches, 4u);
  EXPECT_EQ(stats.staged_bytes, 0u);  // batch_into has written to pinned memory
  EXPECT_GT(stats.pinned_bytes, 0u);
}

TEST_P(ToDevice, StagesAndCountsWhatIsPageableOrStrided) {
  world where(GetParam());
  runtime runtime({.threads = 2});
  stream trainer(device(0));
  auto make = [](int i) {
    tensor plain(element_type::i32, {2, 3});
    tensor wide(element_type::i32, {2, 4});
    for (int j = 0; j < 6; ++j) plain.data<std::int32_t>()[j] = i + j;
    for (int j = 0; j < 8; ++j) wide.data<std::int32_t>()[j] = 100 * i + j;
    tensor strided({element_type::i32, {2, 2}}, {4, 2}, wide.memory(), wide.bytes());
    std::vector<named_tensor> tensors;
    tensors.emplace_back("plain", plain);
    tensors.emplace_back("strided", strided);
    return sample_batch(std::move(tensors), {sample("a"), sample("b")});
  };
  int next = 0;
  for (auto& batch : runtime.run(from(test::numbers{20}) | map(make) | to_device())) {
    batch.wait_on(trainer);
    EXPECT_FALSE(batch.has_labels());
    EXPECT_EQ(code_of([&] { (void)batch.labels(); }), errc::invalid_argument);
    EXPECT_THAT(values<std::int32_t>(batch["plain"], trainer),
                ElementsAre(next, next + 1, next + 2, next + 3, next + 4, next + 5));
    EXPECT_THAT(values<std::int32_t>(batch["strided"], trainer),
                ElementsAre(100 * next, 100 * next + 2, 100 * next + 4, 100 * next + 6));
    ++next;
  }
  EXPECT_EQ(next, 20);
  EXPECT_EQ(transfers_of(runtime).staged_bytes, 20u * (24 + 16));
}

TEST_P(ToDevice, OrdersTheStreamOfTheTrainerNotTheThread) {
  world where(GetParam());
  runtime runtime({.threads = 2});
  stream trainer(device(0));
  auto step = stream(device(0));
  std::vector<host_values<std::int32_t>> seen(25);
  std::size_t steps = 0;
  auto release = where.block(trainer);
  auto items = runtime.run(numbered_batches(50) | to_device({.buffers = 2}));
  for (auto& batch : items) {
    batch.wait_on(trainer);  // returns, though nothing that is queued on the stream has run
    queue_copy(batch.tensor(), seen[steps], trainer);
    if (++steps == 2) release();
  }
  trainer.synchronize();
  for (std::size_t i = 0; i < seen.size(); ++i)
    EXPECT_TRUE(is_numbered(seen[i], 2 * static_cast<int>(i))) << i;
}

static std::vector<named_tensor> fixed_data(const device_block& in) {
  return {named_tensor("data", tensor({element_type::i32, {2, 1000}}, in.slice(0, 8000)))};
}

TEST_P(ToDevice, WritesEachBatchToTheSameAddresses) {
  world where(GetParam());
  runtime runtime({.threads = 2});
  stream trainer(device(0));
  device_block block(*std::make_shared<device_memory>(device(0)), 1 << 20, trainer);
  auto fixed = fixed_data(block);
  fixed.emplace_back("labels", tensor({element_type::i64, {2}}, block.slice(8192, 16)));
  auto batches = numbered_batches(21) | to_device({.into = fixed});
  std::vector<host_values<std::int32_t>> seen(11);
  std::vector<host_values<std::int64_t>> labels(11);
  std::size_t steps = 0;
  auto release = where.block(trainer);
  for (auto& batch : runtime.run(batches)) {
    EXPECT_EQ(batch.tensor().bytes(), block.bytes().data());
    EXPECT_EQ(batch.labels().bytes(), block.bytes().data() + 8192);
    batch.wait_on(trainer);
    queue_copy(batch.tensor(), seen[steps], trainer);
    queue_copy(batch.labels(), labels[steps], trainer);
    if (++steps == 2) release();
  }
  trainer.synchronize();
  ASSERT_EQ(steps, 11u);
  for (std::size_t i = 0; i < steps; ++i) {
    EXPECT_TRUE(is_numbered(seen[i], 2 * static_cast<int>(i))) << i;
    EXPECT_EQ(labels[i][0], 20 * static_cast<std::int64_t>(i));
  }
  EXPECT_THAT(seen.back(), SizeIs(1000));
}

TEST_P(ToDevice, CopiesAreAwaited) {
  world where(GetParam());
  runtime runtime({.threads = 2});
  auto check = [](device_batch batch) -> task<bool> {
    co_await batch.ready();
    co_return batch.ready().is_complete();
  };
  auto all = test::collect(runtime, numbered_batches(10) | to_device() | map(check));
  EXPECT_EQ(all, std::vector<bool>(5, true));
}

TEST_P(ToDevice, UsesTheMemoryOfTheProgram) {
  world where(GetParam());
  auto pinned = std::make_shared<pinned_memory>();
  auto memory = std::make_shared<device_memory>(device(0));
  runtime runtime({.threads = 2});
  auto batches =
      numbered_batches(4) | to_device({.memory = memory.get(), .host_memory = pinned.get()});
  auto kept = test::collect(runtime, batches);
  EXPECT_GE(memory->used_bytes(), 2u * 8000);
  EXPECT_GT(pinned->stats().pinned_bytes, 0u);
  EXPECT_EQ(transfers_of(runtime).pinned_bytes, 0u);
  kept.clear();
  EXPECT_EQ(memory->used_bytes(), 0u);
}

TEST_P(ToDevice, IsAStageOfTheTableOfTheRun) {
  world where(GetParam());
  runtime runtime({.threads = 2});
  auto items = runtime.run(numbered_batches(8) | to_device({.name = "upload"}));
  EXPECT_THAT(test::collect(items), SizeIs(4));
  auto stats = items.statistics();
  auto& stage = stats.stages.back();
  EXPECT_EQ(stage.name, "upload");
  EXPECT_EQ(stage.in, 4u);
  EXPECT_EQ(stage.out, 4u);
  EXPECT_GE(stage.bytes, 4u * 8000);
  EXPECT_EQ(stage.durations.total(), 4u);
}

TEST_P(ToDevice, BatchesMayOutliveTheRuntime) {
  world where(GetParam());
  stream trainer(device(0));
  std::vector<device_batch> kept;
  {
    runtime runtime({.threads = 2});
    kept = test::collect(runtime, numbered_batches(8) | to_device());
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    kept[i].wait_on(trainer);
    EXPECT_TRUE(
        is_numbered(values<std::int32_t>(kept[i].tensor(), trainer), 2 * static_cast<int>(i)));
  }
}

TEST_P(ToDevice, HasStatesToResumeFrom) {
  world where(GetParam());
  runtime runtime({.threads = 2});
  auto batches = numbered_batches(10) | to_device();
  std::optional<state> saved;
  {
    auto items = runtime.run(batches);
    auto taken = items.begin();
    ++taken;
    saved = items.state();
  }
  auto rest = test::collect(runtime, batches, {.state = saved});
  ASSERT_THAT(rest, SizeIs(3));
  EXPECT_EQ(rest.front().samples().front().key(), "4");
}

TEST_P(ToDevice, ABatchAtFixedAddressesIsValidUntilAnotherIsCopiedThere) {
  world where(GetParam());
  runtime runtime({.threads = 2});
  stream trainer(device(0));
  device_block block(*std::make_shared<device_memory>(device(0)), 8000, trainer);
  auto fixed = fixed_data(block);
  auto kept = test::collect(runtime, numbered_batches(4) | to_device({.into = fixed}));
  auto &first = kept.at(0), &second = kept.at(1);
  for (int i = 0; i < 2; ++i) {
    first.wait_on(trainer);
    EXPECT_TRUE(is_numbered(values<std::int32_t>(first.tensor(), trainer), 0));
  }
  second.wait_on(trainer);
  EXPECT_EQ(code_of([&] { first.wait_on(trainer); }), errc::invalid_argument);
  EXPECT_THAT(error_message([&] { first.wait_on(trainer); }),
              HasSubstr("a later one has been copied there"));
  second.wait_on(trainer);
  EXPECT_TRUE(is_numbered(values<std::int32_t>(second.tensor(), trainer), 2));
}

// Over the fake driver alone.

// Three batches that are copied to the same addresses. The GPU works only in run().
class BatchesAtFixedAddresses : public testing::Test {
 protected:
  BatchesAtFixedAddresses() { first_.synchronize(); }
  ~BatchesAtFixedAddresses() override {
    driver_.run();
    kept_.clear();
    driver_.run();
    EXPECT_THAT(driver_.faults(), IsEmpty());
  }

  host_values<std::int32_t>& read(std::size_t batch, const stream& on) {
    queue_copy(kept_.at(batch).tensor(), seen_.at(batch), on);
    return seen_.at(batch);
  }

  fake_driver driver_{{.works_by_itself = false}};
  runtime runtime_{{.threads = 2}};
  stream first_{device(0)}, second_{device(0)};
  device_block block_{*std::make_shared<device_memory>(device(0)), 8000, first_};
  std::vector<named_tensor> fixed_ = fixed_data(block_);
  std::vector<device_batch> kept_ =
      test::collect(runtime_, numbered_batches(6) | to_device({.into = fixed_}));
  std::vector<host_values<std::int32_t>> seen_{3};
};

TEST_F(BatchesAtFixedAddresses, AreCopiedOnceForAllStreamsAndAllWait) {
  auto copies = driver_.calls("memcpy_async");
  auto release = driver_.block(first_.handle());
  kept_[0].wait_on(first_);
  kept_[0].wait_on(second_);
  kept_[0].wait_on(first_);
  EXPECT_EQ(driver_.calls("memcpy_async"), copies + 1);
  auto& seen = read(0, second_);
  driver_.run();
  EXPECT_FALSE(second_.is_idle());
  release();
  driver_.run();
  EXPECT_TRUE(is_numbered(seen, 0));
}

TEST_F(BatchesAtFixedAddresses, AreCopiedBehindTheStreamsOfTheOneBefore) {
  auto release = driver_.block(first_.handle());
  kept_[0].wait_on(first_);
  auto& before = read(0, first_);
  kept_[1].wait_on(second_);
  auto& after = read(1, second_);
  driver_.run();
  EXPECT_FALSE(second_.is_idle());
  release();
  driver_.run();
  EXPECT_TRUE(is_numbered(before, 0));
  EXPECT_TRUE(is_numbered(after, 2));
}

TEST_F(BatchesAtFixedAddresses, AreCopiedBehindEachStreamOfTheOneBefore) {
  kept_[0].wait_on(first_);
  kept_[0].wait_on(second_);
  auto release = driver_.block(second_.handle());
  kept_[1].wait_on(first_);
  driver_.run();
  EXPECT_FALSE(first_.is_idle());
  release();
}

TEST_F(BatchesAtFixedAddresses, AreCopiedBehindThePreviousOneDespiteAnEarlierRecord) {
  kept_[0].wait_on(first_);
  kept_[1].wait_on(first_);
  kept_[0].record_on(first_);
  auto release = driver_.block(first_.handle());
  kept_[2].wait_on(second_);
  driver_.run();
  EXPECT_FALSE(second_.is_idle());
  release();
}

// Its streams need not exist any more.
TEST_F(BatchesAtFixedAddresses, AreCopiedBehindTheStreamsOfOneThatIsDestroyed) {
  std::function<void()> release;
  {
    stream user(device(0));
    release = driver_.block(user.handle());
    auto external = stream::external(user.handle(), device(0));
    kept_[0].wait_on(external);
    (void)read(0, external);
    kept_.erase(kept_.begin());
  }
  kept_[0].wait_on(second_);
  driver_.run();
  EXPECT_FALSE(second_.is_idle());
  release();
  driver_.run();
  EXPECT_TRUE(is_numbered(seen_[0], 0));
  EXPECT_TRUE(second_.is_idle());
}

TEST_F(BatchesAtFixedAddresses, AreNotCopiedBehindWorkAfterARecordedPoint) {
  kept_[0].wait_on(first_);
  kept_[0].record_on(first_);
  auto release = driver_.block(first_.handle());
  kept_[1].wait_on(second_);
  auto& seen = read(1, second_);
  driver_.run();
  EXPECT_TRUE(is_numbered(seen, 2));
  release();
}

TEST_F(BatchesAtFixedAddresses, AreTriedAgainAfterAFailure) {
  kept_[0].wait_on(first_);
  driver_.fail_next("memcpy_async", cudaErrorUnknown);
  EXPECT_EQ(code_of([&] { kept_[1].wait_on(first_); }), cuda_code(cudaErrorUnknown));
  EXPECT_EQ(code_of([&] { kept_[0].wait_on(first_); }), errc::invalid_argument);
  kept_[1].wait_on(first_);
  auto& seen = read(1, first_);
  driver_.run();
  EXPECT_TRUE(is_numbered(seen, 2));
}

// When the run has opened it.
static std::size_t slots_of_last_stage(const auto& items) {
  for (;; std::this_thread::yield()) {
    auto stages = items.statistics().stages;
    if (!stages.empty() && stages.back().name == "to_device" && stages.back().slots > 0)
      return stages.back().slots;
  }
}

// Two tensors of each batch.
TEST(ToDeviceMemory, HoldsTheBatchesOfItsBuffersAndThoseThatAreReady) {
  fake_driver driver;
  runtime runtime({.threads = 2});
  driver.hold();
  for (auto [buffers, ready] : {std::pair(8u, 1u), std::pair(1u, 6u)}) {
    auto copies_before = driver.calls("memcpy_async");
    auto copies = [&] { return driver.calls("memcpy_async") - copies_before; };
    auto batches = numbered_batches(-1) | to_device({.buffers = buffers});
    auto items = runtime.run(batches, {.ready = ready});
    ASSERT_EQ(slots_of_last_stage(items), buffers);
    while (copies() < 2 * (buffers + ready)) std::this_thread::yield();
    EXPECT_EQ(copies(), 2 * (buffers + ready));
  }
  driver.release();
}

TEST(ToDeviceCapture, OfAnotherThreadIsNotEndedByARun) {
  fake_driver driver;
  {
    runtime runtime({.threads = 2});
    driver.begin_capture();
    EXPECT_THAT(test::collect(runtime, numbered_batches(40) | to_device() | to_host()), SizeIs(20));
    EXPECT_GT(driver.calls("host_alloc"), 0u);
  }
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(ToDeviceMemory, ReturnsBehindTheStreamOfTheTrainer) {
  fake_driver driver;
  {
    runtime runtime({.threads = 2});
    stream trainer(device(0));
    auto release = driver.block(trainer.handle());
    {
      auto kept = test::collect(runtime, numbered_batches(8) | to_device());
      for (auto& each : kept) each.wait_on(trainer);
      kept.back().record_on(trainer);
    }
    EXPECT_GE(driver.live().device_bytes, 4u * 8000);
    release();
    device(0).synchronize();
    EXPECT_EQ(driver.live().device_bytes, 0u);
  }
  EXPECT_THAT(driver.faults(), IsEmpty());
  EXPECT_EQ(driver.live().pinned_bytes, 0u);
  EXPECT_EQ(driver.live().streams, 0u);
  EXPECT_EQ(driver.live().events, 0u);
}

TEST(ToDeviceMemory, IsBounded) {
  fake_driver driver;
  runtime runtime({.threads = 2});
  stream trainer(device(0));
  for (unsigned buffers : {1u, 2u, 5u}) {
    std::size_t most = 0;
    for (auto& batch :
         runtime.run(numbered_batches(200) | to_device({.buffers = buffers}), {.ready = 1})) {
      batch.wait_on(trainer);
      device(0).synchronize();  // frees what has been dropped
      most = std::max(most, driver.live().device_bytes);
    }
    // Those of the stage, of the run, of the loop, and one that was dropped since.
    EXPECT_LE(most, (buffers + 4) * 9000);
  }
}

TEST(ToDeviceStop, LeavesCopiesInFlightTheirMemory) {
  fake_driver driver;
  {
    runtime runtime({.threads = 2, .memory_bytes = 100'000});
    stream trainer(device(0));
    host_values<std::int32_t> seen;
    driver.hold();
    {
      auto items = runtime.run(numbered_batches(-1) | to_device());
      auto batch = items.wait_next();
      batch->wait_on(trainer);
      queue_copy(batch->tensor(), seen, trainer);
    }  // the run ends, though no copy has started
    // Another run writes to the pinned memory that is free.
    auto others = runtime.run(numbered_batches(-1) | map([](sample_batch batch) {
                                std::memset(batch.tensor().bytes(), 0, 8000);
                                return batch;
                              }) |
                              to_device());
    EXPECT_TRUE(others.wait_next());
    EXPECT_GE(driver.queued(), 4u);
    driver.release();
    trainer.synchronize();
    EXPECT_TRUE(is_numbered(seen, 0));
  }
  device(0).synchronize();
  EXPECT_THAT(driver.faults(), IsEmpty());
  EXPECT_EQ(driver.live().pinned_bytes, 0u);
  EXPECT_EQ(driver.live().device_bytes, 0u);
}

// No copy begins until the end of the runtime has waited for a while: it asks the driver again and
// again.
TEST(ToDeviceStop, TheEndOfTheRuntimeWaitsForCopies) {
  fake_driver driver;
  std::optional<runtime> where(std::in_place, runtime_options{.threads = 2});
  driver.hold();
  auto kept = test::collect(*where, numbered_batches(2) | to_device());
  std::atomic<bool> has_ended = false;
  std::thread ending([&] {
    where.reset();
    has_ended = true;
  });
  auto asked = driver.calls("event_query");
  while (driver.calls("event_query") < asked + 3 && !has_ended) std::this_thread::yield();
  EXPECT_FALSE(has_ended);
  EXPECT_FALSE(kept.front().ready().is_complete());
  driver.release();
  ending.join();
  EXPECT_TRUE(kept.front().ready().is_complete());
}

// The run ends with copies that never begin, and no thread waits for them.
TEST(ToDeviceStop, DoesNotWaitForCopies) {
  fake_driver driver;
  runtime runtime({.threads = 2});
  driver.hold();
  {
    auto items = runtime.run(numbered_batches(-1) | to_device());
    EXPECT_TRUE(items.wait_next());
    items.stop();
  }
  EXPECT_GT(driver.queued(), 0u);  // the run has ended before the copies
  EXPECT_EQ(driver.calls("stream_synchronize") + driver.calls("event_synchronize"), 0u);
  driver.release();
}

TEST(ToDeviceFailure, OfTheGpuEndsTheRunWhateverItsPolicy) {
  fake_driver driver;
  {
    runtime runtime({.threads = 2});
    auto items = runtime.run(numbered_batches(-1) | to_device(), {.on_error = on_error::skip});
    EXPECT_TRUE(items.wait_next());
    driver.break_device(cudaErrorIllegalAddress);
    std::error_code code;
    try {
      while (items.wait_next()) {}
    } catch (const error& failure) {
      code = failure.code();
      EXPECT_THAT(failure.what(), HasSubstr("cudaErrorIllegalAddress"));
      EXPECT_THAT(failure.what(), HasSubstr("to_device"));
    }
    EXPECT_EQ(code, cuda_code(cudaErrorIllegalAddress));
    EXPECT_EQ(code, condition::device_lost);
  }
}

TEST(ToDeviceFailure, OfAnyCallEndsTheRunAndLosesNothing) {
  for (auto* function : {"stream_create", "get_default_pool", "malloc_async", "memcpy_async",
                         "event_create", "event_record"}) {
    for (std::size_t after : {0u, 1u, 3u}) {
      SCOPED_TRACE(function + std::to_string(after));
      fake_driver driver;
      {
        runtime runtime({.threads = 2});
        driver.fail_next(function, cudaErrorUnknown, after);
        try {
          test::collect(runtime, numbered_batches(20) | to_device());
        } catch (const error& failure) {
          EXPECT_EQ(failure.code(), cuda_code(cudaErrorUnknown));
          EXPECT_THAT(failure.what(), HasSubstr("to_device"));
        }
        driver.fail_no_more();
        EXPECT_THAT(test::collect(runtime, numbered_batches(20) | to_device()), SizeIs(10));
      }
      device(0).synchronize();
      EXPECT_THAT(driver.faults(), IsEmpty());
      auto live = driver.live();
      EXPECT_EQ(live.streams + live.events + live.pinned_bytes + live.device_bytes, 0u);
    }
  }
}

TEST(ToDeviceFailure, OfCallsThatReportTheEndOfCopiesIsNoFailureOfTheRun) {
  for (auto* function : {"launch_host_func", "stream_wait_event", "event_query"}) {
    SCOPED_TRACE(function);
    fake_driver driver;
    {
      runtime runtime({.threads = 2});
      driver.fail_next(function, cudaErrorUnknown);
      EXPECT_THAT(test::collect(runtime, numbered_batches(20) | to_device()), SizeIs(10));
    }
    device(0).synchronize();
    EXPECT_THAT(driver.faults(), IsEmpty());
    EXPECT_EQ(driver.live().pinned_bytes, 0u);
  }
}

TEST(ToDeviceFailure, ToPinWarnsOnceAndCopiesWithoutPinning) {
  fake_driver driver({.pinned_limit = 0});
  runtime runtime({.threads = 2});
  stream trainer(device(0));
  std::mutex mutex;
  std::vector<std::string> warnings;
  run_options options;
  options.on_warning = [&](const std::string& text) {
    std::lock_guard lock(mutex);
    warnings.push_back(text);
  };
  for (int i = 0; i < 2; ++i) {
    int next = 0;
    for (auto& batch : runtime.run(numbered_batches(10) | to_device(), options)) {
      batch.wait_on(trainer);
      EXPECT_TRUE(is_numbered(values<std::int32_t>(batch.tensor(), trainer), next));
      next += 2;
    }
  }
  EXPECT_THAT(
      warnings,
      ElementsAre(HasSubstr("to_device: copies are slow, because memory is not pinned: pin ")));
  EXPECT_GT(transfers_of(runtime).fallback_bytes, 0u);
}

TEST(ToDeviceFailure, NamesTheGpuThatIsNotThere) {
  fake_driver driver({.devices = 1});
  runtime runtime({.threads = 1});
  EXPECT_THAT(error_message(
                  [&] { test::collect(runtime, numbered_batches(2) | to_device({.device = 3})); }),
              HasSubstr("use GPU 3: there are 1"));
}

TEST(ToDeviceFailure, WithoutAGpuSaysWhy) {
  fake_driver driver({.devices = 0});
  runtime runtime({.threads = 1});
  auto batches = numbered_batches(2) | to_device();  // needs none
  EXPECT_THAT(error_message([&] { test::collect(runtime, batches); }),
              HasSubstr("to_device: use GPU 0: cudaErrorNoDevice"));
}

TEST(ToDeviceOptions, ThatCannotWorkAreRefused) {
  fake_driver driver({.devices = 2});
  EXPECT_THAT(error_message([] { to_device({.buffers = 0}); }),
              HasSubstr("to_device: buffers is 0"));
  auto memory = std::make_shared<device_memory>(device(0));
  EXPECT_THAT(error_message([&] { to_device({.host_memory = memory.get()}); }),
              HasSubstr("to_device: host_memory is device memory (cuda:0); it must be pinned"));
  EXPECT_THAT(error_message([&] { to_device({.host_memory = &host_memory()}); }),
              HasSubstr("to_device: host_memory is host memory (cpu); it must be pinned"));
  runtime runtime({.threads = 1});
  EXPECT_THAT(error_message([&] {
                test::collect(runtime, numbered_batches(2) |
                                           to_device({.device = 1, .memory = memory.get()}));
              }),
              HasSubstr("the memory is that of another GPU"));
}

TEST(ToDeviceTrace, ShowsTheCopiesThatTheGpuHasStillToMake) {
  testing_support::temp_dir dir;
  fake_driver driver;
  {
    runtime runtime({.threads = 1});
    driver.hold();  // no copy is made
    trace record(dir / "trace");
    auto batches = numbered_batches(6) | to_device({.buffers = 3});
    for (auto& batch : runtime.run(batches, {.trace = &record})) EXPECT_EQ(batch.size(), 2u);
    driver.release();
  }
  std::ifstream file(dir / "trace");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr("to_device on the GPU"));
  EXPECT_THAT(text, HasSubstr("\"queued\":3"));
}

TEST(ToDeviceTrace, ShowsThatCopiesHaveFinished) {
  testing_support::temp_dir dir;
  fake_driver driver;
  {
    runtime runtime({.threads = 2});
    driver.hold();
    trace record(dir / "trace");
    std::atomic<bool> may_end = false;
    auto make = [&](int i) {
      if (i == 3) may_end.wait(false);
      return sample_batch(tensor(element_type::i32, {1, 8}), {sample("a")});  // will be staged
    };
    auto batches = from(test::numbers{4}) | map(make, {.concurrency = 1}) | to_device();
    auto items = runtime.run(batches, {.trace = &record});
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(items.wait_next());
    driver.release();
    while (runtime.memory().stats().used_bytes > 0) std::this_thread::yield();
    may_end = true;
    may_end.notify_all();
    EXPECT_TRUE(items.wait_next());
  }
  std::ifstream file(dir / "trace");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  for (auto* count : {"3", "2", "1", "0"})
    EXPECT_THAT(text, HasSubstr(std::string("\"queued\":") + count + "}"));
}

TEST(ToDeviceTrace, RecordsTheEndOfCopiesOfNoBytes) {
  fake_driver driver;
  std::atomic<bool> has_heard = false;
  {
    runtime runtime({.threads = 2});
    const stream copying(device(0));
    transfers::of(runtime).keep(copying.record(), {}, [&] { has_heard = true; });
  }
  EXPECT_TRUE(has_heard);
}

static std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ToDeviceTrace, NumbersStagesWithTheSameName) {
  testing_support::temp_dir dir;
  fake_driver driver;
  {
    runtime runtime({.threads = 2});
    trace record(dir / "trace");
    auto batches = numbered_batches(2) | to_device() | to_host() | to_device();
    EXPECT_THAT(test::collect(runtime, batches, {.trace = &record}), SizeIs(1));
  }
  auto text = text_of_file(dir / "trace");
  EXPECT_THAT(text, HasSubstr("\"to_device on the GPU\""));
  EXPECT_THAT(text, HasSubstr("\"to_device (2) on the GPU\""));
}

TEST(GpuLevels, AreThoseOfAStageInATrace) {
  testing_support::temp_dir dir;
  {
    runtime runtime({.threads = 1});
    auto& levels = runtime.service<gpu_levels>();
    trace first(dir / "first"), second(dir / "second");
    for (int by : {1, -1}) {
      levels.change(first, "a", by);
      levels.change(first, "b", by);
      levels.change(second, "a", by);
    }
  }
  for (auto* name : {"first", "second"}) {
    auto text = text_of_file(dir / name);
    EXPECT_THAT(text, HasSubstr("\"queued\":1}"));
    EXPECT_THAT(text, testing::Not(HasSubstr("\"queued\":2}")));
  }
}

// The trace is gone when the copies finish.
TEST(ToDeviceTrace, MayEndBeforeTheCopies) {
  testing_support::temp_dir dir;
  fake_driver driver;
  runtime runtime({.threads = 1});
  driver.hold();
  {
    trace record(dir / "trace");
    auto batches = numbered_batches(6) | to_device();
    EXPECT_THAT(test::collect(runtime, batches, {.trace = &record}), SizeIs(3));
  }
  driver.release();
}

TEST(ToDeviceOptions, FixedTensorsMustFit) {
  fake_driver driver;
  runtime runtime({.threads = 1});
  stream trainer(device(0));
  auto memory = std::make_shared<device_memory>(device(0));
  device_block block(*memory, 1 << 20, trainer);
  auto into = [&](const std::string& name, const tensor& fixed) {
    std::vector<named_tensor> all;
    all.emplace_back(name, fixed);
    return error_message(
        [&] { test::collect(runtime, numbered_batches(2) | to_device({.into = all})); });
  };
  EXPECT_THAT(into("data", tensor(element_type::i32, {2, 1000})),
              HasSubstr("to_device into data: it is in cpu, not in cuda:0"));
  EXPECT_THAT(into("data", tensor({element_type::f32, {2, 1000}}, block.slice(0, 8000))),
              HasSubstr("it is i32[2, 1000], and there is f32[2, 1000]"));
  EXPECT_THAT(into("data", tensor({element_type::i32, {1, 1000}}, block.slice(0, 4000))),
              HasSubstr("it is i32[2, 1000], and there is i32[1, 1000]"));
  EXPECT_THAT(into("other", tensor({element_type::i32, {1, 1000}}, block.slice(0, 4000))),
              HasSubstr("copy tensor other to its fixed address: the batch has no tensor"));
  for (const auto& shapeless : {tensor({element_type::i32, {2, 1000}}, {2000, 2},
                                       block.slice(0, 16'000), block.bytes().data()),
                                tensor({element_type::i32, {}}, block.slice(0, 4))})
    EXPECT_THAT(into("data", shapeless),
                HasSubstr("to_device into data: it is not contiguous, or has no dimension"));
  auto make = [](int) {
    std::vector<named_tensor> tensors;
    tensors.emplace_back("labels", tensor(element_type::i64, {1}));
    return sample_batch(std::move(tensors), {sample("a", 1)});
  };
  std::vector<named_tensor> labels{
      named_tensor("labels", tensor({element_type::i64, {1}}, block.slice(0, 8)))};
  EXPECT_THAT(error_message([&] {
                test::collect(runtime,
                              from(test::numbers{1}) | map(make) | to_device({.into = labels}));
              }),
              HasSubstr("the batch has labels, and a tensor of that name"));
  EXPECT_EQ(into("data", tensor({element_type::i32, {5, 1000}}, block.slice(0, 20'000))),
            "no exception");
  std::vector<named_tensor> overlapping{
      named_tensor("data", tensor({element_type::i32, {2, 1000}}, block.slice(0, 8000))),
      named_tensor("labels", tensor({element_type::i64, {2}}, block.slice(7992, 16)))};
  EXPECT_THAT(error_message([&] { to_device({.into = overlapping}); }),
              HasSubstr("to_device into labels: it overlaps with data"));
  std::vector<named_tensor> adjacent{
      named_tensor("data", tensor({element_type::i32, {2, 1000}}, block.slice(0, 8000))),
      named_tensor("labels", tensor({element_type::i64, {2}}, block.slice(8000, 16)))};
  for (int order = 0; order < 2; ++order) {
    EXPECT_EQ(error_message([&] { to_device({.into = adjacent}); }), "no exception");
    std::ranges::reverse(adjacent);
  }
  std::vector<named_tensor> twice(
      2, named_tensor("data", tensor({element_type::i32, {2, 1000}}, block.slice(0, 8000))));
  EXPECT_THAT(error_message([&] { to_device({.into = twice}); }),
              HasSubstr("to_device into data: two tensors have that name"));
}

TEST(ToDeviceOptions, FixedTensorsAreThoseOfOneStageAtATime) {
  fake_driver driver;
  runtime runtime({.threads = 1});
  stream trainer(device(0));
  device_block block(*std::make_shared<device_memory>(device(0)), 16'000, trainer);
  auto fixed = fixed_data(block);
  std::vector<named_tensor> crossing{
      named_tensor("data", tensor({element_type::i32, {2, 1000}}, block.slice(4000, 8000)))};
  auto first = numbered_batches(20) | to_device({.into = fixed, .name = "train"});
  auto second = numbered_batches(2) | to_device({.into = crossing, .name = "validate"});
  auto refusal_of_second = [&] { return error_message([&] { test::collect(runtime, second); }); };
  const auto refusal = HasSubstr(
      "validate into data: a run or a batch of another stage, train, uses its memory as data");
  {
    auto items = runtime.run(first);
    EXPECT_TRUE(items.wait_next());
    EXPECT_THAT(refusal_of_second(), refusal);
  }
  EXPECT_EQ(refusal_of_second(), "no exception");
  auto kept = test::collect(runtime, first);
  EXPECT_THAT(refusal_of_second(), refusal);
  EXPECT_THAT(test::collect(runtime, first), SizeIs(10));  // the same stage may have them again
  kept.clear();
  EXPECT_EQ(refusal_of_second(), "no exception");
}

TEST(ToDeviceOptions, FixedTensorsMustNotOverlapThoseOfOtherStages) {
  fake_driver driver;
  runtime runtime({.threads = 1});
  stream trainer(device(0));
  device_block block(*std::make_shared<device_memory>(device(0)), 16'000, trainer);
  auto at = [&](std::size_t offset) {
    std::vector<named_tensor> all;
    all.emplace_back("data", tensor({element_type::i32, {2, 1000}}, block.slice(offset, 8000)));
    return all;
  };
  auto low = test::collect(runtime, numbered_batches(2) | to_device({.into = at(0)}));
  auto high = test::collect(runtime, numbered_batches(2) | to_device({.into = at(8000)}));
  for (std::size_t offset : {0u, 8000u})
    EXPECT_THAT(error_message([&] {
                  test::collect(runtime, numbered_batches(2) | to_device({.into = at(offset)}));
                }),
                HasSubstr("a run or a batch of another stage, to_device, uses its memory as data"));
}

static device_batch batch_of(std::vector<named_tensor> tensors) {
  device_block block(*std::make_shared<device_memory>(device(0)), 100, stream(device(0)));
  std::vector<sample> samples{sample("a", 3).with_data(buffer(100))};
  std::vector<device_block> blocks{block};
  return {std::move(tensors), std::move(samples), std::nullopt, std::move(blocks),
          block.home().record()};
}

static tensor device_tensor(const tensor_spec& spec, int gpu = 0) {
  device on(gpu);
  device_block block(*std::make_shared<device_memory>(on), 100, stream(on));
  return {spec, block.slice(0, spec.bytes())};
}

static named_tensor tensor_called(const std::string& name) {
  return {name, device_tensor({element_type::u8, {1, 8}})};
}

TEST(DeviceBatch, FindsTensorsByName) {
  fake_driver driver;
  std::vector<named_tensor> tensors{tensor_called("image"), tensor_called("mask")};
  auto batch = batch_of(tensors);
  EXPECT_EQ(batch.size(), 1u);
  EXPECT_THAT(batch.tensors(), SizeIs(2));
  EXPECT_EQ(batch.tensor().bytes(), tensors[0].tensor().bytes());
  EXPECT_EQ(batch["mask"].bytes(), tensors[1].tensor().bytes());
  EXPECT_EQ(batch.find("mask"), &batch["mask"]);
  EXPECT_EQ(batch.find("depth"), nullptr);
  EXPECT_THAT(error_message([&] { (void)batch["depth"]; }),
              HasSubstr("find tensor depth of a batch: it has image, mask"));
  EXPECT_FALSE(batch.has_labels());
  EXPECT_EQ(code_of([&] { (void)batch.labels(); }), errc::invalid_argument);
}

TEST(DeviceBatch, CountsTensorsAndFields) {
  fake_driver driver;
  EXPECT_EQ(batch_of({tensor_called("image"), tensor_called("mask")}).content_bytes(),
            8u + 8u + 100u);
}

TEST(DeviceBatch, NeedsTensorsOfDifferentNames) {
  fake_driver driver;
  EXPECT_THAT(error_message([] { batch_of({}); }), HasSubstr("it has no tensor"));
  EXPECT_THAT(error_message([] { batch_of({tensor_called("a"), tensor_called("a")}); }),
              HasSubstr("two tensors are called a"));
}

TEST(DeviceBatch, NamesWhatDoesNotBelongToIt) {
  fake_driver driver({.devices = 2});
  auto batch_with = [](const tensor& data, std::optional<tensor> labels = {}, int block_gpu = 0) {
    return error_message([&] {
      device on(block_gpu);
      device_block block(*std::make_shared<device_memory>(on), 100, stream(on));
      device_batch({named_tensor("image", data)}, {sample("a"), sample("b")}, std::move(labels),
                   {block}, event(device(0)));
    });
  };
  auto image = device_tensor({element_type::u8, {2, 8}});
  EXPECT_EQ(batch_with(image), "no exception");
  EXPECT_EQ(batch_with(image, device_tensor({element_type::i64, {2}})), "no exception");
  EXPECT_THAT(batch_with(device_tensor({element_type::u8, {3, 8}})),
              HasSubstr("make a batch of a GPU: tensor image is [3, 8], and there are 2 samples"));
  EXPECT_THAT(batch_with(device_tensor({element_type::u8, {}})), HasSubstr("tensor image is []"));
  EXPECT_THAT(batch_with(tensor(element_type::u8, {2, 8})),
              HasSubstr("tensor image is in cpu, and the event is of cuda:0"));
  EXPECT_THAT(batch_with(device_tensor({element_type::u8, {2, 8}}, 1)),
              HasSubstr("tensor image is in cuda:1, and the event is of cuda:0"));
  EXPECT_THAT(batch_with(image, device_tensor({element_type::i64, {3}})),
              HasSubstr("the labels are i64[3], not i64[2] in one piece"));
  EXPECT_THAT(batch_with(image, device_tensor({element_type::f32, {2}})),
              HasSubstr("the labels are f32[2], not i64[2] in one piece"));
  EXPECT_THAT(batch_with(image, tensor(element_type::i64, {2})),
              HasSubstr("the tensor of the labels is in cpu"));
  EXPECT_THAT(batch_with(image, {}, 1), HasSubstr("a block is in cuda:1"));
  managed_memory managed(device(0));
  EXPECT_EQ(batch_with(tensor({element_type::u8, {2, 8}}, buffer(16, managed))), "no exception");
}

TEST(DeviceBatch, SaysIfAStreamCannotBeOrdered) {
  fake_driver driver;
  stream trainer(device(0));
  auto batch = batch_of({tensor_called("image")});
  driver.fail_next("stream_wait_event", cudaErrorUnknown);
  EXPECT_EQ(code_of([&] { batch.wait_on(trainer); }), cuda_code(cudaErrorUnknown));
  driver.fail_next("event_record", cudaErrorUnknown);
  EXPECT_EQ(code_of([&] { batch.record_on(trainer); }), cuda_code(cudaErrorUnknown));
}

TEST(ToDeviceMemory, IsThatOfTheDeviceOfTheStage) {
  fake_driver driver({.devices = 2});
  {
    runtime runtime({.threads = 2});
    stream trainer(device(1));
    int next = 0;
    for (auto& batch : runtime.run(numbered_batches(10) | to_device({.device = 1}))) {
      EXPECT_EQ(batch.on(), device(1));
      EXPECT_EQ(to_string(batch.tensor().where()), "cuda:1");
      batch.wait_on(trainer);
      current_device current(device(1));
      EXPECT_TRUE(is_numbered(values<std::int32_t>(batch.tensor(), trainer), next));
      next += 2;
    }
  }
  EXPECT_THAT(driver.faults(), IsEmpty());
}

TEST(ToDeviceMemory, OfTheHostMayBeManaged) {
  fake_driver driver;
  auto managed = std::make_shared<managed_memory>(device(0));
  {
    runtime runtime({.threads = 2});
    stream trainer(device(0));
    auto batches = numbered_batches(4) | to_device({.host_memory = managed.get()});
    int next = 0;
    for (auto& batch : runtime.run(batches)) {
      batch.wait_on(trainer);
      EXPECT_TRUE(is_numbered(values<std::int32_t>(batch.tensor(), trainer), next));
      next += 2;
    }
    EXPECT_GT(managed->used_bytes(), 0u);
    EXPECT_EQ(transfers_of(runtime).staged_bytes, 0u);
  }
  EXPECT_THAT(driver.faults(), IsEmpty());
}

}  // namespace lade::cuda::to_device_test
