#include <lade/autotune.hpp>
#include <lade/batch.hpp>
#include <lade/cut.hpp>
#include <lade/description.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/thread_pool.hpp>
#include <lade/through.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lade::batch_test {

using test::collect;
using test::numbers;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

using numbers_list = std::vector<int>;

TEST(Batch, OfALargeSizeTakesMemoryForItsItemsAlone) {
  runtime runtime({.threads = 1});
  auto batches = from_index(5, std::identity()) | batch(1'073'741'824);
  auto all = collect(runtime, batches);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].size(), 5u);
  EXPECT_LE(all[0].capacity(), 65'536u);
}

TEST(Batch, GathersItemsInTheirOrder) {
  runtime runtime({.threads = 2});
  EXPECT_THAT(collect(runtime, from(numbers{5}) | batch(2)),
              ElementsAre(numbers_list{0, 1}, numbers_list{2, 3}, numbers_list{4}));
  EXPECT_THAT(collect(runtime, from(numbers{4}) | batch(4)), ElementsAre(numbers_list{0, 1, 2, 3}));
  EXPECT_TRUE(collect(runtime, from(numbers{0}) | batch(4)).empty());
}

TEST(Batch, MayDropAPartialLastBatch) {
  runtime runtime({.threads = 2});
  EXPECT_THAT(collect(runtime, from(numbers{5}) | batch({.size = 2, .drop_last = true})),
              ElementsAre(numbers_list{0, 1}, numbers_list{2, 3}));
  EXPECT_TRUE(collect(runtime, from(numbers{1}) | batch({.size = 2, .drop_last = true})).empty());
}

TEST(Batch, OfNothingIsRefused) { EXPECT_THROW(batch(0), error); }

TEST(Batch, UnbatchYieldsTheItemsAgain) {
  runtime runtime({.threads = 2});
  EXPECT_THAT(collect(runtime, from(numbers{5}) | batch(2) | unbatch()),
              ElementsAre(0, 1, 2, 3, 4));
}

// Writes the number that a sample's key is, twice, as i32 [2].
class number_writer {
 public:
  explicit number_writer(std::function<void(int, const tensor&)> seen = {})
      : seen_(std::move(seen)) {}
  tensor_spec spec() const { return {element_type::i32, {2}}; }
  void operator()(const sample& in, const tensor& slot) const {
    int number = std::stoi(in.key());
    if (seen_) seen_(number, slot);
    slot.data<std::int32_t>()[0] = slot.data<std::int32_t>()[1] = number;
  }

 private:
  std::function<void(int, const tensor&)> seen_;
};

static pipeline<sample> samples(int count) {
  return from(numbers{count}) |
         map([](int i) { return sample(std::to_string(i), 10 * i).with_data(buffer(64)); },
             {.concurrency = 1});
}

static numbers_list values(const sample_batch& batch) {
  numbers_list all;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    auto* pair = batch.tensor()[static_cast<std::int64_t>(i)].data<std::int32_t>();
    EXPECT_EQ(pair[0], pair[1]);
    all.push_back(pair[0]);
  }
  return all;
}

static numbers_list keys(const sample_batch& batch) {
  numbers_list all;
  for (auto& each : batch.samples()) all.push_back(std::stoi(each.key()));
  return all;
}

TEST(BatchInto, WritesSamplesInOrderIntoTheBatchItself) {
  runtime runtime({.threads = 3});
  std::mutex mutex;
  std::set<const void*> slots;
  number_writer writer([&](int i, const tensor& slot) {
    test::pause(i % 4);
    std::lock_guard lock(mutex);
    slots.insert(slot.bytes());
  });
  int next = 0;
  for (auto& batch : runtime.run(samples(103) | batch_into(writer, {.size = 10}))) {
    ASSERT_EQ(batch.size(), next < 100 ? 10u : 3u);
    EXPECT_EQ(batch.tensor().shape(), (dimensions{static_cast<std::int64_t>(batch.size()), 2}));
    EXPECT_EQ(values(batch), keys(batch));
    auto labels = batch.labels();
    std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < batch.size(); ++i, ++next) {
      auto place = static_cast<std::int64_t>(i);
      EXPECT_EQ(keys(batch)[i], next);
      EXPECT_EQ(labels[place].data<std::int64_t>()[0], 10 * next);
      EXPECT_TRUE(slots.contains(batch.tensor()[place].bytes()));
      EXPECT_FALSE(batch.samples()[i].has_data());
      EXPECT_TRUE(batch.samples()[i].data().empty());
    }
  }
  EXPECT_EQ(next, 103);
}

TEST(BatchInto, ClosesTheGapsOfSkippedSamples) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  runtime runtime({.threads = 3});
  random draw(seed);
  for (int round = 0; round < 60; ++round) {
    auto count = static_cast<int>(draw.below(40));
    auto size = 1 + static_cast<int>(draw.below(6));
    bool drop_last = draw.below(2) == 0;
    auto one_in = 1 + draw.below(4);
    auto bad = [=](int i) { return random(seed, round, i).below(one_in + 1) == 0; };
    number_writer writer([=](int i, const tensor&) {
      if (bad(i)) throw std::runtime_error("bad");
    });
    std::vector<numbers_list> expected;
    for (int begin = 0; begin < count; begin += size) {
      if (drop_last && begin + size > count) break;
      numbers_list kept;
      for (int i = begin; i < std::min(count, begin + size); ++i)
        if (!bad(i)) kept.push_back(i);
      if (!kept.empty()) expected.push_back(kept);
    }
    std::vector<numbers_list> delivered;
    auto made = samples(count) | batch_into(writer, {.size = static_cast<std::size_t>(size),
                                                     .drop_last = drop_last,
                                                     .on_error = on_error::skip});
    for (auto& batch : runtime.run(made)) {
      delivered.push_back(values(batch));
      EXPECT_EQ(keys(batch), delivered.back());
    }
    ASSERT_EQ(delivered, expected) << count << " by " << size << ", drop_last " << drop_last;
  }
}

static async_generator<std::string> origins(async_generator<sample_batch> in) {
  while (co_await in.next()) {
    auto origin = to_string(in.origin());  // a temporary in the co_yield makes GCC 12 lose the loop
    co_yield origin;
  }
}

TEST(BatchInto, EachBatchHasTheLineageOfItsSamplesAndOfThoseSkipped) {
  runtime runtime({.threads = 2});
  number_writer writer([](int i, const tensor&) {
    if (i == 1 || i == 5) throw std::runtime_error("bad");
  });
  auto made =
      samples(8) | batch_into(writer, {.size = 3, .on_error = on_error::skip}) | through(origins);
  EXPECT_THAT(collect(runtime, made), ElementsAre("0-2", "3-5", "6-7"));
}

TEST(BatchInto, ABatchThatIsLostCountsToTheNext) {
  runtime runtime({.threads = 2});
  number_writer writer([](int i, const tensor&) {
    if (i >= 2 && i < 7) throw std::runtime_error("bad");
  });
  auto made =
      samples(9) | batch_into(writer, {.size = 3, .on_error = on_error::skip}) | through(origins);
  EXPECT_THAT(collect(runtime, made), ElementsAre("0-2", "3-8"));
}

TEST(BatchInto, AFailureNamesTheSample) {
  runtime runtime({.threads = 2});
  number_writer writer([](int i, const tensor&) {
    if (i == 7) throw error(errc::invalid_data, "decode", "bits");
  });
  auto items = runtime.run(samples(20) | batch_into(writer, {.size = 4, .name = "decode"}));
  EXPECT_EQ(items.wait_next()->size(), 4u);
  EXPECT_EQ(items.wait_next()->size(), 3u) << "what came before it";
  try {
    items.wait_next();
    ADD_FAILURE();
  } catch (const stage_error& e) {
    EXPECT_EQ(e.stage(), "decode");
    EXPECT_EQ(e.item(), "7");
    EXPECT_EQ(e.code(), errc::invalid_data);
  }
}

TEST(BatchInto, RetriesFailedSamples) {
  runtime runtime({.threads = 2});
  std::atomic<int> calls = 0;
  number_writer second_time([&](int, const tensor&) {
    if (++calls % 2) throw std::runtime_error("not yet");
  });
  batch_into_options patient{.size = 3, .concurrency = 1, .retry = {.attempts = 2, .pause = {}}};
  auto batches = collect(runtime, samples(3) | batch_into(second_time, patient));
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_THAT(values(batches[0]), ElementsAre(0, 1, 2));
  EXPECT_EQ(calls, 6);
}

TEST(BatchInto, SkipsSamplesThatTakeTooLong) {
  runtime runtime({.threads = 2});
  number_writer slow([](int i, const tensor&) {
    if (i != 1) test::outlast_a_microsecond();
  });
  batch_into_options late{.size = 3, .on_error = on_error::skip};
  late.timeout = std::chrono::microseconds(1);
  auto items = runtime.run(samples(3) | batch_into(slow, late));
  for (auto& batch : collect(items)) EXPECT_THAT(values(batch), ElementsAre(1));
  EXPECT_GE(items.failures().size(), 2u);
  EXPECT_THAT(items.failures()[0].what, HasSubstr("wait for the stage's function"));
  late.timeout = std::chrono::hours(1);
  EXPECT_THAT(values(collect(runtime, samples(3) | batch_into(slow, late)).at(0)),
              ElementsAre(0, 1, 2));
}

TEST(BatchInto, DoesNotRetryAfterTheDeadline) {
  runtime runtime({.threads = 2});
  std::atomic<int> calls = 0;
  number_writer slow([&](int, const tensor&) {
    ++calls;
    test::outlast_a_microsecond();
    throw std::runtime_error("not yet");
  });
  batch_into_options late{
      .size = 3, .retry = {.attempts = 5, .pause = {}}, .on_error = on_error::skip};
  late.deadline = std::chrono::microseconds(1);
  EXPECT_THAT(collect(runtime, samples(3) | batch_into(slow, late)), IsEmpty());
  EXPECT_EQ(calls, 3);
  late.deadline = std::chrono::hours(1);
  EXPECT_THAT(collect(runtime, samples(3) | batch_into(slow, late)), IsEmpty());
  EXPECT_EQ(calls, 3 + 3 * 5);
}

TEST(BatchInto, WritesOnADedicatedPool) {
  runtime runtime({.threads = 2});
  thread_pool own({.threads = 1});
  number_writer there([&](int, const tensor&) { EXPECT_EQ(detail::this_executor, &own); });
  auto items = runtime.run(samples(5) | batch_into(there, {.size = 2, .pool = &own}));
  EXPECT_EQ(collect(items).size(), 3u);
  EXPECT_EQ(items.statistics().stages.back().own_threads, 1u);
}

TEST(BatchInto, TakesExactlyItsCapacityWhenItsWritersBlock) {
  runtime runtime({.threads = 6});
  auto make = [](int i) { return sample(std::to_string(i)); };
  std::optional<std::size_t> buffers[] = {{}, 0u, 1u, 9u};
  for (auto buffer : buffers) {
    std::atomic<int> taken = 0;
    test::gate gate;
    number_writer blocked([&](int, const tensor&) { gate.pass(); });
    auto items =
        runtime.run(from([&] { return test::counted(taken); }) | map(make, {.concurrency = 1}) |
                    batch_into(blocked, {.size = 4, .concurrency = 3, .buffer = buffer}));
    auto room = static_cast<int>(3 + buffer.value_or(4));
    test::wait_until([&] { return taken == room; });
    gate.wait_for(3);
    test::pause(20);
    EXPECT_EQ(taken, room);
    gate.open();
  }
}

TEST(BatchInto, SharesTheCpusOfAutomaticStages) {
  runtime runtime({.threads = 4});
  test::occupancy inside;
  auto look = [&](sample in) {
    inside.enter();
    test::pause(3);
    inside.leave();
    return in;
  };
  number_writer writer([&](int, const tensor&) {
    inside.enter();
    test::pause(3);
    inside.leave();
  });
  auto made = samples(2000) | map(look, {.concurrency = automatic, .name = "look"}) |
              batch_into(writer, {.size = 10, .concurrency = automatic, .name = "write"});
  auto items = runtime.run(made, {.tune = {.cpus = 2}});
  EXPECT_EQ(collect(items).size(), 200u);
  EXPECT_LE(inside.most(), 2);
  EXPECT_EQ(to_code(items.settings()),
            "look: {.concurrency = 2, .buffer = 2}\nwrite: {.concurrency = 2, .buffer = 10}\n");
  EXPECT_EQ(items.statistics().stages.back().shared_threads, 2u);
}

TEST(BatchInto, EndsWithMoreFailuresThanItsBudget) {
  runtime runtime({.threads = 1});
  number_writer refuse([](int, const tensor&) { throw std::runtime_error("bad"); });
  batch_into_options bounded{.size = 2, .on_error = on_error::skip, .error_budget = {.count = 3}};
  bounded.name = "write";
  EXPECT_THAT([&] { collect(runtime, samples(9) | batch_into(refuse, bounded)); },
              ThrowsMessage<stage_error>("write (3): bad (more failures than the budget allows)"));
  EXPECT_THAT(collect(runtime, samples(3) | batch_into(refuse, bounded)), IsEmpty());
}

TEST(BatchInto, LeavingTheLoopReturnsEveryBuffer) {
  runtime runtime({.threads = 2});
  auto made = samples(-1) | batch_into(number_writer(), {.size = 16}) | prefetch(2);
  for (int last = 0; last < 20; ++last) {
    int count = 0;
    for (auto& batch : runtime.run(made)) {
      EXPECT_EQ(batch.size(), 16u);
      if (count++ == last) break;
    }
  }
}

TEST(BatchInto, IsDescribed) {
  batch_into_options options{.size = 4, .concurrency = 3, .buffer = 5};
  options.retry.attempts = 2;
  auto batches = samples(9) | batch_into(number_writer(), options);
  EXPECT_THAT(to_string(batches.describe()),
              HasSubstr("on the CPU pool, size 4, concurrency 3, buffer 5, attempts 2\n"));
  // The slots, and the batch that is collected. Its last sample still has a slot.
  EXPECT_EQ(batches.describe().stages.back().held_items, 3 + 5 + 4 - 1u);
  auto automatic_one = samples(9) | batch_into(number_writer(), {.concurrency = automatic});
  EXPECT_EQ(automatic_one.describe().stages.back().held_items, std::nullopt);
}

}  // namespace lade::batch_test
