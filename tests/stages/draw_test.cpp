#include <lade/cut.hpp>
#include <lade/draw.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/run.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace lade::draw_test {

using namespace test;
using testing::IsEmpty;
using testing::ThrowsMessage;
using ints = std::vector<int>;

static pipeline<int> list_of(int size) {
  ints all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return from(all);
}

TEST(Draw, YieldsItemsInProportionToTheirWeights) {
  runtime runtime({.threads = 1});
  auto drawn = list_of(4) | draw({.weights = {0, 1, 2, 5}, .count = 80'000, .seed = 3});
  auto items = collect(runtime, drawn);
  ASSERT_EQ(items.size(), 80'000u);
  double chi_square = 0;
  for (int i : {1, 2, 3}) {
    auto expected = 10'000.0 * (i == 3 ? 5 : i);
    auto off = static_cast<double>(std::ranges::count(items, i)) - expected;
    chi_square += off * off / expected;
  }
  EXPECT_LT(chi_square, 13.8);  // exceeded by one in a thousand seeds
  EXPECT_EQ(std::ranges::count(items, 0), 0);
}

TEST(Draw, NeedsASourceThatIsReachedByIndex) {
  auto drawing = draw({.weights = {1, 1}});
  EXPECT_EQ((pipeline<int>(list_of(2)) | drawing).describe().stages.size(), 1u);
  EXPECT_THAT(
      [&] { from(test::numbers{2}) | drawing; },
      ThrowsMessage<error>("draw: only items that are reached by index can be drawn: put it "
                           "at a list"));
}

TEST(Draw, IsTheSameInEveryRunAndAnotherInEveryEpoch) {
  runtime runtime({.threads = 2});
  auto with_seed = [](std::uint64_t seed) {
    return list_of(3) | draw({.weights = {1, 1, 1}, .count = 100, .seed = seed});
  };
  auto once = collect(runtime, with_seed(1));
  EXPECT_EQ(collect(runtime, with_seed(1)), once);
  EXPECT_NE(collect(runtime, with_seed(2)), once);
  EXPECT_NE(collect(runtime, with_seed(1), {.epoch = 1}), once);
  auto twice = collect(runtime, with_seed(1) | repeat(2));
  EXPECT_EQ(ints(twice.begin(), twice.begin() + 100), once);
  EXPECT_NE(ints(twice.begin() + 100, twice.end()), once);
}

TEST(Draw, DrawsAsManyItemsAsTheListHasByDefault) {
  runtime runtime({.threads = 1});
  EXPECT_EQ(collect(runtime, list_of(7) | draw({.weights = std::vector(7, 1.0)})).size(), 7u);
  EXPECT_THAT(collect(runtime, list_of(1) | draw({.weights = {1}, .count = 0})), IsEmpty());
}

TEST(Draw, ShardsArePartsOfTheSameDraws) {
  runtime runtime({.threads = 1});
  auto drawn = list_of(9) | draw({.weights = {1, 2, 3, 4, 5, 6, 7, 8, 9}, .count = 200});
  auto whole = collect(runtime, drawn);
  for (std::uint64_t world = 1; world <= 64; ++world) {
    ints assigned(whole.size() / world * world, -1);
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      auto mine = collect(runtime, drawn | shard({.rank = rank, .world = world}));
      ASSERT_EQ(mine.size(), whole.size() / world);
      for (std::size_t i = 0; i < mine.size(); ++i) assigned[i * world + rank] = mine[i];
    }
    ASSERT_EQ(assigned, ints(whole.begin(), whole.begin() + static_cast<long>(assigned.size())))
        << "world of " << world;
  }
}

TEST(Draw, CombinesWithOtherStepsOfASource) {
  runtime runtime({.threads = 1});
  auto drawn = list_of(10) | skip(8) | shuffle() | draw({.weights = {1, 1}, .count = 50});
  auto items = collect(runtime, drawn);
  EXPECT_TRUE(std::ranges::all_of(items, [](int i) { return i >= 8; }));
  auto shuffled = collect(runtime, drawn | shuffle());
  EXPECT_NE(shuffled, items);
  std::ranges::sort(shuffled);
  std::ranges::sort(items);
  EXPECT_EQ(shuffled, items);
}

TEST(Draw, RefusesAnotherNumberOfItems) {
  runtime runtime({.threads = 1});
  auto drawn = list_of(3) | draw({.weights = {1, 2}});
  EXPECT_THAT([&] { collect(runtime, drawn); },
              ThrowsMessage<stage_error>(
                  "source: draw: the number of weights must be 3, that of the items; it is 2"));
}

TEST(Draw, RefusesInvalidWeights) {
  EXPECT_THAT([] { draw({}); }, ThrowsMessage<error>("draw: no weights"));
  EXPECT_THAT([] { draw({.weights = {0}}); }, ThrowsMessage<error>("draw: all weights are 0"));
  EXPECT_THAT([] { draw({.weights = {1, -1}}); },
              ThrowsMessage<error>("draw: weight 1 is -1; it must be a finite number from 0 on"));
}

}  // namespace lade::draw_test
