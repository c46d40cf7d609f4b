// Global batches: for one global batch size the same, and in the same order, on any number of
// ranks.

#include <lade/batch.hpp>
#include <lade/cache.hpp>
#include <lade/cut.hpp>
#include <lade/draw.hpp>
#include <lade/elastic.hpp>
#include <lade/error.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/run.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>
#include <lade/through.hpp>
#include <lade/window.hpp>

#include "../support/pipelines.hpp"
#include "../support/resume.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace lade::elastic_test {

using namespace test;
using testing::HasSubstr;
using testing::ThrowsMessage;

using ints = std::vector<int>;
using item = std::uint64_t;  // the number of an item, and random bits that a stage has drawn for it
using batches = std::vector<std::vector<item>>;

static item with_random_bits(int number, random draw) {
  return static_cast<item>(number) << 32 | draw.below(item{1} << 32);
}

// Whether the number is the same. The random bits of a repeated item are others.
static bool is_same(item a, item b) { return a >> 32 == b >> 32; }

static int sum_of(const std::tuple<int, int>& pair) {
  return 1000 * std::get<0>(pair) + std::get<1>(pair);
}

static pipeline<int> any_list(random& draw) {
  auto list = from(up_to(static_cast<int>(draw.below(120))));
  if (draw.below(3) == 0) list = list | skip(draw.below(20)) | take(draw.below(100));
  if (draw.below(4) == 0)
    return from(ints{3, 1, 4}) |
           lade::draw({.weights = {2, 1, 5}, .count = draw.below(150), .seed = draw()});
  if (draw.below(4) > 0) list = list | shuffle({.seed = draw()});
  if (draw.below(4) == 0)
    list = from(up_to(30)) | shuffle({.seed = draw()}) | repeat(draw.below(5));
  return list;
}

static pipeline<int> list_as_long_as(const pipeline<int>& other, random& draw) {
  return from(up_to(static_cast<int>(other.size().value()))) | shuffle({.seed = draw()});
}

// The epoch of a training, whose ranks are as many as its global batch can be divided by.
struct training {
  std::vector<pipeline<int>> lists;  // one, or two that are zipped
  std::size_t global_batch;
  lade::remainder remainder;
  bool drop_last;
  run_options options;

  explicit training(random& draw) {
    for (auto count = 1 + draw.below(2); count > 0; --count) lists.push_back(any_list(draw));
    constexpr std::size_t sizes[] = {1, 4, 6, 12, 30};
    global_batch = sizes[draw.below(5)];
    constexpr lade::remainder all[] = {remainder::drop, remainder::pad, remainder::wrap,
                                       remainder::keep};
    remainder = all[draw.below(4)];
    if (lists.size() > 1 && repeats_items()) lists[1] = list_as_long_as(lists[0], draw);
    drop_last = remainder == remainder::drop;
    options = {.epoch = draw.below(3), .seed = draw()};
  }

  bool repeats_items() const { return remainder == remainder::pad || remainder == remainder::wrap; }

  pipeline<item> items(const shard_options& rank, random& draw) const {
    auto all = lists[0] | shard(rank);
    if (lists.size() > 1) all = zip(all, lists[1] | shard(rank)) | map(sum_of, {.concurrency = 1});
    return all | map(with_random_bits, {.concurrency = static_cast<unsigned>(1 + draw.below(5))});
  }

  pipeline<std::vector<item>> batches_of(std::uint64_t rank, std::uint64_t world,
                                         random& draw) const {
    shard_options part{.rank = rank, .world = world, .remainder = remainder};
    auto all = items(part, draw) |
               batch({.size = batch_size_of_rank(global_batch, part), .drop_last = drop_last});
    require_elastic(all.describe());
    return all;
  }

  std::uint64_t any_world(random& draw) const {
    std::uint64_t world = 0;
    do world = 1 + draw.below(global_batch);
    while (global_batch % world > 0);
    return world;
  }
};

// The batch that all ranks make together in a step, in the order of the epoch. Those that are
// padded have more items than the epoch has left.
static std::vector<item> global_batch_of(const std::vector<batches>& ranks, std::size_t step) {
  std::vector<item> all;
  for (std::size_t j = 0, before = all.size() + 1; before != all.size(); ++j) {
    before = all.size();
    for (auto& rank : ranks)
      if (step < rank.size() && j < rank[step].size()) all.push_back(rank[step][j]);
  }
  return all;
}

// One run of each rank for so many steps, from `merged` on, which is then the state behind them.
static std::vector<batches> run_ranks(const training& what, std::size_t steps,
                                      std::optional<state>& merged, random& draw) {
  runtime where({.threads = static_cast<unsigned>(1 + draw.below(3))});
  std::vector<batches> ranks;
  std::vector<state> states;
  auto options = what.options;
  options.state = merged;
  const auto world = what.any_world(draw);
  for (std::uint64_t rank = 0; rank < world; ++rank) {
    auto items = where.run(what.batches_of(rank, world, draw), options);
    ranks.push_back(take_some(items, steps));
    states.push_back(state_from_json(to_json(items.state())));
  }
  merged = merge(states);
  return ranks;
}

static std::vector<item> whole_epoch(const training& what, random& draw) {
  runtime where({.threads = 1});
  auto all = collect(where, what.items({}, draw), what.options);
  if (what.drop_last) all.resize(all.size() - all.size() % what.global_batch);
  return all;
}

TEST(Elastic, GlobalBatchesAreTheSameWithAnyNumbersOfRanksAlsoBehindResumes) {
  auto seed = new_seed();
  random draw(seed);
  for (int i = 0; i < 80; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", training " + std::to_string(i));
    training what(draw);
    auto whole = whole_epoch(what, draw);
    std::optional<state> merged;
    std::size_t begin = 0;
    for (bool is_over = false; !is_over;) {
      auto steps = 1 + draw.below(8);
      auto ranks = run_ranks(what, steps, merged, draw);
      for (std::size_t step = 0; step < steps; ++step) {
        auto made = global_batch_of(ranks, step);
        auto end = std::min(begin + what.global_batch, whole.size());
        std::vector<item> expected(whole.begin() + static_cast<std::ptrdiff_t>(begin),
                                   whole.begin() + static_cast<std::ptrdiff_t>(end));
        ASSERT_GE(made.size(), expected.size());
        ASSERT_LT(made.size(), expected.size() + (what.repeats_items() ? ranks.size() : 1));
        for (auto each = made.begin() + static_cast<std::ptrdiff_t>(expected.size());
             each != made.end(); ++each)
          ASSERT_TRUE(std::ranges::any_of(whole, [each](item one) { return is_same(one, *each); }));
        made.resize(expected.size());
        ASSERT_EQ(made, expected);
        begin = end;
        is_over = expected.empty();
      }
    }
  }
}

TEST(Elastic, BatchSizeOfARankDividesTheGlobalBatch) {
  EXPECT_EQ(batch_size_of_rank(1024, {.rank = 3, .world = 8}), 128u);
  EXPECT_EQ(batch_size_of_rank(7, {}), 7u);
  EXPECT_THAT([] { batch_size_of_rank(1024, {.rank = 0, .world = 3}); },
              ThrowsMessage<error>("divide a global batch: 3 ranks do not divide a batch of 1024"));
  EXPECT_THAT([] { batch_size_of_rank(8, {.rank = 5, .world = 2}); },
              ThrowsMessage<error>(HasSubstr("rank is 5; it must be less than world, 2")));
  EXPECT_THAT([] { batch_size_of_rank(1024, {.rank = 0, .world = 0}); },
              ThrowsMessage<error>("divide a global batch: 0 ranks do not divide a batch of 1024"));
}

static const shard_options uneven{.rank = 0, .world = 2, .remainder = remainder::keep};

static bool is_not_third(int i) { return i % 3 != 1; }
static ints two_of(int i) { return {i, i}; }
static async_generator<int> passed_on(async_generator<int> in) {
  while (auto* each = co_await in.next()) co_yield *each;
}

template <class T>
static auto requiring(const pipeline<T>& of_rank) {
  return [of_rank] { require_elastic(of_rank.describe()); };
}

TEST(Elastic, RefusesStagesForWhichGlobalBatchesDependOnTheRanks) {
  auto list = from(up_to(50));
  auto mine = list | shuffle() | shard(uneven);
  auto says = [](const char* why) { return ThrowsMessage<error>(HasSubstr(why)); };
  EXPECT_THAT(requiring(list | shard(uneven) | shuffle() | batch(4)),
              says("require_elastic: source: shard is not the last step of the source"));
  EXPECT_THAT(requiring(mine | map(is_not_third, {.concurrency = 2}) | shuffle() | batch(4)),
              says("require_elastic: shuffle: it orders the items of each rank by itself"));
  EXPECT_THAT(requiring(merge(std::vector{mine, mine}) | batch(4)),
              says("require_elastic: merge: it orders the items of each rank by itself"));
  EXPECT_THAT(requiring(mine | filter(is_not_third) | batch(4)),
              says("require_elastic: filter: it may drop items"));
  EXPECT_THAT(requiring(mine | flat_map(two_of) | batch(4)),
              says("require_elastic: flat_map: it may yield other numbers"));
  EXPECT_THAT(
      requiring(mine | map(is_not_third, {.concurrency = 2, .order = item_order::completion}) |
                batch(4)),
      says("require_elastic: map: it yields items as they finish"));
  EXPECT_THAT(requiring(mine | through(passed_on, {.name = "mine"}) | batch(4)),
              says("require_elastic: mine: it is a coroutine"));
  EXPECT_THAT(requiring(mine | window(4) | batch(4)),
              says("require_elastic: window: its groups depend on what is in the items"));
  EXPECT_THAT(requiring(mine | cache() | batch(4)),
              says("require_elastic: cache: a run with a cache has no state"));
  EXPECT_THAT(requiring(mine | shard(uneven) | batch(4)),
              says("require_elastic: source: it is sharded twice"));
  EXPECT_THAT(requiring(zip(mine, list) | batch(4)),
              says("require_elastic: its sources are sharded differently"));
  EXPECT_NO_THROW(requiring(zip(mine, list | shard(uneven)) | batch(4))());
  EXPECT_THAT(requiring(from(numbers{50}) | shard(uneven) | batch(4)),
              says("require_elastic: shard: it counts the items of a stage"));
}

// Of lists of 10 and 7 items, rank 3 of 4 would get the rows 3 and (7, 6).
TEST(Elastic, RefusesAZipThatPairsRepeatedItemsWithOthers) {
  auto pair = [](std::uint64_t world, remainder what) {
    shard_options rank{.rank = 0, .world = world, .remainder = what};
    return zip(from(up_to(10)) | shard(rank), from(up_to(7)) | shard(rank)) | batch(4);
  };
  auto refused = ThrowsMessage<error>(HasSubstr("its sources have different or unknown numbers"));
  EXPECT_THAT(requiring(pair(4, remainder::pad)), refused);
  EXPECT_THAT(requiring(pair(4, remainder::wrap)), refused);
  EXPECT_NO_THROW(requiring(pair(4, remainder::keep))());
  EXPECT_NO_THROW(requiring(pair(1, remainder::pad))());
  shard_options rank{.rank = 0, .world = 4, .remainder = remainder::wrap};
  auto list = from(up_to(10));
  EXPECT_NO_THROW(requiring(zip(list | shard(rank), list | shuffle() | shard(rank)) | batch(4))());
  EXPECT_THAT(requiring(zip(list | shard(rank), list | take(9) | shard(rank)) | batch(4)), refused);
  auto unknown = from([] { return up_to(10); });
  EXPECT_THAT(requiring(zip(unknown | shard(rank), unknown | shard(rank)) | batch(4)), refused);
  auto kept = list | shard({.rank = 0, .world = 4, .remainder = remainder::keep});
  EXPECT_THAT(requiring(zip(list | shard(rank), kept) | batch(4)),
              ThrowsMessage<error>(HasSubstr("its sources are sharded differently")));
}

TEST(Elastic, RefusesPipelinesWithoutBatchesAndBatchesThatEndInDifferentWays) {
  auto mine = from(up_to(22)) | shard(uneven);
  EXPECT_THAT(requiring(mine), ThrowsMessage<error>(HasSubstr("it has no batch")));
  EXPECT_THAT(requiring(mine | batch(4) | batch({.size = 3, .drop_last = true})),
              ThrowsMessage<error>(HasSubstr("some of its batches drop an incomplete last one")));
  EXPECT_NO_THROW(requiring(mine | batch(4) | batch(3))());
}

TEST(Elastic, RefusesLastBatchesThatDependOnTheRanks) {
  auto list = from(up_to(50)) | shuffle();
  shard_options even{.rank = 0, .world = 2};
  EXPECT_NO_THROW(requiring(list | shard(uneven) | batch(4))());
  EXPECT_NO_THROW(requiring(list | shard(even) | batch({.size = 4, .drop_last = true}))());
  EXPECT_THAT(requiring(list | shard(even) | batch(4)),
              ThrowsMessage<error>(HasSubstr("remainder::drop drops different items")));
  EXPECT_THAT(requiring(list | shard(uneven) | batch({.size = 4, .drop_last = true})),
              ThrowsMessage<error>(HasSubstr("a last batch may be full on some ranks only")));
}

// The steps of all ranks together, sorted.
static std::vector<ints> steps_with(
    std::uint64_t world, const std::function<pipeline<ints>(shard_options)>& batches_of) {
  runtime where({.threads = 1});
  std::vector<ints> steps;
  for (std::uint64_t rank = 0; rank < world; ++rank) {
    auto mine = collect(where, batches_of({rank, world, remainder::keep}));
    steps.resize(std::max(steps.size(), mine.size()));
    for (std::size_t i = 0; i < mine.size(); ++i)
      steps[i].insert(steps[i].end(), mine[i].begin(), mine[i].end());
  }
  for (auto& each : steps) std::ranges::sort(each);
  return steps;
}

TEST(Elastic, WhatIsRefusedHasOtherGlobalBatchesOnOtherRanks) {
  auto list = from(up_to(47));
  auto first = [&](shard_options rank) {
    return list | shard(rank) | shuffle() | batch(12 / rank.world);
  };
  auto dropping = [&](shard_options rank) {
    return list | shard(rank) | filter(is_not_third) | batch(12 / rank.world);
  };
  auto full_only = [&](shard_options rank) {
    return list | shard(rank) | batch({.size = 16 / rank.world, .drop_last = true});
  };
  auto left_out = [&](shard_options rank) {
    rank.remainder = remainder::drop;
    return list | shard(rank) | batch(12 / rank.world);
  };
  auto twice = [&](shard_options rank) {
    return list | shard(rank) | shard(rank) | batch(12 / rank.world);
  };
  auto unlike = [&](shard_options rank) {
    auto sum = [](const std::tuple<int, int>& both) {
      return 100 * std::get<0>(both) + std::get<1>(both);
    };
    return zip(list | shard(rank), list) | map(sum) | batch(12 / rank.world);
  };
  EXPECT_NE(steps_with(1, first), steps_with(2, first));
  EXPECT_NE(steps_with(1, twice), steps_with(2, twice));
  EXPECT_NE(steps_with(1, unlike), steps_with(2, unlike));
  EXPECT_NE(steps_with(1, dropping), steps_with(3, dropping));
  EXPECT_NE(steps_with(1, left_out), steps_with(4, left_out));
  EXPECT_NE(steps_with(1, full_only), steps_with(16, full_only));
}

}  // namespace lade::elastic_test
