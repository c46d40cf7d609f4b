#include <lade/channel.hpp>
#include <lade/error.hpp>
#include <lade/pop_batch.hpp>
#include <lade/random.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sleep.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "../support/coroutines.hpp"
#include "../support/pipelines.hpp"
#include "../support/reactors.hpp"

namespace lade::pop_batch_test {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::ThrowsMessage;
using testing_support::code_of;

class PopBatch : public testing_support::ReactorTest {};

INSTANTIATE_TEST_SUITE_P(On, PopBatch,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         testing_support::reactor_name);

static task<> push_range(channel<int>& to, int first, int end) {
  for (int i = first; i < end; ++i) co_await to.push(i);
}

// Pushes each value when a consumer waits for it, and closes the channel when one waits for more.
static task<> push_when_wanted(channel<int>& to, int first, int end, bool close) {
  for (int i = first; i < end; ++i) {
    co_await to.wanted();
    co_await to.push(i);
  }
  if (!close) co_return;
  co_await to.wanted();
  to.close();
}

static task<std::vector<int>> pop_beside(channel<int>& from, std::size_t most,
                                         std::chrono::nanoseconds within, task<> other) {
  scope children(co_await this_context());
  children.start(std::move(other));
  auto batch = co_await pop_batch(from, most, within);
  co_await children.join();
  co_return batch;
}

TEST_P(PopBatch, IsFullWithoutAWaitIfThereIsEnough) {
  runtime runtime(options());
  channel<int> queue(8);
  sync_wait(push_range(queue, 0, 7));
  EXPECT_THAT(sync_wait(runtime, pop_batch(queue, 3, 10h)), ElementsAre(0, 1, 2));
  EXPECT_THAT(sync_wait(runtime, pop_batch(queue, 3, 10h)), ElementsAre(3, 4, 5));
  EXPECT_EQ(queue.size(), 1u);
}

TEST_P(PopBatch, WaitsForValuesThatArriveInTime) {
  runtime runtime(options());
  channel<int> queue(8);
  auto batch = pop_beside(queue, 4, 10h, push_when_wanted(queue, 0, 4, false));
  EXPECT_THAT(sync_wait(runtime, std::move(batch)), ElementsAre(0, 1, 2, 3));
}

TEST_P(PopBatch, ReturnsTheValuesThatArrivedInTime) {
  runtime runtime(options());
  channel<int> queue(8);
  sync_wait(push_range(queue, 0, 2));
  EXPECT_THAT(sync_wait(runtime, pop_batch(queue, 3, 1ms)), ElementsAre(0, 1));
}

TEST_P(PopBatch, WithoutTimeReturnsTheQueuedValues) {
  runtime runtime(options());
  channel<int> queue(8);
  sync_wait(push_range(queue, 0, 2));
  EXPECT_THAT(sync_wait(runtime, pop_batch(queue, 3, 0ns)), ElementsAre(0, 1));
  sync_wait(push_range(queue, 2, 3));
  EXPECT_THAT(sync_wait(runtime, pop_batch(queue, 3, -1h)), ElementsAre(2));
}

// The consumer waits before the first value is made, and is still there for it.
TEST_P(PopBatch, WaitsForItsFirstValueWithoutALimit) {
  runtime runtime(options());
  for (auto within : {0ns, 1ns}) {
    channel<int> queue(8);
    auto batch = pop_beside(queue, 3, within, push_when_wanted(queue, 0, 1, false));
    EXPECT_THAT(sync_wait(runtime, std::move(batch)), ElementsAre(0));
  }
}

TEST_P(PopBatch, EndsWhenTheChannelIsClosed) {
  runtime runtime(options());
  channel<int> queue(8);
  auto batch = pop_beside(queue, 4, 10h, push_when_wanted(queue, 0, 2, true));
  EXPECT_THAT(sync_wait(runtime, std::move(batch)), ElementsAre(0, 1));
  EXPECT_THAT(sync_wait(runtime, pop_batch(queue, 4, 10h)), IsEmpty());
}

TEST_P(PopBatch, DeliversQueuedValuesAfterAClose) {
  runtime runtime(options());
  channel<int> queue(8);
  sync_wait(push_range(queue, 0, 3));
  queue.close();
  EXPECT_THAT(sync_wait(runtime, pop_batch(queue, 2, 10h)), ElementsAre(0, 1));
  EXPECT_THAT(sync_wait(runtime, pop_batch(queue, 2, 10h)), ElementsAre(2));
  EXPECT_THAT(sync_wait(runtime, pop_batch(queue, 2, 10h)), IsEmpty());
}

TEST_P(PopBatch, ResumesProducersOfAFullChannel) {
  runtime runtime(options());
  channel<int> queue(1);
  auto batch = pop_beside(queue, 5, 10h, push_range(queue, 0, 5));
  EXPECT_THAT(sync_wait(runtime, std::move(batch)), ElementsAre(0, 1, 2, 3, 4));
}

static task<> stop_when_wanted(channel<int>& watched, std::stop_source stop) {
  co_await watched.wanted();
  stop.request_stop();
}

TEST_P(PopBatch, AStopEndsIt) {
  runtime runtime(options());
  for (int values : {0, 2}) {
    channel<int> queue(8);
    sync_wait(push_range(queue, 0, values));
    std::stop_source stop;
    auto batch = pop_beside(queue, 3, 10h, stop_when_wanted(queue, stop));
    EXPECT_EQ(code_of([&] { sync_wait(runtime, std::move(batch), stop.get_token()); }),
              errc::stopped);
  }
}

TEST_P(PopBatch, MovesValuesThatCannotBeCopied) {
  runtime runtime(options());
  channel<std::unique_ptr<int>> queue(2);
  auto push = [](channel<std::unique_ptr<int>>& to) -> task<> {
    co_await to.push(std::make_unique<int>(7));
  };
  sync_wait(push(queue));
  auto batch = sync_wait(runtime, pop_batch(queue, 2, 1ns));
  ASSERT_EQ(batch.size(), 1u);
  EXPECT_EQ(*batch[0], 7);
}

TEST(PopBatchOptions, NeedARuntimeAndAtLeastOneValue) {
  runtime runtime({.threads = 1});
  channel<int> queue(2);
  EXPECT_THAT([&] { sync_wait(runtime, pop_batch(queue, 0, 1ms)); },
              ThrowsMessage<error>(testing::HasSubstr("most")));
  sync_wait(push_range(queue, 0, 1));
  EXPECT_EQ(code_of([&] { sync_wait(pop_batch(queue, 2, 1ms)); }), errc::no_runtime);
}

struct popped {
  std::mutex mutex;
  std::vector<int> values;
};

static task<> pop_batches(channel<int>& from, std::uint64_t seed, popped& all) {
  random draw(seed);
  while (true) {
    auto most = 1 + draw.below(8);
    auto batch = co_await pop_batch(from, most, std::chrono::microseconds(draw.below(100)));
    if (batch.empty()) break;
    EXPECT_LE(batch.size(), most);
    std::lock_guard lock(all.mutex);
    all.values.insert(all.values.end(), batch.begin(), batch.end());
  }
}

// Of the times between its values, some are longer than a batch waits.
static task<> push_at_random(channel<int>& to, int first, int end, std::uint64_t seed) {
  random draw(seed);
  for (int i = first; i < end; ++i) {
    co_await sleep(std::chrono::microseconds(draw.below(200)));
    co_await to.push(i);
  }
}

static task<> pop_from_many(channel<int>& queue, std::uint64_t seed, popped& all) {
  scope consumers(co_await this_context());
  for (std::uint64_t i = 0; i < 3; ++i) consumers.start(pop_batches(queue, seed + i, all));
  scope producers(co_await this_context());
  for (int i = 0; i < 4; ++i)
    producers.start(push_at_random(queue, 250 * i, 250 * (i + 1), seed + static_cast<unsigned>(i)));
  co_await producers.join();
  queue.close();
  co_await consumers.join();
}

TEST_P(PopBatch, NoValueIsLostOrRepeatedWhenTimesEnd) {
  runtime runtime(options());
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  channel<int> queue(4);
  popped all;
  sync_wait(runtime, pop_from_many(queue, seed, all));
  EXPECT_EQ(test::sorted(all.values), test::up_to(1000));
}

}  // namespace lade::pop_batch_test
