#include <lade/lineage.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../support/seed.hpp"

namespace lade::lineage_test {

using detail::part_lineage;
using testing::ElementsAre;

static lineage positions(std::initializer_list<std::uint64_t> all) {
  lineage result;
  for (auto position : all) result.add(position);
  return result;
}

TEST(Lineage, IsEmptyAtFirst) {
  lineage none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.size(), 0u);
  EXPECT_TRUE(none.ranges().empty());
  EXPECT_FALSE(none.contains(0));
  EXPECT_EQ(to_string(none), "");
}

TEST(Lineage, HasOnePosition) {
  lineage one(7);
  EXPECT_FALSE(one.empty());
  EXPECT_EQ(one.size(), 1u);
  EXPECT_TRUE(one.contains(7));
  EXPECT_FALSE(one.contains(6));
  EXPECT_FALSE(one.contains(8));
}

TEST(Lineage, KeepsNeighboursAsARange) {
  EXPECT_EQ(to_string(positions({3, 4, 5, 6, 7, 9})), "3-7, 9");
  EXPECT_EQ(to_string(positions({9, 7, 5, 3, 4, 6})), "3-7, 9");
  EXPECT_EQ(positions({1, 2, 3}).ranges().size(), 1u);
}

TEST(Lineage, ALastNeighbourJoinsTwoRanges) {
  auto all = positions({1, 2, 4, 5});
  EXPECT_EQ(all.ranges().size(), 2u);
  all.add(3);
  EXPECT_THAT(all.ranges(), ElementsAre(lineage::range{1, 5}));
}

TEST(Lineage, HasAPositionOnce) {
  auto all = positions({2, 2, 1, 2});
  EXPECT_EQ(all.size(), 2u);
  all.merge(lineage(all));
  all.merge(all);
  EXPECT_EQ(to_string(all), "1-2");
}

TEST(Lineage, ACopyIsIndependent) {
  auto all = positions({1, 5});
  auto copy = all;
  copy.add(9);
  EXPECT_EQ(to_string(all), "1, 5");
  EXPECT_EQ(to_string(copy), "1, 5, 9");
  all = copy;
  EXPECT_EQ(to_string(all), "1, 5, 9");
}

TEST(Lineage, MovingLeavesNothingBehind) {
  auto all = positions({1, 5});
  auto taken = std::move(all);
  EXPECT_EQ(to_string(taken), "1, 5");
  EXPECT_TRUE(all.empty());  // NOLINT(bugprone-use-after-move): that is the question
  lineage target(3);
  target.take(taken);
  EXPECT_EQ(to_string(target), "1, 5");
  EXPECT_TRUE(taken.empty());
  target.take(taken);
  EXPECT_TRUE(target.empty());
}

TEST(Lineage, KnowsWhatWasAddedLast) {
  EXPECT_EQ(lineage().latest(), 0u);
  auto all = positions({1, 9, 5});
  EXPECT_EQ(all.latest(), 5u);
  lineage others = positions({12, 3});
  others.merge(all);
  EXPECT_EQ(others.latest(), 5u);
  others.merge(lineage());
  EXPECT_EQ(others.latest(), 5u);
  auto copy = others;
  auto moved = std::move(others);
  lineage taken;
  taken.take(moved);
  EXPECT_EQ(copy.latest(), 5u);
  EXPECT_EQ(taken.latest(), 5u);
  EXPECT_EQ(taken, copy);
}

// The digest of the members of a group of `size`.
static std::uint32_t members(const lineage& group, std::size_t size) {
  return part_lineage::members_of_whole(part_lineage(group, size).next());
}

TEST(Lineage, NumbersParts) {
  const auto whole = positions({3, 4});
  EXPECT_EQ(whole.part(), 0u);
  part_lineage parts(whole, 7);
  for (std::uint64_t n = 1; n <= 3; ++n) {
    const lineage& part = parts.next();
    EXPECT_EQ(part, whole);
    EXPECT_EQ(part.part(), n);
    EXPECT_EQ(part_lineage::members_of_whole(part), members(whole, 7));
  }
  auto copy = parts.next();
  auto moved = std::move(copy);
  lineage taken;
  taken.take(moved);
  EXPECT_EQ(taken.part(), 4u);
  EXPECT_EQ(part_lineage::members_of_whole(lineage(taken)), members(whole, 7));
  auto gathered = positions({9});
  gathered.merge(taken);
  EXPECT_EQ(gathered.part(), 4u);
  gathered.merge(lineage(6));
  EXPECT_EQ(gathered.part(), 0u);
  EXPECT_EQ(part_lineage::members_of_whole(gathered), 0u);
}

// The lineage of a group of items, of which some were dropped, as stages make it: the positions of
// dropped items belong to the next item.
static lineage group_of(const std::vector<bool>& dropped, std::uint64_t first = 0) {
  lineage group;
  lineage item;
  for (std::size_t i = 0; i < dropped.size(); ++i) {
    item.merge(lineage(first + i));
    if (!dropped[i]) group.merge(std::exchange(item, {}));
  }
  return group;
}

TEST(Lineage, OfAPartDistinguishesGroupsOfOtherMembers) {
  std::map<std::uint32_t, std::vector<bool>> seen;
  for (unsigned bits = 0; bits < 1U << 11; ++bits) {
    std::vector<bool> dropped;
    for (unsigned i = 0; i < 11; ++i) dropped.push_back(bits >> i & 1U);
    dropped.push_back(false);
    const auto size = static_cast<std::size_t>(std::ranges::count(dropped, false));
    const auto digest = members(group_of(dropped), size);
    auto [same, is_new] = seen.emplace(digest, dropped);
    EXPECT_TRUE(is_new) << testing::PrintToString(dropped) << testing::PrintToString(same->second);
    EXPECT_EQ(members(group_of(dropped, 1000), size), digest) << "positions shifted alike";
  }
}

TEST(Lineage, ThatWasTakenBeginsAnewWithoutTheMembersOfBefore) {
  auto emptied = group_of({false, true, false});
  lineage taken;
  taken.take(emptied);
  emptied.add(9);
  EXPECT_EQ(members(emptied, 1), members(lineage(9), 1));
  auto moved_from = group_of({false, true, false});
  taken = std::move(moved_from);
  moved_from.add(9);  // NOLINT(bugprone-use-after-move): it is empty
  EXPECT_EQ(members(moved_from, 1), members(lineage(9), 1));
}

TEST(Lineage, OfAPartKnowsTheMembersOfAGroupBehindOtherStages) {
  auto group = group_of({false, true, false});
  lineage yielded;  // of a stage that yields one item for each
  yielded.merge(group);
  lineage taken;
  taken.take(yielded);
  EXPECT_EQ(members(taken, 2), members(group, 2));
  EXPECT_NE(members(group_of({true, false, false}), 2), members(group, 2));
  EXPECT_NE(members(group, 2), members(group, 3));
  EXPECT_EQ(members(group, 0), 0u) << "no group";
}

TEST(Lineage, NumbersPartsOfPartsInTheirOrder) {
  part_lineage outer(lineage(5), 3);
  const auto of_outer = members(lineage(5), 3);
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    part_lineage inner(outer.next(), 7);
    for (int j = 0; j < 3; ++j) {
      const lineage part = inner.next();
      EXPECT_EQ(part_lineage::members_of_whole(part), of_outer);
      EXPECT_TRUE(part_lineage::is_ordered(part));
      EXPECT_GT(part.part(), last);
      last = part.part();
      EXPECT_FALSE(part_lineage::is_ordered(part_lineage(part, 0).next()));
    }
  }
}

TEST(Lineage, OfSeveralItemsOfTheSamePositionsIsNumbered) {
  detail::distinct_lineage origins;
  EXPECT_TRUE(origins.of(lineage()).empty());
  auto next_is = [&](const lineage& origin, std::uint64_t position, std::uint64_t part) {
    auto& distinct = origins.of(origin);
    EXPECT_EQ(distinct, lineage(position));
    EXPECT_EQ(distinct.part(), part);
  };
  next_is(lineage(0), 0, 0);
  next_is(lineage(), 0, 1);
  next_is(lineage(0), 0, 2);
  next_is(lineage(7), 7, 0);
  next_is(lineage(), 7, 1);
  const lineage part = part_lineage(lineage(9), 0).next();
  next_is(part, 9, 1);
  next_is(lineage(), 9, (std::uint64_t{1} << 32) + 1);
  next_is(part, 9, (std::uint64_t{1} << 32) + 2);
}

// Against a std::set, for random sets of random merges.
TEST(Lineage, BehavesLikeASet) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  auto below = [&random](std::uint64_t n) { return random() % n; };
  for (int round = 0; round < 300; ++round) {
    const auto span = 1 + below(200);
    lineage all[4];
    std::set<std::uint64_t> twin[4];
    for (int step = 0; step < 100; ++step) {
      auto to = below(4), from = below(4);
      switch (below(4)) {
        case 0:
          all[to].merge(all[from]);
          twin[to].merge(std::set(twin[from]));
          break;
        case 1:
          if (to == from) break;
          all[to].take(all[from]);
          twin[to] = std::exchange(twin[from], {});
          break;
        default:
          auto position = below(span);
          all[to].add(position);
          twin[to].insert(position);
      }
    }
    for (int i = 0; i < 4; ++i) {
      std::set<std::uint64_t> listed;
      std::uint64_t end = 0;  // behind the last range, and one more: ranges do not touch
      for (auto& r : all[i].ranges()) {
        EXPECT_TRUE(r.first <= r.last && r.first >= end);
        end = r.last + 2;
        for (auto p = r.first; p <= r.last; ++p) listed.insert(p);
      }
      ASSERT_EQ(listed, twin[i]);
      ASSERT_EQ(all[i].size(), twin[i].size());
      ASSERT_EQ(all[i].empty(), twin[i].empty());
      for (std::uint64_t p = 0; p < span; ++p)
        ASSERT_EQ(all[i].contains(p), twin[i].contains(p)) << p;
    }
  }
}

}  // namespace lade::lineage_test
