#include <lade/cut.hpp>
#include <lade/epochs.hpp>
#include <lade/from.hpp>
#include <lade/run.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace lade::shard_test {

using test::collect;
using test::numbers;
using testing::Pair;
using testing::ThrowsMessage;

TEST(Shard, OfAListInAVariableMakesOnlyItsItems) {
  runtime runtime({.threads = 1});
  std::vector<int> made;
  auto make = [&](std::uint64_t i) {
    made.push_back(static_cast<int>(i));
    return static_cast<int>(i);
  };
  pipeline<int> list = from_index(100, make);
  pipeline<int> shuffled = list | shuffle({.seed = 7});
  pipeline<int> mine = shuffled | shard({.rank = 1, .world = 4});
  auto items = collect(runtime, mine | take(20) | skip(5));
  EXPECT_EQ(made, items);
  EXPECT_EQ(items.size(), 15u);
  EXPECT_EQ(items, collect(runtime, from_index(100, make) | shuffle({.seed = 7}) |
                                        shard({.rank = 1, .world = 4}) | take(20) | skip(5)));
}

constexpr remainder remainders[] = {remainder::drop, remainder::pad, remainder::wrap,
                                    remainder::keep};

TEST(Shard, OfAStreamIsThatOfAList) {
  runtime runtime({.threads = 1});
  for (auto remainder : remainders)
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

static std::vector<int> sorted_parts(const std::vector<std::vector<int>>& parts) {
  std::vector<int> all;
  for (auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return test::sorted(all);
}

// What each of the ranks takes in epoch after epoch.
static std::vector<std::vector<std::vector<int>>> epochs_of_ranks(runtime& where,
                                                                  const pipeline<int>& shuffled,
                                                                  std::uint64_t world,
                                                                  std::uint64_t count) {
  std::vector<std::vector<std::vector<int>>> parts(count);
  for (std::uint64_t rank = 0; rank < world; ++rank) {
    auto mine = shuffled | shard({.rank = rank, .world = world, .remainder = remainder::keep});
    for (auto& epoch : epochs(where, mine, count)) parts[epoch.epoch()].push_back(collect(epoch));
  }
  return parts;
}

TEST(Shard, BehindAShuffleAssignsAllItemsAgainInEveryEpoch) {
  runtime runtime({.threads = 2});
  auto list = from(test::up_to(103)) | shuffle({.seed = 3});
  auto stream = from(numbers{103}) | shuffle({.seed = 3, .window = 20});
  for (auto& shuffled : {list, stream})
    for (std::uint64_t world : {1u, 2u, 3u, 8u}) {
      auto parts = epochs_of_ranks(runtime, shuffled, world, 5);
      for (std::size_t epoch = 0; epoch < 5; ++epoch) {
        ASSERT_EQ(sorted_parts(parts[epoch]), test::up_to(103)) << "epoch " << epoch;
        for (auto& part : parts[epoch]) EXPECT_GE(part.size(), 103 / world);
        for (std::size_t before = 0; before < epoch; ++before)
          EXPECT_NE(parts[epoch][0], parts[before][0]) << world << " ranks";
      }
    }
}

static std::size_t size_of_shard(std::size_t items, std::uint64_t rank, std::uint64_t world,
                                 remainder remainder) {
  if (remainder == remainder::drop) return items / world;
  if (remainder == remainder::keep) return items / world + (rank < items % world);
  return (items + world - 1) / world;
}

// Numbers that cannot be copied.
static async_generator<std::unique_ptr<int>> count_each(int end) {
  for (int i = 0; i < end; ++i) {
    auto number = std::make_unique<int>(i);
    co_yield number;
  }
}

struct one_each {
  int end;
  async_generator<std::unique_ptr<int>> operator()() const { return count_each(end); }
};

// Shards of a list of so many items: together they are all that drop leaves, each once, and what
// pad and wrap repeat.
static void expect_complete_and_disjoint(runtime& where, const pipeline<int>& list,
                                         std::uint64_t world, remainder remainder) {
  auto whole = collect(where, list);
  std::vector<int> all;
  for (std::uint64_t rank = 0; rank < world; ++rank) {
    auto mine = collect(where, list | shard({rank, world, remainder}));
    ASSERT_EQ(mine.size(), size_of_shard(whole.size(), rank, world, remainder));
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
      for (auto remainder : remainders) {
        expect_complete_and_disjoint(runtime, from(numbers), world, remainder);
        expect_complete_and_disjoint(runtime, from(numbers) | shuffle(), world, remainder);
      }
  }
}

TEST(Shard, UnevenPartsOfAStreamNeedNoCopies) {
  runtime runtime({.threads = 1});
  auto numbers = from(one_each{5}) | shard({.rank = 0, .world = 2, .remainder = remainder::keep});
  std::vector<int> values;
  for (auto& each : collect(runtime, numbers)) values.push_back(*each);
  EXPECT_EQ(values, (std::vector{0, 2, 4}));
}

TEST(Shard, RefusesARankThatIsNotBelowTheWorld) {
  EXPECT_THAT([] { shard({.rank = 2, .world = 2}); }, ThrowsMessage<error>("shard: rank 2 of 2"));
  EXPECT_THAT([] { shard({.world = 2, .remainder = remainder(9)}); },
              ThrowsMessage<error>("shard: a value of remainder that does not exist"));
  EXPECT_THAT([] { shard({.rank = 0, .world = 0}); }, ThrowsMessage<error>("shard: rank 0 of 0"));
}

using variables = std::vector<std::pair<std::string, std::string>>;

// The environment without any launcher but these variables, for a while.
class launched {
 public:
  explicit launched(const variables& all) {
    for (auto* name : names) unsetenv(name);
    for (auto& [name, value] : all) setenv(name.c_str(), value.c_str(), 1);
  }
  launched(const launched&) = delete;
  ~launched() {
    for (auto* name : names) unsetenv(name);
  }

 private:
  static constexpr const char* names[] = {
      "RANK",         "WORLD_SIZE",           "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
      "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"};
};

static std::pair<std::uint64_t, std::uint64_t> rank_of(const variables& set) {
  launched by(set);
  auto options = rank_from_environment();
  return {options.rank, options.world};
}

TEST(Shard, ReadsTheRankFromTheLauncher) {
  EXPECT_THAT(rank_of({}), Pair(0, 1));
  EXPECT_THAT(rank_of({{"RANK", "3"}, {"WORLD_SIZE", "8"}}), Pair(3, 8));
  EXPECT_THAT(rank_of({{"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "4"}}), Pair(2, 4));
  EXPECT_THAT(rank_of({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}), Pair(1, 2));
}

TEST(Shard, TakesTheFirstLauncherThatSaysBoth) {
  variables all{{"RANK", "3"},
                {"WORLD_SIZE", "8"},
                {"OMPI_COMM_WORLD_RANK", "1"},
                {"OMPI_COMM_WORLD_SIZE", "2"},
                {"SLURM_PROCID", "2"},
                {"SLURM_STEP_NUM_TASKS", "4"}};
  EXPECT_THAT(rank_of(all), Pair(3, 8));
  EXPECT_THAT(rank_of({all.begin() + 2, all.end()}), Pair(1, 2)) << "mpirun in a job of Slurm";
  EXPECT_THAT(rank_of({all.begin() + 1, all.end()}), Pair(1, 2)) << "a world size of one's own";
  EXPECT_THAT(rank_of({all.begin() + 3, all.end()}), Pair(2, 4));
}

// srun has not started it: a shell of salloc has no rank, a script of sbatch no step.
TEST(Shard, IsAloneInAnAllocationOfSlurm) {
  EXPECT_THAT(rank_of({{"SLURM_NTASKS", "4"}}), Pair(0, 1));
  EXPECT_THAT(rank_of({{"SLURM_PROCID", "0"}}), Pair(0, 1));
  EXPECT_THAT(rank_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}), Pair(0, 1));
}

TEST(Shard, NamesAVariableOfTheLauncherThatIsMissingOrMakesNoSense) {
  const std::pair<variables, std::string> wrong[] = {
      {{{"RANK", "3"}}, "read RANK and WORLD_SIZE: WORLD_SIZE is not set"},
      {{{"WORLD_SIZE", "8"}}, "read RANK and WORLD_SIZE: RANK is not set"},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}},
       "read OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE: OMPI_COMM_WORLD_RANK is not set"},
      {{{"RANK", "8"}, {"WORLD_SIZE", "8"}}, "read RANK and WORLD_SIZE: rank 8 of 8"},
      {{{"RANK", "three"}, {"WORLD_SIZE", "8"}}, "read RANK: not a number: three"},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "8"}}, "read RANK: not a number: -1"},
      {{{"RANK", ""}, {"WORLD_SIZE", "8"}}, "read RANK: not a number: "},
      {{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2x"}},
       "read SLURM_STEP_NUM_TASKS: not a number: 2x"},
      {{{"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "2"}},
       "read SLURM_PROCID and SLURM_STEP_NUM_TASKS: rank 2 of 2"},
      {{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "99999999999999999999"}},
       "read OMPI_COMM_WORLD_SIZE: not a number: 99999999999999999999"}};
  for (auto& [set, text] : wrong)
    EXPECT_THAT([&given = set] { rank_of(given); }, ThrowsMessage<error>(text));
}

}  // namespace lade::shard_test
