#include <lade/cut.hpp>
#include <lade/draw.hpp>
#include <lade/from.hpp>
#include <lade/merge.hpp>
#include <lade/shuffle.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace lade::shuffle_test {

using test::collect;
using test::numbers;
using test::up_to;

static std::vector<int> sorted(std::vector<int> all) {
  std::ranges::sort(all);
  return all;
}

TEST(Shuffle, OfAListIsAnotherPermutationInEveryEpoch) {
  runtime runtime({.threads = 1});
  auto shuffled = from(up_to(100)) | shuffle({.seed = 3});
  auto first = collect(runtime, shuffled);
  EXPECT_EQ(collect(runtime, shuffled), first);
  EXPECT_EQ(sorted(first), up_to(100));
  auto second = collect(runtime, shuffled, {.epoch = 1});
  EXPECT_NE(second, first);
  EXPECT_EQ(sorted(second), up_to(100));
  EXPECT_NE(collect(runtime, from(up_to(100)) | shuffle({.seed = 4})), first);
}

TEST(Shuffle, OfAStreamIsAPermutationWithinItsWindow) {
  runtime runtime({.threads = 1});
  for (std::size_t window : {1u, 2u, 10u, 500u}) {
    auto shuffled = from(numbers{300}) | shuffle({.seed = 3, .window = window});
    auto all = collect(runtime, shuffled);
    EXPECT_EQ(sorted(all), up_to(300));
    for (std::size_t place = 0; place < all.size(); ++place)
      EXPECT_LT(static_cast<std::size_t>(all[place]), place + window);
    EXPECT_EQ(collect(runtime, shuffled), all);
    if (window > 1) {
      EXPECT_NE(collect(runtime, shuffled, {.epoch = 1}), all);
    }
  }
}

TEST(Shuffle, OfARepeatedStreamDiffersInEveryRound) {
  runtime runtime({.threads = 1});
  auto all = collect(runtime, from(numbers{50}) | shuffle({.window = 20}) | repeat(2));
  std::vector<int> first(all.begin(), all.begin() + 50);
  std::vector<int> second(all.begin() + 50, all.end());
  EXPECT_EQ(sorted(first), sorted(second));
  EXPECT_NE(first, second);
}

// The first items of the pairs, which must be of equal items.
static std::vector<int> paired(runtime& runtime, const pipeline<int>& in, std::uint64_t epoch) {
  std::vector<int> all;
  for (auto& [a, b] : collect(runtime, zip(in, in), {.epoch = epoch})) {
    EXPECT_EQ(a, b);
    all.push_back(a);
  }
  return all;
}

TEST(Shuffle, OfSourcesThatAreZippedIsTheSameInEach) {
  runtime runtime({.threads = 2});
  auto list = from(up_to(50));
  auto stream = from(numbers{50});
  std::vector<double> weights(50, 1);
  for (auto& each : {list | shuffle({.seed = 7}), list | shuffle() | repeat(3),
                     list | draw({.weights = weights}), stream | shuffle({.seed = 7, .window = 8}),
                     stream | shuffle({.window = 8}) | repeat(3)}) {
    auto first = paired(runtime, each, 0);
    EXPECT_EQ(first, collect(runtime, each));
    EXPECT_NE(first, paired(runtime, each, 1));
  }
}

TEST(Shuffle, OfSourcesThatAreZippedAndRepeatedIsAnotherOneInEachRound) {
  runtime runtime({.threads = 2});
  auto in = from(numbers{50}) | shuffle({.window = 8});
  std::vector<int> rounds;
  for (auto& [a, b] : collect(runtime, zip(in, in) | repeat(2))) {
    EXPECT_EQ(a, b);
    rounds.push_back(a);
  }
  ASSERT_EQ(rounds.size(), 100u);
  std::vector<int> first(rounds.begin(), rounds.begin() + 50);
  std::vector<int> second(rounds.begin() + 50, rounds.end());
  EXPECT_EQ(sorted(first), sorted(second));
  EXPECT_NE(first, second);
}

}  // namespace lade::shuffle_test
