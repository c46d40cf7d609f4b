#include <lade/batch.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/filter.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/shuffle.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace lade::chain_test {

using namespace test;
using testing::ElementsAre;
using testing::ThrowsMessage;

static int twice(int i) { return 2 * i; }
static bool is_even(int i) { return i % 2 == 0; }
static std::string text(int i) { return std::to_string(i); }

TEST(Chain, IsItsStagesOneAfterTheOther) {
  runtime runtime({.threads = 2});
  auto prepare = chain(filter(is_even), map(twice), map(text));
  EXPECT_THAT(collect(runtime, from(numbers{6}) | prepare), ElementsAre("0", "4", "8"));
  EXPECT_THAT(collect(runtime, from(numbers{3}) | map(twice) | prepare | batch(2)),
              ElementsAre(ElementsAre("0", "4"), ElementsAre("8")));
}

TEST(Chain, OfNothingChangesNothing) {
  runtime runtime({.threads = 1});
  auto list = from(std::vector{1, 2, 3});
  EXPECT_THAT(collect(runtime, list | chain()), ElementsAre(1, 2, 3));
  static_assert(std::is_same_v<decltype(list | chain()), decltype(list)>);
}

TEST(Chain, MayBeAStageOfAChain) {
  runtime runtime({.threads = 2});
  auto thrice_deep = chain(map(twice), chain(map(twice), chain(chain(), map(twice)), map(text)));
  EXPECT_THAT(collect(runtime, from(numbers{3}) | thrice_deep), ElementsAre("0", "8", "16"));
  EXPECT_THAT(collect(runtime, from(numbers{2}) | chain(chain(map(twice)))), ElementsAre(0, 2));
}

TEST(Chain, KeepsASourceReachedByIndex) {
  auto list = from(std::vector{1, 2, 3, 4}) | chain(shuffle({.seed = 1}), skip(1), take(2));
  runtime runtime({.threads = 1});
  auto direct = from(std::vector{1, 2, 3, 4}) | shuffle({.seed = 1}) | skip(1) | take(2);
  EXPECT_EQ(collect(runtime, list), collect(runtime, direct));
}

TEST(Chain, ItsStagesKeepTheirNamesInErrorsAndStatistics) {
  runtime runtime({.threads = 1});
  auto refuse = [](int i) -> int { throw std::runtime_error("bad " + std::to_string(i)); };
  auto failing = chain(map(twice, {.name = "double"}), map(refuse, {.name = "refuse"}));
  auto items = runtime.run(from(numbers{1}) | failing);
  EXPECT_THAT([&] { collect(items); }, ThrowsMessage<stage_error>("refuse (0): bad 0"));
  auto stages = items.statistics().stages;
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[1].name, "double");
}

TEST(Chain, ResumesFromAState) {
  runtime runtime({.threads = 2});
  auto all = from(std::vector{0, 1, 2, 3, 4, 5}) | chain(map(twice), filter(is_even));
  auto items = runtime.run(all);
  items.wait_next();
  items.wait_next();
  EXPECT_THAT(collect(runtime, all, {.state = items.state()}), ElementsAre(4, 6, 8, 10));
}

}  // namespace lade::chain_test
