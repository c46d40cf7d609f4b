#include <lade/batch.hpp>
#include <lade/cache.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/epochs.hpp>
#include <lade/equal_steps.hpp>
#include <lade/error.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/metrics.hpp>
#include <lade/profile.hpp>
#include <lade/route.hpp>
#include <lade/run.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>
#include <lade/stats.hpp>
#include <lade/tee.hpp>

#include "../support/pipelines.hpp"
#include "../support/resume.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lade::equal_steps_test {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;

using ints = std::vector<int>;
using steps = std::vector<std::pair<ints, bool>>;  // batches, and whether they are repeats

static steps values_of(std::vector<step_of<ints>> taken) {
  steps all;
  for (auto& each : taken) all.emplace_back(std::move(*each), each.is_repeat());
  return all;
}

// Numbers, of which the broken ones fail and are skipped.
static auto without(std::set<int> broken) {
  auto pass = [broken = std::move(broken)](int number) {
    if (broken.contains(number)) throw std::runtime_error("broken");
    return number;
  };
  return map(pass, {.concurrency = 2, .on_error = on_error::skip});
}

static pipeline<int> rank_of_two(int size, std::uint64_t rank) {
  return from(up_to(size)) | shard({.rank = rank, .world = 2});
}

TEST(EqualSteps, ARankWithFailuresRepeatsItsFirstItems) {
  runtime runtime({.threads = 2});
  auto mine = [&](std::uint64_t rank) {
    return rank_of_two(16, rank) | without({1, 5, 9}) | batch(2) | equal_steps();
  };
  auto whole = runtime.run(mine(0));
  EXPECT_THAT(values_of(take_some(whole, 9)),
              ElementsAre(Pair(ints{0, 2}, false), Pair(ints{4, 6}, false),
                          Pair(ints{8, 10}, false), Pair(ints{12, 14}, false)));
  EXPECT_EQ(whole.statistics().stages.back().repeated, 0u);
  auto short_one = runtime.run(mine(1));
  EXPECT_THAT(values_of(take_some(short_one, 9)),
              ElementsAre(Pair(ints{3, 7}, false), Pair(ints{11, 13}, false), Pair(ints{15}, false),
                          Pair(ints{3, 7}, true)));
  auto stage = short_one.statistics().stages.back();
  EXPECT_EQ(stage.name, "equal_steps");
  EXPECT_EQ(stage.repeated, 1u);
  EXPECT_EQ(stage.out, 4u);
}

TEST(EqualSteps, RepeatsAreCountedInReportsAndMetrics) {
  runtime runtime({.threads = 1});
  auto items = runtime.run(from(up_to(4)) | without({0}) | batch(1) | equal_steps());
  take_some(items, 3);
  auto before = items.statistics();
  take_some(items, 9);
  auto now = items.statistics();
  EXPECT_EQ((now - now).stages.back().repeated, 0u);
  EXPECT_EQ(now.stages.back().repeated, 1u);
  EXPECT_THAT(to_json(now), HasSubstr("\"repeated\":1"));
  metrics all;
  all.add(now);
  EXPECT_THAT(all.text(), HasSubstr("lade_stage_repeats_total{stage=\"equal_steps\"} 1"));
}

// The pipeline of a rank, of which some numbers fail, and what it makes.
struct short_rank {
  std::uint64_t seed;
  std::set<int> broken;
  int size;
  std::size_t batch_size;
  bool in_window;
  bool of_two_lists;

  explicit short_rank(random& draw) : seed(draw()) {
    size = 1 + static_cast<int>(draw.below(60));
    for (auto i = draw.below(static_cast<std::uint64_t>(size)); i > 0; --i)
      broken.insert(static_cast<int>(draw.below(static_cast<std::uint64_t>(size))));
    batch_size = 1 + draw.below(5);
    in_window = draw.below(2) == 1;
    of_two_lists = draw.below(2) == 1;
  }

  pipeline<ints> batches(random& draw) const {
    shard_options part{.rank = 1, .world = 2, .remainder = remainder::wrap};
    auto list = from(up_to(size)) | shuffle({.seed = seed}) | shard(part);
    auto items = list | without(broken);
    if (of_two_lists) items = merge(std::vector{items, list});
    if (in_window) items = items | shuffle({.seed = seed, .window = 5});
    if (draw.below(2)) items = items | prefetch(1 + draw.below(4));
    return items | batch(batch_size);
  }
};

TEST(EqualSteps, StepsOfInterruptedRunsAreThoseOfAnUninterruptedOne) {
  auto seed = new_seed();
  random draw(seed);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    short_rank what(draw);
    random same(draw());
    auto batches = what.batches(same);
    runtime where({.threads = 2});
    run_options options{.epoch = 1};
    auto own = collect(where, batches, options);
    if (own.empty()) continue;
    steps expected;
    for (auto& each : own) expected.emplace_back(each, false);
    for (std::size_t k = 0; expected.size() < *batches.size(); ++k)
      expected.emplace_back(own[k % own.size()], true);
    ASSERT_EQ(values_of(collect(where, batches | equal_steps(), options)), expected);
    random shape(draw());
    auto make = [&] {
      auto again = shape;
      return what.batches(again) | equal_steps();
    };
    ASSERT_EQ(values_of(with_interruptions(where, make, 1 + draw.below(4), options)), expected);
  }
}

TEST(EqualSteps, AllRanksEndAtTheSameStepWithAnyNumbersOfRanks) {
  auto seed = new_seed();
  random draw(seed);
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    const int size = 12 * static_cast<int>(1 + draw.below(9));
    std::set<int> broken;
    for (auto k = draw.below(3); k > 0; --k)
      broken.insert(static_cast<int>(draw.below(static_cast<std::uint64_t>(size))));
    auto list = from(up_to(size)) | shuffle({.seed = draw()});
    std::optional<state> merged;
    std::size_t made = 0;
    const auto total = static_cast<std::size_t>(size / 12);
    while (made < total) {
      runtime where({.threads = 2});
      std::uint64_t worlds[] = {1, 2, 3, 4};
      auto world = worlds[draw.below(4)];
      auto wanted = 1 + draw.below(4);
      std::vector<state> states;
      for (std::uint64_t rank = 0; rank < world; ++rank) {
        auto mine = list | shard({.rank = rank, .world = world}) | without(broken);
        auto items =
            where.run(mine | batch(12 / world) | equal_steps(), {.epoch = 1, .state = merged});
        ASSERT_EQ(take_some(items, wanted).size(), std::min(wanted, total - made));
        states.push_back(state_from_json(to_json(items.state())));
      }
      merged = merge(states);
      made += std::min(wanted, total - made);
      ASSERT_EQ(merged->steps_taken, made);
      ASSERT_TRUE(world == 1 || merged->steps_repeated == 0) << "repeats begin anew";
    }
  }
}

TEST(EqualSteps, AStreamIsReadAgainAlsoBehindAResume) {
  runtime runtime({.threads = 1});
  auto make = [] {
    return from(numbers{9}) | without({0, 4}) | batch(2) | equal_steps({.steps = 11});
  };
  auto whole = values_of(collect(runtime, make()));
  ASSERT_EQ(whole.size(), 11u);
  EXPECT_EQ(whole[3], std::pair(ints{8}, false));
  EXPECT_EQ(whole[4], std::pair(ints{1, 2}, true));
  for (std::size_t count = 1; count < 11; ++count)
    EXPECT_EQ(values_of(with_interruptions(runtime, make, count)), whole);
}

TEST(EqualSteps, EveryEpochHasAsManySteps) {
  runtime runtime({.threads = 2});
  auto mine = from(up_to(30)) | shuffle() | without({0, 7, 8, 9, 20}) | batch(4) | equal_steps();
  ASSERT_EQ(mine.size(), 8u);
  for (auto& epoch : epochs(runtime, mine, 4)) {
    auto taken = values_of(collect(epoch));
    ASSERT_EQ(taken.size(), 8u);
    EXPECT_FALSE(taken[6].second);
    EXPECT_EQ(taken[7], std::pair(taken[0].first, true));
  }
}

TEST(EqualSteps, RepeatsTheItemsAsOftenAsNeeded) {
  runtime runtime({.threads = 1});
  auto mine = from(up_to(7)) | without({0, 1, 2, 4, 6}) | batch(1) | equal_steps();
  ints all;
  for (auto& each : collect(runtime, mine)) all.push_back(each->front());
  EXPECT_EQ(all, (ints{3, 5, 3, 5, 3, 5, 3}));
}

TEST(EqualSteps, WithoutAnItemToRepeatTheRunFails) {
  runtime runtime({.threads = 1});
  auto all_fail = rank_of_two(8, 1) | without({1, 3, 5, 7}) | batch(2) | equal_steps();
  EXPECT_THAT([&] { collect(runtime, all_fail); },
              ThrowsMessage<error>("equal_steps: repeat an item of this rank: it has none, or all "
                                   "have failed, and 2 more steps are to be made"));
  auto none = from(up_to(1)) | shard({.rank = 1, .world = 2, .remainder = remainder::keep}) |
              batch(2) | equal_steps({.steps = 1});
  EXPECT_THAT([&] { collect(runtime, none); }, ThrowsMessage<error>(HasSubstr("it has none")));
  EXPECT_TRUE(collect(runtime, rank_of_two(1, 1) | batch(2) | equal_steps()).empty());
}

TEST(EqualSteps, AFailureThatIsNotSkippedEndsTheRun) {
  runtime runtime({.threads = 1});
  auto fails = [](int i) {
    if (i == 5) throw std::runtime_error("broken");
    return i;
  };
  auto items = runtime.run(from(up_to(8)) | map(fails) | batch(2) | equal_steps());
  EXPECT_EQ(take_some(items, 2).size(), 2u);
  EXPECT_THAT([&] { collect(items); }, ThrowsMessage<error>(HasSubstr("broken")));
}

TEST(EqualSteps, IsRefusedBeforeARepeatAndTwice) {
  runtime runtime({.threads = 1});
  auto list = from(up_to(8));
  auto says = [](const char* why) { return ThrowsMessage<error>(HasSubstr(why)); };
  auto rounds = list | equal_steps({.steps = 3}) | repeat(2);
  EXPECT_THAT([&] { collect(runtime, rounds); }, says("equal_steps: repeat is behind it"));
  auto inside = merge<step_of<int>>({rounds, list | equal_steps()});
  EXPECT_THAT([&] { collect(runtime, inside); }, says("equal_steps: repeat is behind it"));
  auto twice = merge<step_of<int>>({list | equal_steps(), list | equal_steps()});
  EXPECT_THAT([&] { collect(runtime, twice); }, says("equal_steps: there is more than one"));
  EXPECT_EQ(collect(runtime, list | equal_steps({.steps = 3}) | repeat(1)).size(), 3u);
  EXPECT_EQ(collect(runtime, list | repeat(2) | equal_steps()).size(), 16u);
}

TEST(EqualSteps, NeedsTheNumberOfSteps) {
  auto says = [](const char* why) { return ThrowsMessage<error>(HasSubstr(why)); };
  auto some = [](int i) { return i % 2 == 0; };
  EXPECT_THAT([&] { rank_of_two(8, 0) | filter(some) | equal_steps(); },
              says("equal_steps: the number of steps is not known before a run"));
  auto uneven = from(up_to(7)) | shard({.rank = 1, .world = 2, .remainder = remainder::keep});
  EXPECT_THAT([&] { uneven | equal_steps(); },
              says("equal_steps: with remainder::keep a rank may have a step more than others"));
  runtime runtime({.threads = 1});
  EXPECT_EQ(collect(runtime, uneven | equal_steps({.steps = 4})).size(), 4u);
  EXPECT_EQ(collect(runtime, uneven | equal_steps({.steps = 2})).size(), 2u);
  auto alone = from(up_to(7)) | shard({.rank = 0, .world = 1, .remainder = remainder::keep});
  EXPECT_EQ((alone | equal_steps()).size(), 7u);
}

TEST(EqualSteps, OfAPathKnowsTheStagesBeforeThePath) {
  auto list = from(up_to(60));
  auto keeping = list | shard({.rank = 1, .world = 7, .remainder = remainder::keep});
  auto same = map([](int i) { return i; });
  auto zero = [](int) { return 0; };
  auto unwrap = map([](const step_of<int>& step) { return *step; });
  runtime runtime({.threads = 2});
  auto paths = list | tee(chain(same, equal_steps(), unwrap), chain());
  EXPECT_EQ(collect(runtime, paths).size(), 60u);
  EXPECT_THAT([&] { keeping | tee(equal_steps(), chain()); },
              ThrowsMessage<error>(HasSubstr("with remainder::keep a rank may have a step more")));
  EXPECT_THAT([&] { list | route(zero, chain(equal_steps(), unwrap), same); },
              ThrowsMessage<error>(HasSubstr("the number of steps is not known before a run")));
}

TEST(EqualSteps, RefusesTheStateOfAnotherNumberOfSteps) {
  runtime runtime({.threads = 1});
  auto list = from(up_to(24));
  auto items = runtime.run(list | batch(4) | equal_steps());
  take_some(items, 2);
  EXPECT_THAT([&] { collect(runtime, list | batch(2) | equal_steps(), {.state = items.state()}); },
              ThrowsMessage<error>(HasSubstr("it is of an epoch of 6 steps, this one has 12")));
}

TEST(EqualSteps, StatesOfDifferentStepsAreNotMerged) {
  runtime runtime({.threads = 1});
  std::vector<state> states;
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    auto items = runtime.run(rank_of_two(24, rank) | batch(2) | equal_steps());
    take_some(items, 2 + rank);
    states.push_back(items.state());
  }
  EXPECT_THAT([&] { merge(states); },
              ThrowsMessage<error>("merge states: they differ in how many steps they have taken"));
}

TEST(EqualSteps, FromMergedStatesRepeatsRestart) {
  runtime runtime({.threads = 1});
  auto mine = [](std::uint64_t rank) {
    return rank_of_two(24, rank) | without({0, 2, 4, 6}) | batch(2) | equal_steps();
  };
  std::vector<state> states;
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    auto items = runtime.run(mine(rank));
    take_some(items, 5);
    states.push_back(items.state());
  }
  EXPECT_EQ(states[0].steps_repeated, 1u);
  auto merged = merge(states);
  EXPECT_EQ(merged.steps_repeated, 0u);
  EXPECT_THAT(values_of(collect(runtime, mine(0), {.state = merged})),
              ElementsAre(Pair(ints{21}, false)));
}

TEST(EqualSteps, TheStateHasNoChoicesOfRepeats) {
  runtime runtime({.threads = 1});
  auto list = from(up_to(6)) | without({2, 3});
  auto in_turn = merge(std::vector{list, list});
  auto items = runtime.run(in_turn | shuffle({.window = 3}) | batch(1) | equal_steps());
  EXPECT_EQ(take_some(items, 12).size(), 12u);
  EXPECT_EQ(items.state().chosen.size(), 2u);
}

TEST(EqualSteps, HasNoStateBeforeStagesThatGroupSteps) {
  runtime runtime({.threads = 1});
  auto items = runtime.run(from(up_to(24)) | batch(2) | equal_steps() | batch(2));
  take_some(items, 1);
  EXPECT_THAT([&] { items.state(); },
              ThrowsMessage<error>(HasSubstr("equal_steps is before batch")));
}

TEST(EqualSteps, HasNoStateBeforeStagesThatDropSteps) {
  runtime runtime({.threads = 1});
  auto odd = [](const step_of<int>& step) { return *step % 2 == 1; };
  auto items = runtime.run(from(up_to(24)) | equal_steps() | filter(odd));
  take_some(items, 1);
  EXPECT_THAT([&] { items.state(); },
              ThrowsMessage<error>(HasSubstr("equal_steps is before a stage that groups, splits")));
}

TEST(EqualSteps, HasNoStateInAPath) {
  runtime runtime({.threads = 1});
  auto same = [](int item) { return item; };
  auto items = runtime.run(from(up_to(24)) | tee(chain(equal_steps({.steps = 24})), map(same)));
  take_some(items, 1);
  EXPECT_THAT([&] { items.state(); }, ThrowsMessage<error>(HasSubstr("equal_steps is in a path")));
}

TEST(EqualSteps, HasNoStateBeforePathsThatDropSteps) {
  runtime runtime({.threads = 1});
  auto odd = [](const step_of<int>& step) { return *step % 2 == 1; };
  auto value = [](const step_of<int>& step) { return *step; };
  auto items = runtime.run(from(up_to(24)) | equal_steps() | tee(map(value), filter(odd)));
  take_some(items, 1);
  EXPECT_THAT([&] { items.state(); },
              ThrowsMessage<error>(HasSubstr("equal_steps is before a stage that groups, splits")));
}

TEST(EqualSteps, HasNoStateBeforeStagesThatSkipFailures) {
  runtime runtime({.threads = 1});
  auto numbers = from(up_to(24)) | equal_steps();
  auto value = [](const step_of<int>& step) { return *step; };
  auto state_behind = [&](const map_options& options, on_error of_run) {
    auto items = runtime.run(numbers | map(value, options), {.on_error = of_run});
    take_some(items, 1);
    return items.state();
  };
  const auto refused =
      ThrowsMessage<error>(HasSubstr("equal_steps is before a stage that groups, splits"));
  EXPECT_THAT([&] { state_behind({}, on_error::skip); }, refused);
  EXPECT_THAT([&] { state_behind({.on_error = on_error::skip}, on_error::fail); }, refused);
  EXPECT_EQ(state_behind({}, on_error::fail).steps_taken, 1u);
  EXPECT_EQ(state_behind({.on_error = on_error::fail}, on_error::skip).steps_taken, 1u);
  EXPECT_EQ(state_behind({.substitute = 0}, on_error::skip).steps_taken, 1u);
}

TEST(EqualSteps, RepeatsNeedNoCopies) {
  runtime runtime({.threads = 1});
  auto items = from(up_to(3)) | map(make_fragile) | equal_steps({.steps = 5});
  std::vector<std::string> keys;
  for (auto& each : collect(runtime, items)) keys.push_back(each.key());
  EXPECT_THAT(keys, ElementsAre("f0", "f1", "f2", "f0", "f1"));
}

TEST(EqualSteps, ACacheBeforeItIsFilled) {
  runtime runtime({.threads = 1});
  std::atomic<int> calls = 0;
  auto counting = [&](int i) {
    ++calls;
    return i;
  };
  auto mine = from(up_to(8)) | map(counting) | cache() | batch(2) | equal_steps();
  for (auto& epoch : epochs(runtime, mine, 3)) EXPECT_EQ(collect(epoch).size(), 4u);
  EXPECT_EQ(calls, 8);
}

TEST(EqualSteps, AProfileRepeatsNothing) {
  runtime runtime({.threads = 1});
  auto none_left = from(up_to(4)) | without({0, 1, 2, 3}) | equal_steps();
  EXPECT_NO_THROW(profile(runtime, none_left, {.items = 4}));
}

// What ranks say to each other in a step.
class voting {
 public:
  explicit voting(unsigned ranks) : ranks_(ranks) {}

  // Whether any rank has passed true in this round, in which all take part.
  bool any(bool mine) {
    std::unique_lock lock(mutex_);
    auto round = round_;
    yes_ = yes_ || mine;
    if (++votes_ == ranks_) {
      result_ = std::exchange(yes_, false);
      votes_ = 0;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return round_ != round; });
    return result_;
  }

 private:
  const unsigned ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned votes_ = 0;
  unsigned round_ = 0;
  bool yes_ = false;
  bool result_ = false;
};

TEST(EndTogether, AllRanksEndWithTheFirst) {
  constexpr unsigned ranks = 3;
  voting votes(ranks);
  std::vector<std::size_t> made(ranks);
  std::vector<std::size_t> left(ranks);
  auto run_rank = [&](std::uint64_t rank) {
    runtime where({.threads = 1});
    auto mine = from(up_to(36)) | shard({.rank = rank, .world = ranks}) | without({1, 4, 7, 8});
    auto items =
        where.run(mine | batch(2) | end_together([&](bool ended) { return votes.any(ended); }));
    made[rank] = collect(items).size();
    auto rest = mine | batch(2) | end_together([](bool ended) { return ended; });
    left[rank] = collect(where, rest, {.state = items.state()}).size();
  };
  std::vector<std::thread> threads;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) threads.emplace_back(run_rank, rank);
  for (auto& each : threads) each.join();
  EXPECT_EQ(made, (std::vector<std::size_t>{5, 5, 5}));
  EXPECT_EQ(left, (std::vector<std::size_t>{1, 0, 1}));
}

TEST(EndTogether, AProfileAsksNoOtherRank) {
  runtime runtime({.threads = 1});
  std::atomic<int> calls = 0;
  auto asking = from(up_to(4)) | end_together([&](bool ended) {
                  ++calls;
                  return ended;
                });
  profile(runtime, asking, {.items = 4});
  EXPECT_EQ(calls, 0);
}

TEST(EndTogether, RefusesAFunctionThatDoesNotSeeThatTheRankHasEnded) {
  runtime runtime({.threads = 1});
  auto never = from(up_to(2)) | end_together([](bool) { return false; });
  EXPECT_THAT([&] { collect(runtime, never); },
              ThrowsMessage<error>("end_together: ask whether a rank has ended: the function "
                                   "returned false although this rank has ended"));
  EXPECT_THAT([] { end_together(nullptr); },
              ThrowsMessage<error>("end_together: there is no function"));
}

}  // namespace lade::equal_steps_test
