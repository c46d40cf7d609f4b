#include <lade/detail/pipeline/index.hpp>
#include <lade/random.hpp>

#include "../support/pipelines.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace lade::detail::index_test {

using order = std::vector<order_step>;

static std::vector<std::uint64_t> indices(const order& steps, std::uint64_t items,
                                          std::uint64_t epoch = 0) {
  visit_order visit(steps, items, epoch);
  std::vector<std::uint64_t> all;
  for (std::uint64_t k = 0; k < visit.size(); ++k) all.push_back(visit.at(k).index);
  return all;
}

static std::vector<std::uint64_t> positions(const order& steps, std::uint64_t items) {
  visit_order visit(steps, items, 0);
  std::vector<std::uint64_t> all;
  for (std::uint64_t k = 0; k < visit.size(); ++k) all.push_back(visit.at(k).position);
  return all;
}

static std::vector<std::uint64_t> up_to(std::uint64_t end) {
  std::vector<std::uint64_t> all(end);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

TEST(Permute, IsABijectionOfEverySmallSize) {
  for (std::uint64_t size = 0; size <= 70; ++size)
    for (std::uint64_t key = 0; key < 50; ++key) {
      std::vector<std::uint64_t> all;
      for (std::uint64_t i = 0; i < size; ++i) all.push_back(permute(i, size, key));
      std::ranges::sort(all);
      ASSERT_EQ(all, up_to(size)) << "size " << size << ", key " << key;
    }
}

TEST(Permute, IsABijectionAroundPowersOfTwo) {
  for (unsigned bits = 8; bits <= 16; ++bits)
    for (auto size : {(1u << bits) - 1, 1u << bits, (1u << bits) + 1}) {
      std::vector<bool> seen(size);
      for (std::uint64_t i = 0; i < size; ++i) {
        auto to = permute(i, size, 7);
        ASSERT_LT(to, size);
        ASSERT_FALSE(seen[to]);
        seen[to] = true;
      }
    }
}

TEST(Permute, StaysInsideOfHugeRangesWithoutMeeting) {
  for (auto size : {(std::uint64_t{1} << 40) + 12345, ~std::uint64_t{0}}) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      auto to = permute(i * (size / 20'000), size, 3);
      ASSERT_LT(to, size);
      seen.insert(to);
    }
    EXPECT_EQ(seen.size(), 20'000u);
  }
}

TEST(Permute, TakesEveryItemToEveryPlaceEquallyOften) {
  constexpr int keys = 20'000;
  for (std::uint64_t size : {2u, 3u, 4u, 5u, 7u, 10u, 16u}) {
    for (std::uint64_t i = 0; i < size; ++i) {
      std::vector<int> counts(size);
      for (std::uint64_t key = 0; key < keys; ++key) ++counts[permute(i, size, scramble(key))];
      auto expected = static_cast<double>(keys) / static_cast<double>(size);
      for (auto count : counts)
        EXPECT_NEAR(count, expected, 0.1 * expected) << "item " << i << " of " << size;
    }
  }
}

TEST(Permute, ProducesAllOrdersOfFewItemsAboutEquallyOften) {
  constexpr int keys = 24'000;
  std::map<std::vector<std::uint64_t>, int> orders;
  for (std::uint64_t key = 0; key < keys; ++key) {
    std::vector<std::uint64_t> one;
    for (std::uint64_t i = 0; i < 4; ++i) one.push_back(permute(i, 4, scramble(key)));
    ++orders[one];
  }
  EXPECT_EQ(orders.size(), 24u);
  for (auto& [one, count] : orders) EXPECT_NEAR(count, keys / 24, keys / 24 / 2);
}

TEST(VisitOrder, ShuffleDiffersBySeedEpochAndRound) {
  order steps{order_step::shuffle(1)};
  EXPECT_EQ(indices(steps, 100), indices(steps, 100));
  EXPECT_NE(indices(steps, 100), indices(steps, 100, 1));
  EXPECT_NE(indices(steps, 100), indices({order_step::shuffle(2)}, 100));
  auto twice = indices({order_step::shuffle(1), order_step::repeat(2)}, 100);
  std::vector<std::uint64_t> first(twice.begin(), twice.begin() + 100);
  std::vector<std::uint64_t> second(twice.begin() + 100, twice.end());
  EXPECT_EQ(first, indices(steps, 100));
  EXPECT_NE(first, second);
  std::ranges::sort(second);
  EXPECT_EQ(second, up_to(100));
}

TEST(VisitOrder, ShardsAreCompleteDisjointAndEven) {
  for (auto remainder : {remainder::drop, remainder::pad, remainder::wrap})
    for (std::uint64_t world = 1; world <= 64; ++world)
      for (std::uint64_t items : {0u, 1u, 2u, 63u, 64u, 65u, 100u, 129u}) {
        std::vector<std::uint64_t> all;
        std::set<std::size_t> steps;
        for (std::uint64_t rank = 0; rank < world; ++rank) {
          auto mine = indices({order_step::shard({rank, world, remainder})}, items);
          steps.insert(mine.size());
          all.insert(all.end(), mine.begin(), mine.end());
        }
        ASSERT_EQ(steps.size(), 1u);
        std::set<std::uint64_t> distinct(all.begin(), all.end());
        auto kept = remainder == remainder::drop ? items - items % world : items;
        ASSERT_EQ(distinct.size(), kept) << items << " items for " << world;
        if (kept > 0) {
          ASSERT_EQ(*distinct.rbegin(), kept - 1);
        }
        ASSERT_LT(all.size(), kept + world);
      }
}

TEST(VisitOrder, PadRepeatsTheLastAndWrapTheFirst) {
  EXPECT_EQ(indices({order_step::shard({3, 4, remainder::pad})}, 5).back(), 4u);
  EXPECT_EQ(indices({order_step::shard({1, 4, remainder::wrap})}, 5).back(), 0u);
  EXPECT_EQ(indices({order_step::shard({3, 4, remainder::wrap})}, 5).back(), 2u);
  EXPECT_EQ(indices({order_step::shard({3, 4, remainder::wrap})}, 2).back(), 1u);
}

TEST(VisitOrder, RepeatForeverIsAsLongAsCanBeCounted) {
  visit_order visit({order_step::shuffle(1), order_step::repeat(~std::uint64_t{0})}, 10, 0);
  EXPECT_EQ(visit.size(), ~std::uint64_t{0});
  EXPECT_LT(visit.at(visit.size() - 1).index, 10u);
  EXPECT_EQ(visit_order({order_step::repeat(~std::uint64_t{0})}, 0, 0).size(), 0u);
}

TEST(VisitOrder, PositionsOfRepeatedItemsDiffer) {
  const order all[] = {
      {order_step::repeat(3), order_step::repeat(4)},
      {order_step::repeat(3), order_step::shuffle(1)},
      {order_step::shuffle(1), order_step::repeat(3), order_step::repeat(2)},
      {order_step::repeat(2), order_step::shuffle(1), order_step::repeat(3)},
      {order_step::skip(3), order_step::repeat(2), order_step::take(11), order_step::shuffle(1),
       order_step::repeat(2)},
  };
  for (auto& steps : all) {
    auto numbers = positions(steps, 10);
    std::set<std::uint64_t> distinct(numbers.begin(), numbers.end());
    EXPECT_EQ(distinct.size(), numbers.size());
  }
}

TEST(VisitOrder, PositionsBehindAShuffleAreThePlacesInItsOrder) {
  EXPECT_EQ(positions({order_step::shuffle(1)}, 5), up_to(5));
  EXPECT_EQ(positions({order_step::shuffle(1), order_step::shard({1, 2, remainder::drop})}, 6),
            (std::vector<std::uint64_t>{1, 3, 5}));
  EXPECT_EQ(positions({order_step::skip(2)}, 5), (std::vector<std::uint64_t>{2, 3, 4}));
}

// Any order against the same steps on a plain vector; shuffles are left to the tests above.
TEST(VisitOrder, EqualsTheSameStepsOnAVector) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  for (int round = 0; round < 2000; ++round) {
    auto items = draw.below(40);
    auto twin = up_to(items);
    order steps;
    for (auto left = draw.below(6); left > 0; --left) {
      auto count = draw.below(30);
      std::vector<std::uint64_t> next;
      switch (draw.below(4)) {
        case 0:
          steps.push_back(order_step::take(count));
          next.assign(twin.begin(),
                      twin.begin() + static_cast<std::ptrdiff_t>(std::min(count, twin.size())));
          break;
        case 1:
          steps.push_back(order_step::skip(count));
          next.assign(twin.begin() + static_cast<std::ptrdiff_t>(std::min(count, twin.size())),
                      twin.end());
          break;
        case 2:
          steps.push_back(order_step::repeat(count % 4));
          for (auto n = count % 4; n > 0; --n) next.insert(next.end(), twin.begin(), twin.end());
          break;
        default: {
          auto world = count + 1;
          auto rank = draw.below(world);
          steps.push_back(order_step::shard({rank, world, remainder::drop}));
          for (auto i = rank; i < twin.size() / world * world; i += world) next.push_back(twin[i]);
        }
      }
      twin = std::move(next);
    }
    ASSERT_EQ(indices(steps, items), twin);
  }
}

TEST(Stretch, IsWhatTheOrderOfTakesAndSkipsVisits) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  for (int round = 0; round < 200; ++round) {
    auto items = draw() % 20;
    order steps;
    for (auto left = draw() % 5; left > 0; --left) {
      if (draw() % 2)
        steps.push_back(order_step::take(draw() % 20));
      else
        steps.push_back(order_step::skip(draw() % 8));
    }
    auto wanted = stretch_of(steps);
    ASSERT_TRUE(wanted);
    std::vector<std::uint64_t> all;
    for (auto i = wanted->first; i < std::min(wanted->end, items); ++i) all.push_back(i);
    ASSERT_EQ(all, indices(steps, items));
    ASSERT_EQ(all, positions(steps, items));
  }
}

TEST(Stretch, IsAbsentBehindStepsThatMoveItems) {
  EXPECT_FALSE(stretch_of({order_step::take(5), order_step::shuffle(1)}));
  EXPECT_FALSE(stretch_of({order_step::shard({0, 2, remainder::drop})}));
  EXPECT_FALSE(stretch_of({order_step::repeat(2)}));
}

TEST(TextsOf, DescribeEachStepExceptShards) {
  auto table = std::make_shared<const alias_table>(std::vector<double>{1, 2}, "draw");
  auto texts = texts_of({order_step::skip(3), order_step::draw(table, 9, 1), order_step::shuffle(7),
                         order_step::repeat(2), order_step::take(100),
                         order_step::shard({1, 4, remainder::pad})});
  ASSERT_EQ(texts.size(), 5u);
  EXPECT_EQ(texts[0], "skip 3");
  EXPECT_TRUE(texts[1].starts_with("draw 9 by weights ")) << texts[1];
  EXPECT_TRUE(texts[1].ends_with(" with seed 1")) << texts[1];
  EXPECT_EQ(texts[2], "shuffle 7");
  EXPECT_EQ(texts[3], "repeat 2");
  EXPECT_EQ(texts[4], "take 100");
}

}  // namespace lade::detail::index_test
