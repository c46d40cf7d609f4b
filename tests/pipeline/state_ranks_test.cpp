// The states of several ranks: merged, and gone on from by another number of them.

#include <lade/batch.hpp>
#include <lade/cut.hpp>
#include <lade/draw.hpp>
#include <lade/error.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/run.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>

#include "../support/pipelines.hpp"
#include "../support/resume.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace lade::state_ranks_test {

using namespace test;
using testing::HasSubstr;
using testing::ThrowsMessage;
using ints = std::vector<int>;

TEST(StateOfRanks, AnotherNumberDeliversTheRest) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime runtime({.threads = 2});
  for (int i = 0; i < 50; ++i) {
    auto size = static_cast<int>(draw.below(400));
    auto shuffled = from(up_to(size)) | shuffle({.seed = draw()});
    ints all;
    std::optional<state> merged;
    for (int restart = 0; restart < 4; ++restart) {
      auto world = 1 + draw.below(6);
      auto steps = 1 + draw.below(30);
      std::vector<state> ranks;
      for (std::uint64_t rank = 0; rank < world; ++rank) {
        auto items =
            runtime.run(shuffled | shard({.rank = rank, .world = world}), {.state = merged});
        auto some = take_some(items, restart < 3 ? steps + draw.below(3) : 1000);
        all.insert(all.end(), some.begin(), some.end());
        ranks.push_back(state_from_json(to_json(items.state())));
      }
      merged = merge(ranks);
    }
    auto items = runtime.run(shuffled, {.state = merged});
    auto rest = take_some(items, 1000);
    EXPECT_LT(rest.size(), 6u);  // the remainder
    all.insert(all.end(), rest.begin(), rest.end());
    ASSERT_EQ(sorted(all), up_to(size));
  }
}

TEST(StateOfRanks, UnevenShardsDeliverEachItemOnceWithAnyNumbersOfRanks) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime runtime({.threads = 2});
  for (int i = 0; i < 50; ++i) {
    auto size = static_cast<int>(draw.below(100));
    auto shuffled = from(up_to(size)) | shuffle({.seed = draw()});
    ints all;
    std::optional<state> merged;
    for (int restart = 0; restart < 4; ++restart) {
      auto steps = restart < 3 ? 1 + draw.below(10) : 1000;
      std::vector<state> ranks;
      for (std::uint64_t rank = 0, world = 1 + draw.below(6); rank < world; ++rank) {
        auto items = runtime.run(
            shuffled | shard({.rank = rank, .world = world, .remainder = remainder::keep}),
            {.state = merged});
        auto some = take_some(items, steps);
        all.insert(all.end(), some.begin(), some.end());
        ranks.push_back(state_from_json(to_json(items.state())));
      }
      merged = merge(ranks);
    }
    ASSERT_EQ(sorted(all), up_to(size));
  }
}

// With w ranks that take b items each, a step is of the next w * b items of the epoch's order.
TEST(StateOfRanks, GlobalBatchesAreThoseOfAnUninterruptedRunWithAnyNumbersOfRanks) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime runtime({.threads = 2});
  constexpr std::size_t global = 12;
  auto shuffled = from(up_to(150)) | shuffle({.seed = draw()});
  auto whole = collect(runtime, shuffled);
  std::optional<state> merged;
  std::size_t begin = 0;
  while (begin < whole.size()) {
    std::uint64_t worlds[] = {1, 2, 3, 4, 6, 12};
    auto world = worlds[draw.below(6)];
    auto steps = 1 + draw.below(4);
    std::vector<state> ranks;
    std::vector<ints> batches(steps);
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      auto part = shuffled | shard({.rank = rank, .world = world, .remainder = remainder::keep});
      auto items = runtime.run(part | batch(global / world), {.state = merged});
      for (auto& each : batches)
        if (auto local = items.wait_next()) each.insert(each.end(), local->begin(), local->end());
      ranks.push_back(items.state());
    }
    merged = merge(ranks);
    for (auto& each : batches) {
      auto end = std::min(begin + global, whole.size());
      ints expected(whole.begin() + static_cast<std::ptrdiff_t>(begin),
                    whole.begin() + static_cast<std::ptrdiff_t>(end));
      ASSERT_EQ(sorted(each), sorted(expected));
      begin = end;
    }
  }
}

TEST(StateOfRanks, AnotherNumberDeliversTheRestOfSeveralSources) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime runtime({.threads = 2});
  for (int i = 0; i < 50; ++i) {
    auto size = static_cast<int>(draw.below(200));
    auto first = from(up_to(size)) | shuffle({.seed = draw()});
    auto second =
        from_index(draw.below(200), [size](std::uint64_t k) { return size + static_cast<int>(k); });
    auto part = [&](std::uint64_t rank, std::uint64_t world) {
      shard_options options{.rank = rank, .world = world};
      return merge(std::vector<pipeline<int>>{first | shard(options), second | shard(options)});
    };
    auto whole = sorted(collect(runtime, part(0, 1)));
    ints all;
    std::optional<state> merged;
    for (int restart = 0; restart < 4; ++restart) {
      auto world = 1 + draw.below(6);
      auto steps = draw.below(30);
      std::vector<state> ranks;
      for (std::uint64_t rank = 0; rank < world; ++rank) {
        auto items = runtime.run(part(rank, world), {.state = merged});
        auto some = take_some(items, restart < 3 ? 1 + steps + draw.below(3) : 1000);
        all.insert(all.end(), some.begin(), some.end());
        ranks.push_back(state_from_json(to_json(items.state())));
      }
      merged = merge(ranks);
    }
    auto rest = collect(runtime, part(0, 1), {.state = merged});
    EXPECT_LT(rest.size(), 11u);  // the remainders
    all.insert(all.end(), rest.begin(), rest.end());
    ASSERT_EQ(sorted(all), whole);
  }
}

TEST(StateOfRanks, AnotherNumberDeliversTheRestOfTheDraws) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random random(seed);
  runtime runtime({.threads = 2});
  for (int i = 0; i < 30; ++i) {
    std::vector<double> weights(1 + random.below(50), 1.0);
    for (auto& each : weights) each += random.uniform(0, 9);
    auto drawn = from(up_to(static_cast<int>(weights.size()))) |
                 draw({.weights = weights, .count = 12 * random.below(30), .seed = random()});
    std::vector<ints> some;
    std::vector<state> ranks;
    for (std::uint64_t rank = 0; rank < 4; ++rank) {
      auto items = runtime.run(drawn | shard({.rank = rank, .world = 4}));
      some.push_back(take_some(items, 1 + random.below(20)));
      ranks.push_back(state_from_json(to_json(items.state())));
    }
    for (std::uint64_t rank = 0; rank < 3; ++rank)
      some.push_back(collect(runtime,
                             drawn | shard({.rank = rank, .world = 3, .remainder = remainder::pad}),
                             {.state = merge(ranks)}));
    ints all;
    for (auto& each : some) all.insert(all.end(), each.begin(), each.end());
    auto whole = sorted(collect(runtime, drawn));
    std::ranges::sort(all);
    ASSERT_TRUE(std::ranges::includes(all, whole));
    ASSERT_LT(all.size(), whole.size() + 3);
  }
}

TEST(StateOfRanks, BehindARepeatMergesInAnyRound) {
  runtime runtime({.threads = 1});
  auto rounds = from(up_to(6)) | shuffle() | repeat(4);
  for (std::size_t steps = 1; steps < 12; ++steps) {
    ints all;
    std::vector<state> ranks;
    for (std::uint64_t rank = 0; rank < 2; ++rank) {
      auto items = runtime.run(rounds | shard({.rank = rank, .world = 2}));
      auto some = take_some(items, steps);
      all.insert(all.end(), some.begin(), some.end());
      ranks.push_back(items.state());
    }
    auto rest = collect(runtime, rounds, {.state = merge(ranks)});
    all.insert(all.end(), rest.begin(), rest.end());
    ASSERT_EQ(sorted(all), sorted(collect(runtime, rounds)));
  }
}

// Stages behind a shard. Their kinds are always the same; their options are not.
class stages_of_ranks {
 public:
  explicit stages_of_ranks(random& draw) : draw_(draw), shape_(draw()) {}

  pipeline<ints> operator()(pipeline<int> in) {
    random shape(shape_);
    for (auto count = shape.below(3); count > 0; --count) in = with_map(in, shape);
    return in | batch(1 + draw_.below(5));
  }

 private:
  unsigned any_concurrency() { return static_cast<unsigned>(1 + draw_.below(6)); }

  pipeline<int> with_map(const pipeline<int>& in, random& shape) {
    map_options how{.concurrency = any_concurrency()};
    if (shape.below(2)) how.order = item_order::completion;
    how.on_error = on_error::skip;
    auto broken = 5 + shape.below(20);
    return in | map(
                    [broken](int i) {
                      if (static_cast<std::uint64_t>(i) % broken == 1)
                        throw std::runtime_error("broken");
                      return i;
                    },
                    how);
  }

  random& draw_;
  std::uint64_t shape_;
};

TEST(StateOfRanks, AnotherNumberDeliversTheRestOfAnyStages) {
  auto seed = new_seed();
  random draw(seed);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    stages_of_ranks stages(draw);
    auto list = from(up_to(static_cast<int>(draw.below(300)))) | shuffle({.seed = draw()});
    ints all;
    auto run_rank = [&](const pipeline<int>& part, std::size_t count, run_options options) {
      runtime where({.threads = static_cast<unsigned>(1 + draw.below(4))});
      std::vector<ints> batches;
      take_part(where, stages(part), count, options, batches);
      for (auto& each : batches) all.insert(all.end(), each.begin(), each.end());
      return *options.state;
    };
    std::optional<state> merged;
    for (int restart = 0; restart < 3; ++restart) {
      std::vector<state> ranks;
      for (std::uint64_t rank = 0, world = 1 + draw.below(5); rank < world; ++rank)
        ranks.push_back(run_rank(list | shard({.rank = rank, .world = world}), 1 + draw.below(9),
                                 {.state = merged}));
      merged = merge(ranks);
    }
    run_rank(list, 1000, {.state = merged});
    runtime where({.threads = 2});
    ints whole;
    for (auto& each : collect(where, stages(list)))
      whole.insert(whole.end(), each.begin(), each.end());
    ASSERT_EQ(sorted(all), sorted(whole));
  }
}

TEST(StateOfRanks, AmidThePartsOfAnItemIsForTheSameRank) {
  runtime runtime({.threads = 1});
  auto list = from(up_to(20));
  auto twice = flat_map([](int i) { return ints{i, i}; });
  auto items = runtime.run(list | twice);
  take_some(items, 5);
  auto part = list | shard({.rank = 1, .world = 2}) | twice;
  EXPECT_THAT(
      [&] { collect(runtime, part, {.state = items.state()}); },
      ThrowsMessage<error>(HasSubstr("it has an item that was delivered in part: the number "
                                     "of ranks must stay 1, this run has 2")));
  auto rank = runtime.run(part);
  auto all = take_some(rank, 3);
  auto rest = collect(runtime, part, {.state = rank.state()});
  all.insert(all.end(), rest.begin(), rest.end());
  EXPECT_EQ(all, collect(runtime, part));
}

TEST(MergeStates, NeedsAllRanksOfOneRun) {
  auto rank = [](std::uint64_t number) {
    return state{.rank = number, .world = 2, .sources = {{.items = 100, .first = number}}};
  };
  auto merging = [](std::vector<state> ranks) { return [ranks] { merge(ranks); }; };
  auto says = [](const char* why) { return ThrowsMessage<error>(HasSubstr(why)); };
  EXPECT_NO_THROW(merge(std::vector{rank(1), rank(0)}));
  EXPECT_THAT(merging({}), says("there are no states"));
  EXPECT_THAT(merging({rank(0)}), says("2 ranks are needed, each once"));
  EXPECT_THAT(merging({rank(1), rank(1)}), says("rank 0 is missing"));
  EXPECT_THAT(merging({rank(0), rank(0)}), says("rank 1 is missing"));
  auto other = rank(1);
  other.sources[0].since.add({0, (std::uint64_t{1} << 61) + 1});
  EXPECT_THAT(merging({rank(0), other}), says("rank 1 has delivered more than there is"));
  other = rank(1);
  other.open.add(1);
  other.parts = 1;
  EXPECT_THAT(merging({rank(0), other}), says("rank 1 has delivered an item in part"));
  auto far = [&](std::uint64_t number, std::uint64_t steps) {
    auto result = rank(number);
    result.sources[0].items = std::uint64_t{1} << 40;
    if (steps) result.sources[0].since.add({0, steps});
    return result;
  };
  EXPECT_THAT(merging({far(0, 0), far(1, std::uint64_t{1} << 30)}), says("they are too far apart"));
}

TEST(MergeStates, AddsTheOwnPositionsOfEachRank) {
  std::vector<state> ranks(2);
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    ranks[rank] = {.rank = rank, .world = 2, .sources = {{.first = rank}}};
    ranks[rank].delivered.add({0, 4});
    ranks[rank].own.add({10 * rank + 5, 10 * rank + 9});
  }
  auto merged = merge(ranks);
  EXPECT_EQ(to_string(merged.delivered), "0-9, 15-19");
  EXPECT_TRUE(merged.own.empty());
}

TEST(MergeStates, NamesWhatDiffers) {
  auto differing = [](auto change) {
    std::vector<state> ranks(2);
    for (std::uint64_t rank = 0; rank < 2; ++rank)
      ranks[rank] = {.rank = rank, .world = 2, .sources = {{.items = 100, .first = rank}}};
    change(ranks[1]);
    return [ranks] { merge(ranks); };
  };
  auto in = [](const std::string& what) {
    return ThrowsMessage<error>("merge states: they differ in " + what);
  };
  EXPECT_THAT(differing([](state& other) { other.epoch = 1; }), in("the epoch"));
  EXPECT_THAT(differing([](state& other) { other.seed = 7; }), in("the seed"));
  EXPECT_THAT(differing([](state& other) { other.stages = {"read"}; }), in("the stages"));
  EXPECT_THAT(differing([](state& other) { other.sources[0].items = 99; }),
              in("the items of the source"));
  EXPECT_THAT(differing([](state& other) { other.sources[0].identity = "photos"; }),
              in("the data set"));
  EXPECT_THAT(differing([](state& other) { other.sources[0].order = {"shuffle 7"}; }),
              in("the order of the source"));
  EXPECT_THAT(differing([](state& other) { other.world = 3; }), in("the number of ranks"));
  EXPECT_THAT(differing([](state& other) { other.delivered.add(5); }), in("what they began with"));
  EXPECT_THAT(differing([](state& other) { other.sources[0].first = 3; }),
              in("their parts of a source"));
}

}  // namespace lade::state_ranks_test
