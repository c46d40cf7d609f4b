#include "../support/pipelines.hpp"

#include <lade/async_generator.hpp>
#include <lade/batch.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/chain.hpp>
#include <lade/channel.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/held.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/route_batches.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sleep.hpp>
#include <lade/tee.hpp>
#include <lade/this_context.hpp>
#include <lade/through.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace lade::demand_paths_test {

using namespace std::chrono_literals;

using buffers = std::vector<buffer>;

static constexpr std::size_t item_bytes = 64 << 10;

static task<buffer> allocate_item(int) { co_return co_await allocate(item_bytes); }

template <class T>
static task<> take_ahead(async_generator<T>& in, channel<held<T>>& ahead) {
  while (auto item = co_await in.next().held()) co_await ahead.push(std::move(*item));
  ahead.close();
}

// Takes its items by a child.
template <class T>
static async_generator<T> work_ahead(async_generator<T> in) {
  channel<held<T>> ahead(2);
  scope children(co_await this_context());
  children.start(take_ahead(in, ahead));
  while (auto item = co_await ahead.pop()) co_yield std::move(*item);
  co_await children.join();
}

// How many items a run with a byte of memory delivers of twenty, each of which needs more, if its
// consumer keeps one while it waits for the next.
template <class Paths>
static std::size_t delivered_by(const Paths& paths) {
  runtime runtime({.threads = 2, .memory_bytes = 1});
  auto items = from(test::up_to(20)) | map(allocate_item, {.concurrency = 2}) | paths;
  std::size_t count = 0;
  for ([[maybe_unused]] auto& each : runtime.run(items)) ++count;
  return count;
}

static std::size_t to_first(const buffer&) { return 0; }

TEST(MemoryOfPaths, OfOneByteIsEnoughForPathsThatTakeTheirItemsByChildren) {
  auto ahead = through(work_ahead<buffer>);
  auto batches = chain(batch(1), route_batches(to_first, through(work_ahead<buffers>), chain()));
  EXPECT_EQ(delivered_by(tee(ahead, chain())), 20u);
  EXPECT_EQ(delivered_by(tee(tee(ahead, chain()), chain())), 20u);
  EXPECT_EQ(delivered_by(tee(chain(), tee(chain(), tee(ahead, chain())))), 20u);
  EXPECT_EQ(delivered_by(batches), 20u);
  EXPECT_EQ(delivered_by(tee(batches, chain())), 20u);
  EXPECT_EQ(delivered_by(tee(chain(ahead, batches), chain())), 20u);
  EXPECT_EQ(delivered_by(tee(tee(ahead, batches), chain())), 20u);
}

// Runs inline with a concurrency of 1.
struct make_item {
  static constexpr std::size_t memory_needed(int) { return item_bytes; }
  buffer operator()(int) const { return allocate_now(item_bytes); }
};

static task<buffer> keep_a_while(buffer item) {
  co_await sleep(1ms);
  co_return item;
}

TEST(MemoryOfPaths, IsExceededByOneItemOrOnePerInputOfInlineStages) {
  auto peak_of = [](const auto& items) {
    runtime runtime({.threads = 2, .memory_bytes = item_bytes});
    auto run = runtime.run(items, {.ready = 1});
    std::size_t delivered = 0;
    while (run.wait_next()) ++delivered;
    EXPECT_GE(delivered, 40u);
    return runtime.memory().stats().peak_bytes / item_bytes;
  };
  auto made = from(test::up_to(40)) | map(make_item(), {.concurrency = 1});
  auto slow = map(keep_a_while, {.concurrency = 1});
  EXPECT_LE(peak_of(made | tee(slow, chain())), 2u);
  auto alone = [](buffer data) -> async_generator<buffer> {
    co_await sleep(1ms);
    co_yield data;
  };
  EXPECT_LE(peak_of(made | flat_map(alone, {.concurrency = 16})), 2u);
  std::vector<pipeline<buffer>> inputs(4, made);
  EXPECT_LE(peak_of(merge(inputs, {.order = merge_order::arrival}) | slow), 5u);
}

// Its first call keeps the memory until the gate opens.
struct call_at_gate {
  test::gate& gate;
  std::atomic<int>& calls;

  static constexpr std::size_t memory_needed(int) { return item_bytes; }
  buffer operator()(int) const {
    ++calls;
    auto data = allocate_now(item_bytes);
    gate.pass();
    return data;
  }
};

TEST(MemoryOfPaths, NoCallStartsWhenAStopEndsTheWaitForMemory) {
  runtime runtime({.threads = 8, .memory_bytes = item_bytes});
  test::gate gate;
  std::atomic<int> calls = 0;
  auto items = from(test::up_to(64)) | map(call_at_gate{gate, calls}, {.concurrency = 8});
  {
    auto run = runtime.run(items);
    gate.wait_for(1);
    test::wait_until([&] { return runtime.memory().stats().waits >= 7; });
    run.stop();
    gate.open();
  }
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(runtime.memory().stats().peak_bytes, item_bytes);
}

}  // namespace lade::demand_paths_test
