#include <lade/autotune.hpp>
#include <lade/batch.hpp>
#include <lade/cache.hpp>
#include <lade/cut.hpp>
#include <lade/error.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/profile.hpp>
#include <lade/route.hpp>
#include <lade/run.hpp>
#include <lade/shuffle.hpp>
#include <lade/sleep.hpp>
#include <lade/this_context.hpp>
#include <lade/thread_pool.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace lade::profile_test {

using namespace test;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

static std::vector<std::string> names_of(const std::vector<stage_profile>& stages) {
  std::vector<std::string> names;
  for (auto& each : stages) names.push_back(each.stage);
  return names;
}

static std::vector<unsigned> concurrency_of(const stage_profile& stage) {
  std::vector<unsigned> all;
  for (auto& each : stage.trials) all.push_back(each.concurrency);
  return all;
}

static int refuse_odd(int i) {
  if (i % 2 == 1) throw std::runtime_error("odd");
  return i;
}

static task<int> fetch(int i) {
  co_await this_context();
  co_return i;
}

TEST(Profile, RunsEveryStageAloneAtSeveralConcurrencies) {
  runtime runtime({.threads = 4});
  auto stages = profile(runtime,
                        from(numbers{-1}) | map(fetch, {.concurrency = 2, .name = "fetch"}) |
                            map([](int i) { return 2 * i; }, {.concurrency = 4, .name = "twice"}) |
                            filter([](int i) { return i % 4 == 0; }, {.name = "even"}) | batch(4),
                        {.items = 16});
  EXPECT_THAT(names_of(stages), ElementsAre("source", "fetch", "twice", "even", "batch"));
  EXPECT_THAT(concurrency_of(stages[0]), ElementsAre(0u));
  EXPECT_THAT(concurrency_of(stages[1]), ElementsAre(1u, 2u, 4u, 8u));
  EXPECT_THAT(concurrency_of(stages[2]), ElementsAre(1u, 2u, 4u));
  EXPECT_TRUE(stages[1].trials[1].as_described);
  EXPECT_FALSE(stages[1].trials[0].as_described);
  std::vector<std::uint64_t> given;
  for (auto& each : stages) given.push_back(each.trials.back().items);
  EXPECT_THAT(given, ElementsAre(16u, 16u, 16u, 8u, 2u));
}

static async_generator<int> fetch_parts(int i) {
  co_await sleep(1ms);
  co_yield i;
}

TEST(Profile, TriesMoreThanTheThreadsOnlyOfFunctionsThatWait) {
  runtime runtime({.threads = 2});
  std::array<unsigned, 2> tried{4, 16};
  auto compute = [](int i) { return std::vector{i}; };
  auto stages = profile(runtime,
                        from(numbers{-1}) | flat_map(fetch_parts, {.concurrency = automatic}) |
                            flat_map(compute, {.concurrency = 8}),
                        {.items = 16, .concurrency = tried, .run = {.tune = {.most = 3}}});
  EXPECT_THAT(concurrency_of(stages[1]), ElementsAre(3u, 4u, 16u));
  EXPECT_THAT(concurrency_of(stages[2]), ElementsAre(2u, 8u));
}

TEST(Profile, PreparesTheInputOfAStageBeforeItStarts) {
  runtime runtime({.threads = 2});
  std::atomic<int> before = 0;
  std::atomic<bool> mixed = false;
  auto count = [&](int i) {
    ++before;
    return i;
  };
  auto look = [&](int i) {
    mixed = mixed || before % 10 != 0;
    return i;
  };
  std::array<unsigned, 1> once{1};
  auto counted = from(numbers{10}) | map(count) | batch(10) | unbatch() | map(look);
  profile(runtime, counted, {.items = 10, .concurrency = once});
  EXPECT_FALSE(mixed);
  EXPECT_GE(before, 60);
}

TEST(Profile, TakesOneRoundOfARepeat) {
  runtime runtime({.threads = 2});
  auto endless = from(numbers{6}) | map(fetch, {.concurrency = 2, .name = "fetch"}) |
                 repeat(~std::uint64_t{0}) |
                 filter([](int i) { return i % 2 == 0; }, {.name = "even"});
  std::array<unsigned, 1> once{1};
  auto stages = profile(runtime, endless, {.items = 4, .concurrency = once});
  EXPECT_THAT(names_of(stages), ElementsAre("source", "fetch", "even"));
  std::vector<std::uint64_t> given;
  for (auto& each : stages) given.push_back(each.trials.back().items);
  EXPECT_THAT(given, ElementsAre(4u, 4u, 2u));
}

TEST(Profile, LeavesCachesAsTheyAre) {
  runtime runtime({.threads = 2});
  std::atomic<int> calls = 0;
  auto count = [&](int i) {
    ++calls;
    return i;
  };
  auto cached = from(numbers{20}) | map(count) | cache() | map([](int i) { return i; });
  profile(runtime, cached, {.items = 4});
  calls = 0;
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(collect(runtime, cached).size(), 20u);
  EXPECT_EQ(calls, 20);
  EXPECT_THAT(names_of(profile(runtime, cached, {.items = 4})), ElementsAre("cache", "map (2)"));
}

TEST(Profile, KnowsStagesOfSeveralSourcesPathsAndParts) {
  runtime runtime({.threads = 2});
  thread_pool own({.threads = 1});
  auto add = [](int i) { return i + 1; };
  auto both = [](int i) { return std::vector<int>{i, i}; };
  auto small = from(numbers{100}) | map(add, {.name = "small"});
  auto large = from(numbers{100}) | map(add, {.pool = &own, .name = "large"});
  auto made = merge(std::vector<pipeline<int>>{small, large}) | flat_map(both, {.name = "both"}) |
              route([](int i) { return i % 2; }, map(add), map(add)) | batch(4);
  auto stages = profile(runtime, made, {.items = 8});
  EXPECT_THAT(names_of(stages), ElementsAre("source (2)", "small", "source", "large", "merge",
                                            "both", "route", "batch"));
  std::vector<std::uint64_t> given;
  for (auto& each : stages) given.push_back(each.trials.back().items);
  EXPECT_THAT(given, ElementsAre(8u, 8u, 8u, 8u, 16u, 32u, 32u, 8u));
}

TEST(Profile, TakesItemsThatCannotBeCopied) {
  runtime runtime({.threads = 2});
  auto box = [](int i) { return std::make_unique<int>(i); };
  auto open = [](std::unique_ptr<int> i) { return *i; };
  auto stages =
      profile(runtime, from(numbers{5}) | map(box, {.name = "box"}) | map(open, {.name = "open"}));
  EXPECT_THAT(names_of(stages), ElementsAre("source", "box", "open"));
  for (auto& trial : stages[2].trials) EXPECT_EQ(trial.items, 5u);
}

TEST(Profile, RefusesWhatCannotWork) {
  runtime runtime({.threads = 1});
  EXPECT_THAT([&] { profile(runtime, from(numbers{1}), {.items = 0}); },
              ThrowsMessage<error>(HasSubstr("profile: items is 0; it must be from 1 to ")));
  std::array<unsigned, 2> wrong{1, 0};
  EXPECT_THAT([&] { profile(runtime, from(numbers{1}), {.concurrency = wrong}); },
              ThrowsMessage<error>(HasSubstr("profile: concurrency is 0; it must be from 1 to ")));
}

TEST(Profile, IsRefusedOnAThreadOfARuntime) {
  runtime runtime({.threads = 2});
  auto inside = [](lade::runtime* where) { return profile(*where, from(numbers{1})).size(); };
  EXPECT_THAT([&] { sync_wait(runtime, runtime.pool().run(inside, &runtime)); },
              ThrowsMessage<error>("wait for a task: a thread of a runtime must not block"));
}

TEST(Profile, ThrowsWhatAStageThrows) {
  runtime runtime({.threads = 1});
  auto refuse = [](int) -> int { throw std::runtime_error("no"); };
  EXPECT_THROW(profile(runtime, from(numbers{1}) | map(refuse)), stage_error);
}

TEST(Profile, CountsStagesWithoutANameToTheNext) {
  runtime runtime({.threads = 2});
  auto stages =
      profile(runtime, from(numbers{9}) | map([](int i) { return i; }) | take(5) | batch(2));
  EXPECT_THAT(names_of(stages), ElementsAre("source", "map", "batch"));
  EXPECT_EQ(stages[2].trials.front().items, 3u);
}

TEST(Profile, UsesTheOptionsOfTheRun) {
  runtime runtime({.threads = 2});
  auto stages = profile(runtime, from(numbers{10}) | map(refuse_odd, {.name = "refuse"}),
                        {.run = {.on_error = on_error::skip}});
  EXPECT_EQ(stages[1].trials[0].items, 5u);
}

// A program whose first run is profiled, which exits with what `work` returns.
template <class Work>
[[noreturn]] static void exit_after(Work work, const char* wanted = "8") {
  setenv("LADE_PROFILE", wanted, 1);
  int code = 0;
  {
    runtime runtime({.threads = 2});
    code = static_cast<int>(work(runtime));
  }
  std::exit(code);
}

class ProfileOfARun : public testing::Test {
 protected:
  // A property is kept for longer than the test, as what the other process has written is: the
  // check for leaks leaves such tests out.
  ProfileOfARun() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    RecordProperty("process", "another");
  }
};

TEST_F(ProfileOfARun, HasItsOptions) {
  auto items_but_odd_ones = [](runtime& where) {
    auto even = from(numbers{10}) | map(refuse_odd);
    return collect(where, even, {.on_error = on_error::skip}).size();
  };
  EXPECT_EXIT(exit_after(items_but_odd_ones), testing::ExitedWithCode(5), "is the slowest");
}

TEST_F(ProfileOfARun, DoesNotFailTheRunWhenItFails) {
  auto items_after_a_failure = [](runtime& where) {
    std::atomic<int> calls = 0;
    auto refuse_once = [&](int i) {
      if (calls++ == 0) throw std::runtime_error("not yet");
      return i;
    };
    return collect(where, from(numbers{10}) | map(refuse_once, {.concurrency = 1})).size();
  };
  EXPECT_EXIT(exit_after(items_after_a_failure), testing::ExitedWithCode(10),
              "^lade: the profile has failed: map \\(0\\): not yet\n$");
}

TEST_F(ProfileOfARun, IsNotThatOfATrial) {
  auto stages_of_a_profile = [](runtime& where) {
    auto twice = from(numbers{10}) | map([](int i) { return 2 * i; });
    auto stages = profile(where, twice);
    std::fputs("profiled\n", stderr);
    collect(where, twice);
    return stages.size();
  };
  EXPECT_EXIT(exit_after(stages_of_a_profile), testing::ExitedWithCode(2),
              "^profiled\nlade: profile of 8 items of each source\nstage .*is the slowest");
}

TEST_F(ProfileOfARun, DoesNotCountAsWaitOfTheConsumer) {
  auto is_left_out = [](runtime& where) {
    auto items = where.run(from(numbers{10}) | map([](int i) { return i; }));
    collect(items);
    auto seen = items.statistics();
    return seen.consumer_wait <= seen.elapsed;
  };
  EXPECT_EXIT(exit_after(is_left_out), testing::ExitedWithCode(1), "is the slowest");
}

static std::size_t ten_items(runtime& where) {
  return collect(where, from(numbers{10}) | map([](int i) { return i; })).size();
}

TEST_F(ProfileOfARun, SaysForHowManyItemsItIs) {
  EXPECT_EXIT(exit_after(ten_items), testing::ExitedWithCode(10),
              "^lade: profile of 8 items of each source\nstage ");
}

TEST_F(ProfileOfARun, IsOfTheFirstRankAlone) {
  auto as_second_rank = [] {
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "2", 1);
    exit_after(ten_items);
  };
  EXPECT_EXIT(as_second_rank(), testing::ExitedWithCode(10), "^$");
}

TEST_F(ProfileOfARun, AWrongNumberIsReportedAndTheRunContinues) {
  for (auto* wrong : {"many", "0", "-1", "8x", "1073741825", "99999999999999999999"}) {
    auto line =
        "^lade: no profile: LADE_PROFILE must be a number of items from 1 to 1073741824, not \"" +
        std::string(wrong) + "\"\n$";
    EXPECT_EXIT(exit_after(ten_items, wrong), testing::ExitedWithCode(10), line);
  }
}

TEST(Profile, NumbersStagesWithTheSameName) {
  runtime runtime({.threads = 2});
  auto same = [](int i) { return i; };
  auto half = [](int i) { return i % 2 ? std::optional<int>(i) : std::nullopt; };
  auto stages = profile(runtime, from(numbers{8}) | map(half) | map(same), {.items = 8});
  EXPECT_THAT(names_of(stages), ElementsAre("source", "map", "map (2)"));
  for (auto& trial : stages[1].trials) EXPECT_GT(trial.p50, 0ns);
}

TEST(ProfileTable, MarksWhatIsDescribedAndNamesTheSlowestStage) {
  std::vector<stage_profile> stages(2);
  stages[0].stage = "read";
  stages[0].trials = {{.concurrency = 1, .items = 10, .elapsed = 100ms, .qps = 100},
                      {.concurrency = 2,
                       .as_described = true,
                       .items = 10,
                       .elapsed = 50ms,
                       .qps = 200,
                       .readiness = 0.25,
                       .p50 = 2ms,
                       .p99 = 3ms}};
  stages[1].stage = "batch";
  stages[1].trials = {{.as_described = true, .items = 2, .elapsed = 1ms, .qps = 2000}};
  EXPECT_EQ(table(stages),
            "stage  at a time  items  per s  ready      p50      p99\n"
            "read         1       10    100      -        -        -\n"
            "             2 *     10    200   25 %  2.00 ms  3.00 ms\n"
            "batch        -        2  2,000      -        -        -\n"
            "read is the slowest: alone it takes 50.0 ms at best.\n");
}

}  // namespace lade::profile_test
