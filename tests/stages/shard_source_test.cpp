#include <lade/batch.hpp>
#include <lade/error.hpp>
#include <lade/failure.hpp>
#include <lade/from_shards.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../support/pipelines.hpp"
#include "../support/resume.hpp"

namespace lade::shard_source_test {

using test::collect;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::ThrowsMessage;

// Shards of integers, of which one may end with a failure.
class numbers {
 public:
  explicit numbers(std::vector<std::vector<int>> shards) : shards_(std::move(shards)) {}
  numbers failing(std::uint64_t shard) const {
    auto copy = *this;
    copy.failing_ = shard;
    return copy;
  }
  numbers named(std::string identity) const {
    auto copy = *this;
    copy.identity_ = std::move(identity);
    return copy;
  }

  std::uint64_t size() const { return shards_.size(); }
  std::string name(std::uint64_t i) const { return "shard " + std::to_string(i); }
  std::string identity() const { return identity_; }
  async_generator<int> read(std::uint64_t i) const {
    return items(shards_[i], failing_ == i, *reads_);
  }

  int reads() const { return *reads_; }  // number of shards that all copies have started

 private:
  static async_generator<int> items(std::vector<int> values, bool fails, std::atomic<int>& reads) {
    ++reads;
    for (auto value : values) co_yield value;
    if (fails) throw std::runtime_error("broken");
  }

  std::vector<std::vector<int>> shards_;
  std::string identity_ = "numbers";
  std::optional<std::uint64_t> failing_;
  std::shared_ptr<std::atomic<int>> reads_ = std::make_shared<std::atomic<int>>(0);
};

static numbers four_shards() { return numbers({{0, 1, 2}, {}, {3, 4, 5, 6, 7}, {8, 9}}); }

static std::vector<int> joined(const std::vector<std::vector<int>>& batches) {
  std::vector<int> all;
  for (auto& each : batches) all.insert(all.end(), each.begin(), each.end());
  return all;
}

TEST(ShardSource, ShardsFollowEachOtherForAnyConcurrency) {
  runtime runtime({.threads = 3});
  for (unsigned concurrency : {1u, 2u, 8u})
    EXPECT_THAT(
        collect(runtime, from_shards(four_shards(), {.concurrency = concurrency, .buffer = 2})),
        ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(ShardSource, StatesAreExactBehindAWindowAndBatches) {
  runtime runtime({.threads = 3});
  for (unsigned concurrency : {1u, 3u}) {
    auto make = [&] {
      return from_shards(four_shards(), {.shuffle = true, .seed = 7, .concurrency = concurrency}) |
             shuffle({.seed = 9, .window = 4}) | batch(2);
    };
    auto whole = collect(runtime, make(), {.epoch = 2});
    EXPECT_THAT(joined(whole), SizeIs(10));
    for (std::size_t count : {1u, 2u, 3u, 4u})
      EXPECT_EQ(test::with_interruptions(runtime, make, count, {.epoch = 2}), whole) << count;
  }
}

TEST(ShardSource, RanksReadDifferentShards) {
  runtime runtime({.threads = 2});
  std::vector<int> all;
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    auto own = collect(runtime, from_shards(four_shards(), {.shard = {.rank = rank, .world = 3}}));
    all.insert(all.end(), own.begin(), own.end());
  }
  std::ranges::sort(all);
  EXPECT_THAT(all, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(ShardSource, AResumedRunReadsNoCompleteShard) {
  runtime runtime({.threads = 2});
  auto shards = four_shards();
  auto saved = [&] {
    auto items = runtime.run(from_shards(shards));
    EXPECT_THAT(test::take_some(items, 4), ElementsAre(0, 1, 2, 3));
    return items.state();
  }();
  auto before = shards.reads();
  EXPECT_THAT(collect(runtime, from_shards(shards), {.state = saved}),
              ElementsAre(4, 5, 6, 7, 8, 9));
  EXPECT_EQ(shards.reads() - before, 3);  // an empty shard is not known to be complete
}

TEST(ShardSource, AFailureNamesTheSourceAndTheShard) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 2u})
    EXPECT_THAT(
        [&] {
          collect(runtime, from_shards(four_shards().failing(2),
                                       {.name = "logs", .concurrency = concurrency}));
        },
        ThrowsMessage<error>(AllOf(HasSubstr("logs"), HasSubstr("shard 2"), HasSubstr("broken"))));
}

TEST(ShardSource, AFailedShardIsSkippedBehindItsItems) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 2u})
    EXPECT_THAT(
        collect(runtime, from_shards(four_shards().failing(2),
                                     {.concurrency = concurrency, .on_error = on_error::skip})),
        ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(ShardSource, AStateOfOtherShardsIsRefused) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from_shards(four_shards()));
  items.wait_next();
  auto saved = items.state();
  EXPECT_THROW(collect(runtime, from_shards(four_shards().named("others")), {.state = saved}),
               error);
}

TEST(ShardSource, AStateOfAnotherNumberOfShuffledShardsIsRefused) {
  runtime runtime({.threads = 2});
  auto some = four_shards().named("");
  auto saved = [&] {
    auto items = runtime.run(from_shards(some, {.shuffle = true}));
    items.wait_next();
    return items.state();
  }();
  auto more = numbers({{0, 1, 2}, {}, {3, 4, 5, 6, 7}, {8, 9}, {10}}).named("");
  EXPECT_THAT([&] { collect(runtime, from_shards(more, {.shuffle = true}), {.state = saved}); },
              ThrowsMessage<error>(HasSubstr("4 shards shuffled by 0")));
}

TEST(ShardSource, OptionsOutOfRangeAreRefused) {
  EXPECT_THAT([] { from_shards(four_shards(), {.name = "logs", .concurrency = 0}); },
              ThrowsMessage<error>(AllOf(HasSubstr("logs"), HasSubstr("concurrency"))));
  EXPECT_THAT([] { from_shards(four_shards(), {.name = "logs", .concurrency = automatic}); },
              ThrowsMessage<error>("logs: concurrency is automatic, which is for other stages: set "
                                   "a number"));
  EXPECT_THAT([] { from_shards(four_shards(), {.shard = {.rank = 5, .world = 5}}); },
              ThrowsMessage<error>(HasSubstr("rank 5 of 5 for 4 shards")));
}

}  // namespace lade::shard_source_test
