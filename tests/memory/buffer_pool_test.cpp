#include <lade/buffer_pool.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/sleep.hpp>
#include <lade/stop_requested.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "../support/coroutines.hpp"
#include "../support/failing_new.hpp"
#include "../support/seed.hpp"

namespace lade::buffer_pool_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

static std::uintptr_t address(const buffer& b) {
  return reinterpret_cast<std::uintptr_t>(b.data());
}

TEST(BufferPool, KeepsABlockIfItsBufferCannotBeMade) {
  if (!test::allocations_can_fail) GTEST_SKIP() << "the operator new of TSan does not fail";
  buffer_pool pool;
  (void)pool.try_allocate(1000);
  {
    test::failing_allocation next(0);
    EXPECT_THROW((void)pool.try_allocate(1000), std::bad_alloc);
  }
  {
    test::failing_allocation next(0);
    EXPECT_THROW((void)pool.allocate_now(1000), std::bad_alloc);
  }
  EXPECT_EQ(pool.stats().used_bytes, 0u);
  EXPECT_GT(pool.stats().kept_bytes, 0u);
}

TEST(BufferPool, ReusesTheSameMemory) {
  buffer_pool pool;
  auto first = address(*pool.try_allocate(110'000));
  EXPECT_EQ(address(*pool.try_allocate(112'000)), first);
}

TEST(BufferPool, BlocksAreAlignedAndWasteAtMostAnEighth) {
  for (std::size_t bytes = 1; bytes < (std::size_t{64} << 20); bytes += 1 + bytes / 7) {
    buffer_pool pool;
    auto got = *pool.try_allocate(bytes);
    EXPECT_EQ(got.size(), bytes);
    EXPECT_EQ(address(got) % (bytes > 4096 ? 4096 : 64), 0u) << bytes;
    auto charged = pool.stats().used_bytes;
    EXPECT_GE(charged, bytes);
    EXPECT_LE(charged - bytes, std::max(bytes / 8, std::size_t{bytes > 4096 ? 4095u : 63u}))
        << bytes;
    got.data()[bytes - 1] = std::byte{1};
  }
}

TEST(BufferPool, NoBytesCostNothing) {
  buffer_pool pool(0);
  EXPECT_TRUE(pool.try_allocate(0)->empty());
  EXPECT_EQ(pool.stats().used_bytes, 0u);
}

TEST(BufferPool, AnAbsurdSizeIsRefused) {
  buffer_pool pool;
  auto refusal =
      testing::ThrowsMessage<error>("allocate 18446744073709551615 bytes: Cannot allocate memory");
  constexpr auto absurd = std::numeric_limits<std::size_t>::max();
  EXPECT_THAT([&] { pool.try_allocate(absurd); }, refusal);
  EXPECT_EQ(pool.stats().used_bytes, 0u);
}

TEST(BufferPool, CountsUsedBytes) {
  buffer_pool pool(10'240);
  auto first = pool.try_allocate(4096);
  auto second = pool.try_allocate(4096);
  EXPECT_EQ(pool.stats().used_bytes, 8192u);
  EXPECT_FALSE(pool.try_allocate(4096));
  first.reset();
  EXPECT_TRUE(pool.try_allocate(4096));
  second.reset();
  auto stats = pool.stats();
  EXPECT_EQ(stats.used_bytes, 0u);
  EXPECT_EQ(stats.peak_bytes, 8192u);
  EXPECT_EQ(stats.kept_bytes, 8192u);
}

TEST(BufferPool, UsedAndKeptBytesStayWithinTheLimit) {
  buffer_pool pool(1 << 20);
  { auto all = pool.try_allocate(1 << 20); }
  auto other = pool.try_allocate(4096);
  EXPECT_EQ(pool.stats().kept_bytes, 0u);
}

TEST(BufferPool, MoreThanTheLimitIsGrantedAlone) {
  buffer_pool pool(1000);
  auto small = pool.try_allocate(64);
  EXPECT_FALSE(pool.try_allocate(5000));
  small.reset();
  auto large = pool.try_allocate(5000);
  EXPECT_TRUE(large);
  EXPECT_FALSE(pool.try_allocate(64));
}

TEST(BufferPool, WouldWaitPredictsWhetherAnAllocationWaits) {
  buffer_pool pool(4096);
  EXPECT_FALSE(pool.would_wait(5000));  // alone
  EXPECT_FALSE(pool.would_wait(2048, 2));
  EXPECT_TRUE(pool.would_wait(2048, 3));
  auto some = pool.allocate_now(2048);
  EXPECT_FALSE(pool.would_wait(2048));
  EXPECT_TRUE(pool.would_wait(2048, 2));
  EXPECT_TRUE(pool.would_wait(5000));
  EXPECT_FALSE(pool.would_wait(5000, 0));
}

TEST(BufferPool, BuffersMayOutliveThePool) {
  std::optional<buffer_pool> pool(std::in_place, 4096);
  auto survivor = *pool->try_allocate(4096);
  pool.reset();
  std::memset(survivor.data(), 1, survivor.size());
}

static task<> allocate_and_note(buffer_pool& pool, std::size_t bytes, int number,
                                std::vector<int>& order) {
  auto got = co_await pool.allocate(bytes);
  order.push_back(number);
}

TEST(BufferPool, ServesWaitersInOrder) {
  runtime runtime({.threads = 1});
  buffer_pool pool(4096);
  auto all = pool.try_allocate(4096);
  std::vector<int> order;
  {
    std::vector<std::jthread> waiting;
    // The second would fit before the first does, but waits for its turn.
    const std::array<std::size_t, 3> sizes{4096, 64, 2048};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      waiting.emplace_back([&, i] {
        sync_wait(runtime, allocate_and_note(pool, sizes[i], static_cast<int>(i), order));
      });
      while (pool.stats().waits < i + 1) std::this_thread::yield();
    }
    EXPECT_FALSE(pool.try_allocate(64));
    all.reset();
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
  EXPECT_EQ(pool.stats().used_bytes, 0u);
}

TEST(BufferPool, AStoppedWaiterUnblocksOthers) {
  runtime runtime({.threads = 1});
  buffer_pool pool(4096);
  auto half = pool.try_allocate(2048);
  std::stop_source stop;
  std::jthread large([&] {
    EXPECT_THAT([&] { sync_wait(runtime, pool.allocate(4096), stop.get_token()); },
                ThrowsMessage<error>(HasSubstr("allocate 4096 bytes: stopped")));
  });
  while (pool.stats().waits < 1) std::this_thread::yield();
  std::jthread small([&] { sync_wait(runtime, pool.allocate(1024)); });
  while (pool.stats().waits < 2) std::this_thread::yield();
  stop.request_stop();
  small.join();
}

TEST(BufferPool, AWaiterNeedsNoRuntime) {
  buffer_pool pool(64);
  auto all = pool.try_allocate(64);
  std::jthread waiting([&] { EXPECT_EQ(sync_wait(pool.allocate(10)).size(), 10u); });
  while (pool.stats().waits < 1) std::this_thread::yield();
  all.reset();
}

static task<> churn(buffer_pool& pool, std::uint64_t seed, std::atomic<bool>& wrong) {
  std::mt19937 random(seed);
  for (int i = 0; i < 500; ++i) {
    auto bytes = 1 + random() % (std::size_t{1} << (random() % 17));
    auto got = co_await pool.allocate(bytes);
    std::memset(got.data(), static_cast<int>(seed), got.size());
    co_await sleep(std::chrono::microseconds(1));  // while others wait for memory
    if (pool.stats().used_bytes > pool.stats().limit_bytes) wrong = true;
    if (got.data()[bytes / 2] != static_cast<std::byte>(seed)) wrong = true;
  }
}

TEST(BufferPool, ManyThreadsShareItWithinTheLimit) {
  runtime runtime({.threads = 4});
  buffer_pool pool(100'000);
  std::atomic<bool> wrong = false;
  auto seed = test::new_seed();
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < 8; ++i)
      threads.emplace_back([&, i] { sync_wait(runtime, churn(pool, seed + i, wrong)); });
  }
  EXPECT_FALSE(wrong) << "seed " << seed;
  EXPECT_EQ(pool.stats().used_bytes, 0u);
  EXPECT_LE(pool.stats().peak_bytes, 100'000u);
  EXPECT_GT(pool.stats().waits, 0u);
}

TEST(BufferPool, AStopMayRaceTheReturnOfMemory) {
  runtime runtime({.threads = 2});
  buffer_pool pool(64);
  for (int i = 0; i < 2'000; ++i) {
    auto all = pool.try_allocate(64);
    std::stop_source stop;
    std::jthread stopper([&, before = pool.stats().waits] {
      while (pool.stats().waits == before) std::this_thread::yield();
      stop.request_stop();
    });
    std::jthread giver([&, before = pool.stats().waits] {
      while (pool.stats().waits == before) std::this_thread::yield();
      all.reset();
    });
    try {
      sync_wait(runtime, pool.allocate(64), stop.get_token());
    } catch (const error& stopped) {
      EXPECT_EQ(stopped.code(), errc::stopped);
    }
  }
  EXPECT_EQ(pool.stats().used_bytes, 0u);
}

TEST(BufferPool, AllocatesFromTheMemoryOfTheContext) {
  context execution;
  EXPECT_EQ(allocate_now(execution, 100).size(), 100u);
  buffer_pool pool;
  execution.memory = &pool;
  auto got = allocate_now(execution, 100);
  EXPECT_EQ(pool.stats().used_bytes, 128u);
}

TEST(CallMemory, AllocationsBetweenTwoItemsCountAsThoseOfOneItem) {
  constexpr std::size_t bytes = 4'096;
  buffer_pool pool;
  detail::stage_counters counters("stage");
  detail::call_memory memory(pool, counters, {});
  std::vector<buffer> held;
  detail::call_memory::entered inside(memory);
  held.push_back(allocate_now(bytes));
  memory.end_item(0);
  EXPECT_EQ(counters.most_at_once, bytes);
  for (int i = 0; i < 3; ++i) held.push_back(allocate_now(bytes));
  memory.end_item(0);
  EXPECT_EQ(counters.most_at_once, 3 * bytes);
  held.push_back(allocate_now(bytes));
  memory.end_item(0);
  EXPECT_EQ(counters.most_at_once, 3 * bytes);
}

// The stage and the memory of a coroutine of a run.
class PlainCall : public testing::Test {
 protected:
  buffer_pool pool{1 << 20};
  detail::stage_counters counters{"stage"};
  std::stop_source source;
  context here{.stop = source.get_token(), .memory = &pool, .stage = &counters};
};

TEST_F(PlainCall, AllocatesFromTheMemoryOfTheCoroutineFirstFromWhatItReserved) {
  auto reserved = sync_wait(testing_support::in(here, charge(8'192)));
  EXPECT_EQ(pool.stats().used_bytes, 8'192u);
  {
    plain_call call(here, std::move(reserved));
    auto got = allocate_now(4'096);
    EXPECT_EQ(pool.stats().used_bytes, 8'192u);
    EXPECT_EQ(counters.allocated, 4'096u);
    EXPECT_EQ(pool_of_call()->stats().limit_bytes, std::size_t{1} << 20);
  }
  EXPECT_EQ(pool.stats().used_bytes, 0u);
  EXPECT_EQ(allocate_now(4'096).size(), 4'096u);  // fresh memory
  EXPECT_EQ(pool.stats().used_bytes, 0u);
  EXPECT_FALSE(pool_of_call());
}

TEST_F(PlainCall, SeesTheStopOfTheCoroutine) {
  plain_call call(here);
  EXPECT_FALSE(stop_requested());
  source.request_stop();
  EXPECT_TRUE(stop_requested());
}

TEST_F(PlainCall, DoesNothingOutsideARun) {
  here.stage = nullptr;
  plain_call call(here);
  EXPECT_FALSE(pool_of_call());
}

TEST_F(PlainCall, MayBeMadeWithinAnother) {
  plain_call outer(here);
  context none;
  {
    plain_call inner(none);
    EXPECT_TRUE(pool_of_call());
  }
  EXPECT_TRUE(pool_of_call());
}

TEST(WaitsForMemory, IsFalseOutsideARun) {
  context outside;
  EXPECT_FALSE(waits_for_memory(outside));
  EXPECT_TRUE(never_waits_for_memory(outside));
}

TEST(WaitsForMemory, IsTheWaitOfTheContextUnlessTheRunWaitsForItsItem) {
  auto wanted = std::make_shared<detail::demand>();
  detail::memory_claim claim(wanted);
  context here{.claim = &claim};
  EXPECT_FALSE(never_waits_for_memory(here));
  wanted->await(detail::demand::next);
  EXPECT_TRUE(never_waits_for_memory(here));
  detail::stopwatch waiting(claim.waited);
  EXPECT_TRUE(waits_for_memory(here));
}

}  // namespace lade::buffer_pool_test
