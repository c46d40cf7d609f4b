#include <lade/from.hpp>
#include <lade/shard.hpp>

#include "support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
