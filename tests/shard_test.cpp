#include <lade/from.hpp>
#include <lade/run.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>

#include "support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace lade {

using test::collect;
using test::numbers;

TEST(Shard, OfAStreamIsThatOfAList) {
  runtime runtime({.threads = 1});
  for (auto remainder : {remainder::drop, remainder::pad, remainder::wrap})
    for (std::uint64_t world : {1u, 2u, 3u, 5u, 8u})
      for (int items : {0, 1, 2, 5, 7, 16})
        for (std::uint64_t rank = 0; rank < world; ++rank) {
          shard_options options{.rank = rank, .world = world, .remainder = remainder};
          std::vector<int> list(static_cast<std::size_t>(items));
          std::iota(list.begin(), list.end(), 0);
          ASSERT_EQ(collect(runtime, from(numbers{items}) | shard(options)),
                    collect(runtime, from(list) | shard(options)))
              << items << " items, rank " << rank << " of " << world;
        }
}

// Shards of a list of so many items: together they are all that drop leaves, each once, and what
// pad and wrap repeat.
static void expect_complete_and_disjoint(runtime& where, const indexed_pipeline<int>& list,
                                         std::uint64_t world, remainder remainder) {
  auto whole = collect(where, list);
  std::vector<int> all;
  for (std::uint64_t rank = 0; rank < world; ++rank) {
    auto mine = collect(where, list | shard({rank, world, remainder}));
    ASSERT_EQ(mine.size(), (whole.size() + (remainder == remainder::drop ? 0 : world - 1)) / world);
    all.insert(all.end(), mine.begin(), mine.end());
  }
  auto dropped = remainder == remainder::drop ? whole.size() % world : 0;
  std::vector<int> expected(whole.begin(), whole.end() - static_cast<std::ptrdiff_t>(dropped));
  for (std::size_t k = expected.size(); k < all.size(); ++k)
    expected.push_back(remainder == remainder::pad ? whole.back() : whole[k % whole.size()]);
  std::ranges::sort(all);
  std::ranges::sort(expected);
  ASSERT_EQ(all, expected) << whole.size() << " items for " << world;
}

TEST(Shard, PartsOfAllRanksAreTheWhole) {
  runtime runtime({.threads = 1});
  for (std::size_t items : {0u, 1u, 63u, 100u}) {
    std::vector<int> numbers(items);
    std::iota(numbers.begin(), numbers.end(), 0);
    for (std::uint64_t world = 1; world <= 64; ++world)
      for (auto remainder : {remainder::drop, remainder::pad, remainder::wrap}) {
        expect_complete_and_disjoint(runtime, from(numbers), world, remainder);
        expect_complete_and_disjoint(runtime, from(numbers) | shuffle(), world, remainder);
      }
  }
}

TEST(Shard, RefusesARankThatIsNotBelowTheWorld) {
  EXPECT_THROW(shard({.rank = 2, .world = 2}), error);
  EXPECT_THROW(shard({.rank = 0, .world = 0}), error);
}

TEST(Shard, ReadsTheRankFromTheLauncher) {
  setenv("RANK", "3", 1);
  setenv("WORLD_SIZE", "8", 1);
  EXPECT_EQ(rank_from_environment().rank, 3u);
  EXPECT_EQ(rank_from_environment().world, 8u);
  setenv("RANK", "three", 1);
  EXPECT_THROW(rank_from_environment(), error);
  setenv("RANK", "8", 1);
  EXPECT_THROW(rank_from_environment(), error);
  unsetenv("RANK");
  unsetenv("WORLD_SIZE");
}

}  // namespace lade
