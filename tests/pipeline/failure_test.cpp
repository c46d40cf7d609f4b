#include <lade/async_generator.hpp>
#include <lade/batch.hpp>
#include <lade/batch_by.hpp>
#include <lade/bucket.hpp>
#include <lade/cache.hpp>
#include <lade/chain.hpp>
#include <lade/error.hpp>
#include <lade/failure.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/route.hpp>
#include <lade/run.hpp>
#include <lade/shuffle.hpp>
#include <lade/sleep.hpp>
#include <lade/tee.hpp>
#include <lade/through.hpp>
#include <lade/window.hpp>

#include "../support/coroutines.hpp"
#include "../support/pipelines.hpp"
#include "../support/relay.hpp"
#include "../support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iterator>
#include <latch>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <sys/stat.h>
#include <vector>

namespace lade::failure_test {

using namespace test;
using namespace std::chrono_literals;
using detail::exceeds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;
using testing_support::code_of;
using testing_support::temp_dir;

static int refuse_all(int) { throw std::runtime_error("no"); }

static int refuse_none(int i) { return i; }

static async_generator<int> give_and_fail(int count) {
  for (int i = 0; i < count; ++i) co_yield i;
  throw std::runtime_error("the end of the disk");
}

static async_generator<int> give_and_wait(int count, gate& held) {
  for (int i = 0; i < count; ++i) co_yield i;
  held.pass();
  throw std::runtime_error("the end of the disk");
}

// Puts two and two together.
class pairs {
 public:
  std::optional<std::vector<int>> add(int&& item) {
    items_.push_back(item);
    return items_.size() == 2 ? flush() : std::nullopt;
  }
  std::optional<std::vector<int>> flush() {
    if (items_.empty()) return std::nullopt;
    return std::exchange(items_, {});
  }

 private:
  std::vector<int> items_;
};

static int refuse_odd(int i) {
  if (i % 2) throw std::runtime_error("odd");
  return i;
}

TEST(Retry, CallsAgainForTheSameItem) {
  runtime runtime({.threads = 2});
  std::array<std::atomic<int>, 20> calls{};
  auto twice_bad = [&](std::vector<int> item) {
    auto i = static_cast<std::size_t>(item.at(0));
    item.clear();
    if (++calls[i] < 3) throw std::runtime_error("not yet");
    return static_cast<int>(i);
  };
  for (unsigned concurrency : {1u, 8u}) {
    for (auto& count : calls) count = 0;
    auto items = runtime.run(
        from(numbers{20}) | map([](int i) { return std::vector{i}; }) |
        map(twice_bad,
            {.concurrency = concurrency, .retry = {.attempts = 3, .pause = 1us}, .name = "twice"}));
    std::vector<int> all(20);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(collect(items), all);
    auto stage = items.statistics().stages.at(2);
    EXPECT_EQ(stage.retried, 40u);
    EXPECT_EQ(stage.failed, 0u);
    EXPECT_GT(stage.paused, 0ns);
  }
}

TEST(Retry, CallsTasksAgain) {
  runtime runtime({.threads = 1});
  std::atomic<int> calls = 0;
  auto bad_once = [&](int i) -> task<int> {
    if (++calls == 1) throw std::runtime_error("not yet");
    co_return i;
  };
  EXPECT_THAT(
      collect(runtime, from(numbers{2}) | map(bad_once, {.retry = {.attempts = 2, .pause = 0ns}})),
      ElementsAre(0, 1));
}

TEST(Retry, AfterTheLastAttemptTheFailureCounts) {
  runtime runtime({.threads = 1});
  std::atomic<int> calls = 0;
  auto bad = [&](int i) -> int {
    ++calls;
    return refuse_all(i);
  };
  auto items = runtime.run(from(numbers{1}) | map(bad, {.retry = {.attempts = 4, .pause = 1us},
                                                        .on_error = on_error::skip}));
  EXPECT_THAT(collect(items), SizeIs(0));
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(items.failures().at(0).attempts, 4u);
}

TEST(Retry, FailuresThatItsConditionRejectsAreNotRetried) {
  runtime runtime({.threads = 1});
  std::atomic<int> calls = 0;
  auto bad = [&](int i) -> int {
    ++calls;
    return refuse_all(i);
  };
  auto never = [](const std::exception_ptr&) { return false; };
  auto throws = [](const std::exception_ptr&) -> bool { throw std::runtime_error("undecided"); };
  for (int expected = 1; const retry& how : {retry{.attempts = 9, .when = never},
                                             retry{.attempts = 9, .when = throws}}) {
    EXPECT_THAT([&] { collect(runtime, from(numbers{1}) | map(bad, {.retry = how})); },
                ThrowsMessage<stage_error>(HasSubstr("no")));
    EXPECT_EQ(calls, expected++);
  }
}

TEST(Retry, PausesEndWithTheRun) {
  runtime runtime({.threads = 1});
  std::atomic<bool> called = false;
  auto bad = [&](int i) -> int {
    called = true;
    return refuse_all(i);
  };
  auto items = runtime.run(from(numbers{1}) | map(bad, {.retry = {.attempts = 2, .pause = 10min}}));
  wait_until([&] { return called.load(); });
  items.stop();
  EXPECT_THAT([&] { items.wait_next(); }, ThrowsMessage<error>("run: stopped"));
}

TEST(Retry, PausesGrowAndAreShortenedAtRandom) {
  retry how{.pause = 100ms, .growth = 3, .jitter = 0.5};
  EXPECT_EQ(pause_after(how, 1, 0), 100ms);
  EXPECT_EQ(pause_after(how, 3, 0), 900ms);
  EXPECT_EQ(pause_after(how, 1, 0.5), 75ms);
  EXPECT_EQ(pause_after(how, 1000, 0), 24h);
}

TEST(Retry, OfItemsThatCannotBeCopiedIsRefused) {
  auto read = [](std::unique_ptr<int> i) { return *i; };
  auto items = from(numbers{1}) | map([](int i) { return std::make_unique<int>(i); });
  EXPECT_THAT([&] { items | map(read, {.retry = {.attempts = 2}, .name = "read"}); },
              ThrowsMessage<error>("read: items that cannot be copied cannot be retried"));
}

// Of a library whose error 2 is a lost device.
static const std::error_category& fragile_category() noexcept {
  struct category final : std::error_category {
    const char* name() const noexcept override { return "fragile"; }
    std::string message(int) const override { return "a kernel failed"; }
    std::error_condition default_error_condition(int code) const noexcept override {
      if (code == 2) return condition::device_lost;
      return {code, *this};
    }
  };
  static const category instance;
  return instance;
}

TEST(DeviceLost, EndsTheRunWhateverItsPolicy) {
  runtime runtime({.threads = 1});
  std::atomic<int> calls = 0;
  auto bad = [&](int) -> int {
    ++calls;
    throw error(std::error_code(2, fragile_category()), "multiply");
  };
  auto bad_task = [&](int i) -> task<int> { co_return bad(i); };
  const map_options how{.retry = {.attempts = 9, .pause = 0ns}, .on_error = on_error::skip};
  EXPECT_EQ(code_of([&] { collect(runtime, from(numbers{1}) | map(bad, how)); }),
            condition::device_lost);
  EXPECT_EQ(code_of([&] { collect(runtime, from(numbers{1}) | map(bad_task, how)); }),
            condition::device_lost);
  EXPECT_THAT([&] { collect(runtime, from(numbers{1}) | map(bad, {.substitute = 1})); },
              ThrowsMessage<stage_error>(HasSubstr("multiply: a kernel failed")));
  EXPECT_EQ(calls, 3);
}

TEST(DeviceLost, IsOnlyTheConditionThatItsCategoryReports) {
  runtime runtime({.threads = 1});
  auto bad = [](int) -> int { throw error(std::error_code(1, fragile_category()), "multiply"); };
  EXPECT_THAT(collect(runtime, from(numbers{2}) | map(bad, {.on_error = on_error::skip})),
              SizeIs(0));
}

TEST(Substitute, StandsInForWhatFails) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 4u}) {
    auto items = runtime.run(from(numbers{5}) |
                             map(refuse_odd, {.concurrency = concurrency, .substitute = -1}));
    EXPECT_THAT(collect(items), ElementsAre(0, -1, 2, -1, 4));
    EXPECT_EQ(items.statistics().stages.at(1).substituted, 2u);
    EXPECT_EQ(items.statistics().stages.at(1).skipped, 0u);
  }
}

TEST(Substitute, OfAnotherTypeIsRefused) {
  EXPECT_THAT([] { from(numbers{5}) | map(refuse_odd, {.substitute = "none", .name = "odd"}); },
              ThrowsMessage<error>("odd: the substitute is of another type than its items"));
}

TEST(OnError, OfTheRunAppliesToStagesWithoutAPolicy) {
  runtime runtime({.threads = 2});
  auto odd = from(numbers{5}) | map(refuse_odd);
  EXPECT_THAT(collect(runtime, odd, {.on_error = on_error::skip}), ElementsAre(0, 2, 4));
  auto strict = from(numbers{5}) | map(refuse_odd, {.on_error = on_error::fail});
  EXPECT_THROW(collect(runtime, strict, {.on_error = on_error::skip}), stage_error);
}

TEST(ErrorBudget, EndsTheRunWithTheFirstFailureBeyondIt) {
  runtime runtime({.threads = 1});
  auto odd = [](error_budget budget) {
    return from(numbers{20}) |
           map(refuse_odd, {.on_error = on_error::skip, .error_budget = budget, .name = "odd"});
  };
  EXPECT_THAT(collect(runtime, odd({.count = 10})), SizeIs(10));
  EXPECT_THAT([&] { collect(runtime, odd({.count = 9})); },
              ThrowsMessage<stage_error>("odd (19): odd (more failures than the budget allows)"));
  EXPECT_THAT([&] { collect(runtime, odd({}), {.error_budget = {.count = 9}}); },
              ThrowsMessage<stage_error>(HasSubstr("odd (19)")));
}

TEST(ErrorBudget, AsARateCountsAfterAProbation) {
  const error_budget tenth{.rate = 0.1, .probation = 100};
  EXPECT_FALSE(exceeds(tenth, 50, 99));
  EXPECT_TRUE(exceeds(tenth, 11, 100));
  EXPECT_FALSE(exceeds(tenth, 10, 100));
  EXPECT_FALSE(exceeds(error_budget(), 1000, 10));
}

// A stage that calls refuse_odd for an item when the next stage asks for it.
static auto odd_stage(error_budget budget, const char* name = "odd") {
  return map(refuse_odd,
             {.concurrency = 1, .on_error = on_error::skip, .error_budget = budget, .name = name});
}

TEST(ErrorBudget, OfAStageIsARateOfItsInputItems) {
  runtime runtime({.threads = 1});
  auto odd = [](error_budget budget) { return from(numbers{100}) | odd_stage(budget); };
  EXPECT_THAT(collect(runtime, odd({.rate = 0.5})), SizeIs(50));
  EXPECT_THAT([&] { collect(runtime, odd({.rate = 0.49, .probation = 10})); },
              ThrowsMessage<stage_error>(HasSubstr("odd (9)")));
  EXPECT_THAT([&] { collect(runtime, odd({.rate = 0.49, .probation = 11})); },
              ThrowsMessage<stage_error>(HasSubstr("odd (11)")));
  EXPECT_THAT(collect(runtime, odd({.rate = 0.49, .probation = 101})), SizeIs(50));
}

TEST(ErrorBudget, OfARunIsARateOfTheItemsOfTheSource) {
  runtime runtime({.threads = 1});
  auto odd = from(numbers{100}) | odd_stage({});
  EXPECT_THAT(collect(runtime, odd, {.error_budget = {.rate = 0.5}}), SizeIs(50));
  EXPECT_THAT([&] { collect(runtime, odd, {.error_budget = {.rate = 0.49, .probation = 10}}); },
              ThrowsMessage<stage_error>(HasSubstr("odd (9)")));
}

// The failures of a stage that most items do not reach are few among all.
TEST(ErrorBudget, OfARunCountsItemsThatAnotherStageDrops) {
  runtime runtime({.threads = 1});
  auto late = [](int i) { return i >= 90; };
  auto few = from(numbers{100}) | filter(late) | odd_stage({});
  EXPECT_THAT(collect(runtime, few, {.error_budget = {.rate = 0.1}}), SizeIs(5));
  auto strict = from(numbers{100}) | filter(late) | odd_stage({.rate = 0.1});
  EXPECT_THAT([&] { collect(runtime, strict); }, ThrowsMessage<stage_error>(HasSubstr("odd (91)")));
}

TEST(ErrorBudget, OfARunIsARateOfTheItemsOfAllSources) {
  runtime runtime({.threads = 1});
  auto branches = [] {
    return std::vector<pipeline<int>>{from(numbers{50}) | odd_stage({}, "left"),
                                      from(numbers{50}) | odd_stage({}, "right")};
  };
  EXPECT_THAT(collect(runtime, merge(branches()), {.error_budget = {.rate = 0.5}}), SizeIs(50));
  // By the fifth failure, that of item 5, the left source has given 6 items and the right one 5.
  EXPECT_THAT(
      [&] {
        collect(runtime, merge(branches()), {.error_budget = {.rate = 0.4, .probation = 10}});
      },
      ThrowsMessage<stage_error>(HasSubstr("left (5)")));
  auto arriving = merge(branches(), {.order = merge_order::arrival});
  EXPECT_THAT(collect(runtime, arriving, {.error_budget = {.rate = 0.5}}), SizeIs(50));
}

TEST(ErrorBudget, OfARunCountsThePartsOfItems) {
  runtime runtime({.threads = 1});
  auto set_apart = [](int archive) {
    std::vector<int> parts(25);
    std::iota(parts.begin(), parts.end(), 25 * archive);
    return parts;
  };
  auto refuse_tenth = [](int i) {
    if (i % 10 == 0) throw std::runtime_error("tenth");
    return i;
  };
  auto parts = from(numbers{4}) | flat_map(set_apart) |
               map(refuse_tenth, {.concurrency = 1, .name = "part"});
  run_options options{.on_error = on_error::skip};
  options.error_budget = {.rate = 0.2, .probation = 10};
  EXPECT_THAT(collect(runtime, parts, options), SizeIs(90));
  options.error_budget = {.rate = 0.1, .probation = 50};
  EXPECT_THAT([&] { collect(runtime, parts, options); },
              ThrowsMessage<stage_error>(HasSubstr("part (50)")));
}

TEST(ErrorBudget, OfARunCountsItemsThatACacheReplays) {
  runtime runtime({.threads = 1});
  for (std::uint64_t kept : {100u, 60u}) {
    auto odd = from(numbers{100}) | cache({.items = kept}) | odd_stage({});
    run_options half{.error_budget = {.rate = 0.5}};
    EXPECT_THAT(collect(runtime, odd, half), SizeIs(50));
    EXPECT_THAT(collect(runtime, odd, half), SizeIs(50));
    run_options less{.error_budget = {.rate = 0.49, .probation = 70}};
    EXPECT_THAT([&] { collect(runtime, odd, less); },
                ThrowsMessage<stage_error>(HasSubstr("odd (69)")));
  }
}

static task<int> refuse_odd_in_turn(relay& turns, int i) {
  co_await turns.turn_of(i);
  co_return refuse_odd(i);
}

// The items that a run delivers of 0, 1, 2, ..., and its failure. All items are in flight before
// the last one ends, then the one before it, and so on. Every second item is refused.
static std::pair<std::vector<int>, std::string> outcome_from_the_last_on(int count,
                                                                         item_order order,
                                                                         error_budget budget) {
  runtime runtime({.threads = 2, .reactors = 1});
  auto backwards = up_to(count);
  std::ranges::reverse(backwards);
  relay turns(backwards);
  auto items =
      runtime.run(from(numbers{count}) | map([&](int i) { return refuse_odd_in_turn(turns, i); },
                                             {.concurrency = static_cast<unsigned>(count),
                                              .order = order,
                                              .on_error = on_error::skip,
                                              .error_budget = budget,
                                              .name = "odd"}));
  std::vector<int> given;
  try {
    while (auto item = items.wait_next()) given.push_back(*item);
  } catch (const stage_error& failure) {
    return {given, failure.what()};
  }
  return {given, "none"};
}

static constexpr const char* last_straw = "odd (1): odd (more failures than the budget allows)";

TEST(ErrorBudget, IsExceededByTheItemThatFailsLastWhicheverTheOrder) {
  using outcome = std::pair<std::vector<int>, std::string>;
  EXPECT_EQ(outcome_from_the_last_on(6, item_order::completion, {.count = 3}),
            outcome({4, 2, 0}, "none"));
  EXPECT_EQ(outcome_from_the_last_on(6, item_order::completion, {.count = 2}),
            outcome({4, 2}, last_straw));
  EXPECT_EQ(outcome_from_the_last_on(6, item_order::input, {.count = 3}),
            outcome({0, 2, 4}, "none"));
  EXPECT_EQ(outcome_from_the_last_on(6, item_order::input, {.count = 2}), outcome({0}, last_straw));
}

TEST(ErrorBudget, AsARateCountsTheItemsInFlight) {
  for (auto order : {item_order::input, item_order::completion}) {
    auto failure_with = [&](error_budget budget) {
      return outcome_from_the_last_on(10, order, budget).second;
    };
    EXPECT_EQ(failure_with({.rate = 0.5, .probation = 1}), "none");
    EXPECT_EQ(failure_with({.rate = 0.4, .probation = 10}), last_straw);
    EXPECT_EQ(failure_with({.rate = 0.4, .probation = 11}), "none");
  }
}

// Their texts take so long to copy that all have failed before the first failure is judged.
TEST(ErrorBudget, IsExceededByOneOfTheItemsThatFailTogether) {
  runtime runtime({.threads = 4});
  auto expect_one = [&](error_budget of_stage, error_budget of_run) {
    std::latch all(4);
    auto refuse = [&](int) -> int {
      all.arrive_and_wait();
      throw std::runtime_error(std::string(1 << 20, 'x'));
    };
    auto together =
        from(numbers{4}) |
        map(refuse, {.concurrency = 4, .on_error = on_error::skip, .error_budget = of_stage});
    auto items =
        runtime.run(together, {.error_budget = of_run, .on_failure = [](const failure_record&) {}});
    try {
      items.wait_next();
      ADD_FAILURE() << "no failure";
    } catch (const stage_error& failure) {
      EXPECT_THAT(failure.others(), SizeIs(0));
    }
    EXPECT_EQ(items.statistics().stages.at(1).skipped, 3u);
  };
  for (int round = 0; round < 5; ++round) {
    expect_one({.count = 3}, {});
    expect_one({}, {.count = 3});
  }
}

static int refuse_fourth(int i) {
  if (i % 4 == 0) throw std::runtime_error("fourth");
  return i;
}

// Of 40 items 20 fail in the first stage and 10 in the second.
static pipeline<int> odd_and_fourth(unsigned concurrency, item_order order, error_budget odd,
                                    error_budget fourth) {
  map_options options{
      .concurrency = concurrency, .order = order, .on_error = on_error::skip, .error_budget = odd};
  options.name = "odd";
  auto first = map(refuse_odd, options);
  options.error_budget = fourth;
  options.name = "fourth";
  return from(numbers{40}) | first | map(refuse_fourth, options);
}

static constexpr std::pair<unsigned, item_order> ways_to_work[] = {
    {1, item_order::input}, {4, item_order::input}, {4, item_order::completion}};

TEST(ErrorBudget, OfAStageCountsFailuresOfThisStageOnly) {
  runtime runtime({.threads = 4});
  for (auto [concurrency, order] : ways_to_work) {
    auto made = [&](error_budget odd, error_budget fourth) {
      return odd_and_fourth(concurrency, order, odd, fourth);
    };
    auto exceeded_by = [&](const char* stage, const pipeline<int>& what) {
      EXPECT_THAT([&] { collect(runtime, what); },
                  ThrowsMessage<stage_error>(testing::AllOf(
                      StartsWith(stage), HasSubstr("more failures than the budget allows"))));
    };
    EXPECT_THAT(collect(runtime, made({.count = 20}, {.count = 10})), SizeIs(10));
    exceeded_by("odd (", made({.count = 19}, {.count = 10}));
    exceeded_by("fourth (", made({.count = 20}, {.count = 9}));
    EXPECT_THAT(
        collect(runtime, made({.rate = 0.5, .probation = 40}, {.rate = 0.5, .probation = 20})),
        SizeIs(10));
    exceeded_by("odd (", made({.rate = 0.49, .probation = 40}, {}));
    exceeded_by("fourth (", made({}, {.rate = 0.49, .probation = 10}));
  }
}

TEST(ErrorBudget, OfARunCountsTheFailuresOfAllStages) {
  runtime runtime({.threads = 4});
  for (auto [concurrency, order] : ways_to_work) {
    auto items = odd_and_fourth(concurrency, order, {}, {});
    EXPECT_THAT(collect(runtime, items, {.error_budget = {.count = 30}}), SizeIs(10));
    EXPECT_THAT([&] { collect(runtime, items, {.error_budget = {.count = 29}}); },
                ThrowsMessage<stage_error>(HasSubstr("more failures than the budget allows")));
  }
}

TEST(ErrorBudget, OfAStageReplacesThatOfTheRun) {
  runtime runtime({.threads = 4});
  const error_budget any{.rate = 1};
  for (auto [concurrency, order] : ways_to_work) {
    auto given = [&](error_budget odd, error_budget fourth, error_budget of_run) {
      auto items = odd_and_fourth(concurrency, order, odd, fourth);
      return collect(runtime, items, {.error_budget = of_run});
    };
    EXPECT_THAT(given({.count = 20}, {.count = 10}, {.count = 0}), SizeIs(10));
    EXPECT_THAT(given({.rate = 0.5, .probation = 40}, any, {.rate = 0}), SizeIs(10));
    EXPECT_THAT(given(any, any, {.count = 0}), SizeIs(10));
    EXPECT_THAT(given({.count = 20}, any, {.rate = 0.1}), SizeIs(10));
    EXPECT_THAT([&] { given({.count = 19}, any, {.count = 99}); },
                ThrowsMessage<stage_error>(StartsWith("odd (")));
    EXPECT_THAT([&] { given(any, {.rate = 0.4, .probation = 10}, any); },
                ThrowsMessage<stage_error>(StartsWith("fourth (")));
  }
}

TEST(ErrorBudget, OfARunExcludesFailuresOfStagesWithABudget) {
  runtime runtime({.threads = 4});
  const error_budget any{.rate = 1};
  for (auto [concurrency, order] : ways_to_work) {
    auto items = odd_and_fourth(concurrency, order, any, {.probation = 3});
    auto given = [&](error_budget of_run) {
      return collect(runtime, items, {.error_budget = of_run});
    };
    EXPECT_THAT(given({.count = 10}), SizeIs(10));
    EXPECT_THAT(given({.rate = 0.25, .probation = 40}), SizeIs(10));
    EXPECT_THAT([&] { given({.count = 9}); },
                ThrowsMessage<stage_error>(
                    AllOf(StartsWith("fourth ("), HasSubstr("): fourth (more failures"))));
    EXPECT_THAT([&] { given({.rate = 0.1, .probation = 10}); },
                ThrowsMessage<stage_error>(StartsWith("fourth (")));
  }
}

TEST(ErrorBudget, StartsAtZeroInEveryRunOfAPipeline) {
  runtime runtime({.threads = 4});
  for (auto [concurrency, order] : ways_to_work) {
    auto items = odd_and_fourth(concurrency, order, {.count = 20}, {.rate = 0.5, .probation = 20});
    run_options options{.error_budget = {.count = 30}};
    auto first = runtime.run(items, options);
    auto beside_it = runtime.run(items, options);
    for (auto* each : {&first, &beside_it}) {
      EXPECT_THAT(collect(*each), SizeIs(10));
      EXPECT_THAT(each->failures(), SizeIs(30));
    }
    EXPECT_THAT(collect(runtime, items, options), SizeIs(10));
  }
}

TEST(ErrorBudget, OfAFilterEndsTheRun) {
  runtime runtime({.threads = 1});
  auto refuse = [](int i) { return refuse_all(i) > 0; };
  auto filtered = from(numbers{20}) |
                  filter(refuse, {.on_error = on_error::skip, .error_budget = {.count = 3}});
  EXPECT_THAT([&] { collect(runtime, filtered); }, ThrowsMessage<stage_error>(HasSubstr("(3)")));
}

TEST(OnFailure, IsCalledForEveryFailure) {
  runtime runtime({.threads = 3});
  std::vector<std::string> reported;  // without a lock: one thread at a time
  auto report = [&](const failure_record& failure) { reported.push_back(failure.item); };
  auto odd = from(numbers{2000}) | map(refuse_odd, {.concurrency = 8});
  collect(runtime, odd, {.on_error = on_error::skip, .on_failure = report});
  EXPECT_THAT(reported, SizeIs(1000));
  reported.clear();
  EXPECT_THROW(collect(runtime, odd, {.on_failure = report}), stage_error);
  EXPECT_THAT(reported, testing::Contains("1"));
}

TEST(OnFailure, MayEndTheRun) {
  runtime runtime({.threads = 2});
  auto end = [](const failure_record& failure) {
    throw std::runtime_error("enough: " + failure.what);
  };
  for (unsigned concurrency : {1u, 4u}) {
    auto odd = from(numbers{20}) | map(refuse_odd, {.concurrency = concurrency});
    EXPECT_THAT([&] { collect(runtime, odd, {.on_error = on_error::skip, .on_failure = end}); },
                ThrowsMessage<std::runtime_error>("enough: odd"));
  }
}

TEST(OnFailure, AnExceptionOfItReplacesTheFailureThatEndsTheRun) {
  runtime runtime({.threads = 2});
  auto end = [](const failure_record&) { throw std::runtime_error("enough"); };
  for (unsigned concurrency : {1u, 4u}) {
    auto odd = from(numbers{20}) | map(refuse_odd, {.concurrency = concurrency});
    EXPECT_THAT([&] { collect(runtime, odd, {.on_failure = end}); },
                ThrowsMessage<std::runtime_error>("enough"));
  }
}

static task<int> refuse_first(int i) {
  if (i == 0) throw std::runtime_error("first");
  co_return i;
}

// A listener on the reactor would hang there: no task continues before it returns.
TEST(OnFailure, MayBlockWithoutBlockingAReactor) {
  runtime runtime({.threads = 2});
  gate last;
  std::vector<std::string> reported;
  bool on_pool = false;
  auto report = [&](const failure_record& failure) {
    on_pool = runtime.pool().is_current();
    if (on_pool) last.pass();
    reported.push_back(failure.item);
  };
  auto items = runtime.run(from(numbers{100}) | map(refuse_first, {.concurrency = 4}),
                           {.on_error = on_error::skip, .on_failure = report});
  for (int i = 1; i < 100; ++i) EXPECT_EQ(items.wait_next(), i);
  EXPECT_THAT(reported, testing::IsEmpty());
  last.open();
  EXPECT_EQ(items.wait_next(), std::nullopt);
  EXPECT_THAT(reported, ElementsAre("0"));
  EXPECT_TRUE(on_pool);
}

static task<int> refuse_first_at_length(int i) {
  if (i == 0) throw std::runtime_error(std::string(1 << 20, 'x'));
  co_return i;
}

// Longer than what a pipe holds, so that the write waits for a reader.
TEST(FailureLog, MayBlockWithoutBlockingAReactor) {
  temp_dir dir;
  auto path = dir / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::fstream pipe(path);
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(numbers{100}) | map(refuse_first_at_length, {.concurrency = 4}),
                           {.on_error = on_error::skip, .failure_log = path});
  for (int i = 1; i < 100; ++i) EXPECT_EQ(items.wait_next(), i);
  std::string line;
  std::thread reader([&] { std::getline(pipe, line); });
  EXPECT_EQ(items.wait_next(), std::nullopt);
  reader.join();
  EXPECT_GT(line.size(), std::size_t{1} << 20);
}

static int refuse_in_vain(std::atomic<int>& failed) {
  ++failed;
  throw std::runtime_error("in vain");
}

static task<int> refuse_later(std::atomic<int>& failed) { co_return refuse_in_vain(failed); }

// Items that a stage has started meanwhile may fail too.
TEST(OnFailure, ThatIsSlowBlocksStagesSoThatFewFailuresWait) {
  constexpr int most_waiting = 1000 + 8;
  runtime runtime({.threads = 3});
  std::atomic<int> failed = 0;
  int reported = 0;
  int waiting = 0;
  auto report = [&](const failure_record&) {
    if (reported == 0) {
      test::wait_until([&] { return failed >= 1000; });
      test::pause(1000);
    }
    waiting = std::max(waiting, failed - reported++);
  };
  run_options options{.on_error = on_error::skip, .on_failure = report};
  auto expect_few = [&](const auto& failing) {
    failed = reported = waiting = 0;
    collect(runtime, failing, options);
    EXPECT_EQ(reported, 20'000);
    EXPECT_LE(waiting, most_waiting);
  };
  auto items = from(numbers{20'000});
  expect_few(from_index(20'000, [&](std::uint64_t) { return refuse_in_vain(failed); }));
  expect_few(items |
             map([&](int) { return refuse_in_vain(failed); }, {.concurrency = 1, .buffer = 0}));
  expect_few(items | map([&](int) { return refuse_in_vain(failed); }, {.concurrency = 4}));
  expect_few(items | map([&](int) { return refuse_later(failed); }, {.concurrency = 4}));
  expect_few(items | flat_map([&](int) { return std::vector{refuse_in_vain(failed)}; }));
  expect_few(items | bucket([&](int) { return refuse_in_vain(failed); }, {.size = 2}));
  expect_few(items | route([&](int) { return refuse_in_vain(failed); }, chain(), chain()));
}

TEST(OnFailure, IsNotCalledOfARunThatWasStopped) {
  runtime runtime({.threads = 2});
  std::atomic<int> failed = 0;
  std::atomic<int> reported = 0;
  gate stopped;
  auto report = [&](const failure_record&) {
    ++reported;
    stopped.pass();
  };
  auto broken = from(numbers{-1}) | map([&](int) { return refuse_in_vain(failed); });
  auto items = runtime.run(broken, {.on_error = on_error::skip, .on_failure = report});
  test::wait_until([&] { return failed > 100; });
  stopped.wait_for(1);
  items.stop();
  stopped.open();
  EXPECT_THROW(items.wait_next(), error);
  EXPECT_EQ(reported, 1);
}

TEST(OnFailure, MayAskTheRunAndStopIt) {
  runtime runtime({.threads = 2});
  std::optional<run<int>> items;
  gate made;
  auto report = [&](const failure_record&) {
    made.pass();
    EXPECT_EQ(items->failures().size(), 1u);
    EXPECT_EQ(items->statistics().stages.size(), 2u);
    items->stop();
  };
  auto never = from(numbers{1'000'000'000}) | map(refuse_first, {.concurrency = 4});
  items.emplace(runtime, never, run_options{.on_error = on_error::skip, .on_failure = report});
  made.open();
  EXPECT_THAT(
      [&] {
        while (items->wait_next()) {}
      },
      ThrowsMessage<error>("run: stopped"));
}

static async_generator<int> pass_on(async_generator<int> in) {
  while (auto* item = co_await in.next()) co_yield *item;
}

TEST(OnFailure, AnExceptionOfItIsNoFailureOfLaterStages) {
  runtime runtime({.threads = 2});
  std::atomic<int> calls = 0;
  auto end = [&](const failure_record& failure) {
    if (++calls == 1) throw std::runtime_error("enough: " + failure.what);
  };
  auto odd = from(numbers{2}) | map(refuse_odd, {.name = "odd"});
  auto items = runtime.run(merge<int>({odd}) | through(pass_on),
                           {.on_error = on_error::skip, .on_failure = end});
  EXPECT_THAT([&] { collect(items); }, ThrowsMessage<std::runtime_error>("enough: odd"));
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(items.failures(), SizeIs(1));
}

TEST(FailureLog, HasALineForEveryFailure) {
  temp_dir dir;
  runtime runtime({.threads = 1});
  auto odd = from(numbers{4}) | map(refuse_odd, {.name = "odd"});
  collect(runtime, odd, {.epoch = 6, .on_error = on_error::skip, .failure_log = dir / "log"});
  std::ifstream log(dir / "log");
  EXPECT_EQ(
      std::string(std::istreambuf_iterator<char>(log), {}),
      "{\"stage\":\"odd\",\"item\":\"1\",\"what\":\"odd\",\"attempts\":1,\"positions\":[[1,1]],"
      "\"epoch\":6}\n"
      "{\"stage\":\"odd\",\"item\":\"3\",\"what\":\"odd\",\"attempts\":1,\"positions\":[[3,3]],"
      "\"epoch\":6}\n");
  EXPECT_THAT([&] { (void)runtime.run(odd, {.failure_log = dir / "absent/log"}); },
              ThrowsMessage<error>("open " + (dir / "absent/log") + ": No such file or directory"));
}

TEST(Failures, HaveThePositionsOfItemsDroppedBeforeToo) {
  runtime runtime({.threads = 1});
  auto items =
      runtime.run(from(numbers{6}) | filter([](int i) { return i != 2; }) | map(refuse_odd),
                  {.on_error = on_error::skip});
  collect(items);
  std::vector<std::string> positions;
  for (auto& failure : items.failures()) positions.push_back(to_string(failure.positions));
  EXPECT_THAT(positions, ElementsAre("1", "2-3", "5"));
}

TEST(FailureLog, ThatCannotBeWrittenEndsTheRun) {
  runtime runtime({.threads = 1});
  auto odd = from(numbers{4}) | map(refuse_odd);
  EXPECT_THAT(
      [&] { collect(runtime, odd, {.on_error = on_error::skip, .failure_log = "/dev/full"}); },
      ThrowsMessage<error>("write /dev/full: No space left on device"));
}

TEST(FailureLog, IsJsonWhateverTheNamesAre) {
  failure_record failure{
      "read \"it\"", "caf\xc3\xa9 \xff\xc3 \xed\xa0\x80\n", "", 1, lineage(7), 2};
  EXPECT_EQ(to_json(failure),
            "{\"stage\":\"read \\\"it\\\"\",\"item\":\"caf\xc3\xa9 "
            "\\ufffd\\ufffd \\ufffd\\ufffd\\ufffd\\u000a\",\"what\":\"\",\"attempts\":1,"
            "\"positions\":[[7,7]],\"epoch\":2}");
}

TEST(Failures, TheLastThousandAreKept) {
  runtime runtime({.threads = 1});
  auto items = runtime.run(from(numbers{3000}) | map(refuse_odd), {.on_error = on_error::skip});
  collect(items);
  auto failures = items.failures();
  ASSERT_THAT(failures, SizeIs(1000));
  EXPECT_EQ(failures.front().item, "1001");
  EXPECT_EQ(failures.back().item, "2999");
}

static task<int> sleep_an_hour(int i) {
  co_await sleep(std::chrono::hours(1));
  co_return i;
}

TEST(Failure, ATaskThatTakesTooLongIsStoppedAndFails) {
  runtime runtime({.threads = 2});
  map_options options{.on_error = on_error::skip, .timeout = 1ms};
  auto items = runtime.run(from(numbers{3}) | map(sleep_an_hour, options));
  EXPECT_THAT(collect(items), testing::IsEmpty());
  ASSERT_EQ(items.failures().size(), 3u);
  EXPECT_THAT(items.failures()[0].what, HasSubstr("wait for the stage's function"));
}

TEST(Failure, ATaskThatEndsInTimeIsNotDisturbed) {
  runtime runtime({.threads = 2});
  auto suspend = [](int i) -> task<int> {
    co_await sleep(0ms);
    co_return i;
  };
  auto timed = from(numbers{3}) | map(suspend, {.timeout = std::chrono::hours(1)});
  EXPECT_THAT(collect(runtime, timed), ElementsAre(0, 1, 2));
}

TEST(Failure, AFunctionThatReturnsTooLateFails) {
  runtime runtime({.threads = 2});
  const auto limit = 1ms;
  auto late = [limit](int i) {
    auto start = std::chrono::steady_clock::now();
    while (i == 1 && std::chrono::steady_clock::now() <= start + limit) {}
    return i;
  };
  for (unsigned concurrency : {1u, 4u}) {
    map_options options{.concurrency = concurrency, .timeout = limit};
    options.on_error = on_error::skip;
    auto skipping = from(numbers{3}) | map(late, options);
    std::vector<int> in_time;
    while (in_time != std::vector{0, 2}) {  // again where the machine has held up the others
      in_time = collect(runtime, skipping);
      EXPECT_THAT(in_time, testing::Not(testing::Contains(1)));
    }
    options.on_error = on_error::fail;
    try {
      collect(runtime, from(numbers{2}) | map(late, options));
      ADD_FAILURE() << "no failure";
    } catch (const stage_error& e) {
      EXPECT_EQ(e.code(), errc::timed_out);
    }
  }
}

TEST(Failure, ATimedOutCallIsRetriedUntilTheDeadlineOfItsItem) {
  runtime runtime({.threads = 2});
  std::atomic<int> calls = 0;
  auto nap = [&](int i) {
    ++calls;
    return sleep_an_hour(i);
  };
  map_options options{.retry = {.attempts = 1'000'000, .pause = 1us, .growth = 1},
                      .on_error = on_error::skip};
  options.timeout = 1ms;
  options.deadline = 200ms;
  EXPECT_THAT(collect(runtime, from(numbers{1}) | map(nap, options)), testing::IsEmpty());
  EXPECT_GT(calls, 2);
  EXPECT_LE(calls, 201);
}

// What the consumer of a run gets whose first item, held up at the gate, fails when `before` others
// have.
static stage_error failure_of(runtime& where, const pipeline<int>& what, gate& first, int before) {
  int reported = 0;
  auto report = [&](const failure_record&) {
    if (++reported == before) first.open();
  };
  auto items = where.run(what, {.on_failure = report});
  try {
    items.wait_next();
  } catch (const stage_error& e) {
    EXPECT_FALSE(items.wait_next());
    return e;
  }
  throw std::logic_error("no failure");
}

static std::vector<std::string> texts_of(std::span<const stage_error> failures) {
  std::vector<std::string> texts;
  for (auto& each : failures) texts.push_back(each.what());
  return texts;
}

TEST(Failure, AllThatFailTogetherAreReported) {
  runtime runtime({.threads = 4});
  gate first;
  auto refuse = [&](int i) -> int {
    if (i == 0) first.pass();
    throw std::runtime_error("bad " + std::to_string(i));
  };
  auto together = from(numbers{4}) | map(refuse, {.concurrency = 4, .name = "meet"});
  auto failure = failure_of(runtime, together, first, 3);
  EXPECT_EQ(failure.item(), "0");
  EXPECT_EQ(failure.why(), "bad 0");
  EXPECT_THAT(failure.what(), StartsWith("meet (0): bad 0; also "));
  auto others = texts_of(failure.others());
  EXPECT_THAT(others,
              UnorderedElementsAre("meet (1): bad 1", "meet (2): bad 2", "meet (3): bad 3"));
  for (auto& each : others) EXPECT_THAT(failure.what(), HasSubstr("; also " + each));
}

TEST(Failure, OfTwoStagesNamesBoth) {
  runtime runtime({.threads = 4});
  gate first;
  auto early = [](int i) { return i == 2 ? refuse_all(i) : i; };
  auto late = [&](int i) {
    if (i == 0) first.pass();
    return refuse_all(i);
  };
  auto both = from(numbers{3}) | map(early, {.concurrency = 2, .name = "early"}) |
              map(late, {.concurrency = 2, .name = "late"});
  auto failure = failure_of(runtime, both, first, 2);
  EXPECT_EQ(failure.stage(), "late");
  EXPECT_EQ(failure.item(), "0");
  EXPECT_THAT(texts_of(failure.others()), UnorderedElementsAre("late (1): no", "early (2): no"));
  EXPECT_THAT(failure.what(), StartsWith("late (0): no; also "));
  EXPECT_THAT(failure.what(), HasSubstr("; also late (1): no"));
  EXPECT_THAT(failure.what(), HasSubstr("; also early (2): no"));
}

TEST(Failure, NamesThreeOthersAndCountsTheRest) {
  runtime runtime({.threads = 2});
  gate first;
  auto refuse = [&](int i) -> int {
    if (i == 0) first.pass();
    return refuse_all(i);
  };
  auto many = from(numbers{6}) | map(refuse, {.concurrency = 2, .buffer = 4, .name = "meet"});
  auto failure = failure_of(runtime, many, first, 5);
  EXPECT_THAT(failure.others(), SizeIs(5));
  EXPECT_STREQ(failure.what(),
               "meet (0): no; also meet (1): no; also meet (2): no; also meet (3): no; and 2 more");
}

TEST(Failure, ThatIsAloneHasNoOthers) {
  runtime runtime({.threads = 2});
  try {
    collect(runtime, from(numbers{1}) | map(refuse_all));
    ADD_FAILURE() << "no failure";
  } catch (const stage_error& e) {
    EXPECT_THAT(e.others(), SizeIs(0));
    EXPECT_STREQ(e.what(), "map (0): no");
  }
}

TEST(Failure, WithTheSameCauseAsAnotherIsReportedToo) {
  runtime runtime({.threads = 4});
  gate first;
  auto shared = std::make_exception_ptr(std::runtime_error("the disk is gone"));
  auto refuse = [&](int i) -> int {
    if (i == 0) first.pass();
    std::rethrow_exception(shared);
  };
  auto together = from(numbers{3}) | map(refuse, {.concurrency = 3, .name = "read"});
  EXPECT_THAT(texts_of(failure_of(runtime, together, first, 2).others()),
              UnorderedElementsAre("read (1): the disk is gone", "read (2): the disk is gone"));
}

static task<int> sum_of_run(runtime& where, int i) {
  auto part = [i](int k) {
    if (i == 1 && k == 1) throw std::runtime_error("a bad part");
    return k;
  };
  auto parts = from(numbers{3}) | map(part, {.name = "part"});
  auto items = parts.start(where);
  int sum = 0;
  while (auto item = co_await items.next()) sum += *item;
  co_return sum;
}

TEST(Failure, OfARunInsideOfAStageIsAFailureOfThatStage) {
  runtime runtime({.threads = 2});
  auto inside = [&](int i) { return sum_of_run(runtime, i); };
  for (unsigned concurrency : {1u, 2u}) {
    auto whole = from(numbers{3}) | map(inside, {.concurrency = concurrency, .name = "whole"});
    auto items = runtime.run(whole, {.on_error = on_error::skip});
    EXPECT_THAT(collect(items), ElementsAre(3, 3));
    ASSERT_THAT(items.failures(), SizeIs(1));
    EXPECT_EQ(items.failures()[0].stage, "whole");
    EXPECT_EQ(items.failures()[0].what, "part (1): a bad part");
    EXPECT_THAT([&] { collect(runtime, whole); },
                ThrowsMessage<stage_error>("whole (1): part (1): a bad part"));
  }
}

// Throws when the item 1 is copied.
class copied_badly {
 public:
  explicit copied_badly(int number) : number_(number) {}
  copied_badly(copied_badly&&) = default;
  copied_badly& operator=(copied_badly&&) = default;
  copied_badly(const copied_badly& other) : number_(other.number_) {
    if (number_ == 1) throw std::runtime_error("cannot be copied");
  }
  int number() const { return number_; }

 private:
  int number_;
};

TEST(Retry, OfARunAppliesToStagesWithoutOne) {
  runtime runtime({.threads = 2});
  std::array<std::atomic<int>, 4> calls{};
  auto good_at = [&](std::size_t stage, int calls_needed) {
    return [&calls, stage, calls_needed](int i) {
      if (++calls[stage] < calls_needed) throw std::runtime_error("not yet");
      return i;
    };
  };
  run_options options{.retry = {.attempts = 3, .pause = 1us}};
  auto patient = from(numbers{1}) | map(good_at(0, 3), {.concurrency = 1}) |
                 map(good_at(1, 3), {.concurrency = 2}) |
                 filter([keep = good_at(2, 3)](int i) { return keep(i) == 0; }) |
                 map(good_at(3, 4), {.retry = {.attempts = 4, .pause = 1us}});
  EXPECT_THAT(collect(runtime, patient, options), ElementsAre(0));
  std::atomic<int> once = 0;
  auto impatient = from(numbers{1}) |
                   map([&](int i) { return ++once, refuse_all(i); }, {.retry = {.attempts = 1}});
  EXPECT_THROW(collect(runtime, impatient, options), stage_error);
  EXPECT_EQ(once, 1);
}

TEST(Retry, ACopyThatThrowsIsAFailureOfItsItem) {
  runtime runtime({.threads = 2});
  auto copied = from(numbers{3}) | map([](int i) { return copied_badly(i); }) |
                map([](const copied_badly& item) { return item.number(); },
                    {.retry = {.attempts = 2, .pause = 1us}, .name = "copy"});
  EXPECT_THAT(collect(runtime, copied, {.on_error = on_error::skip}), ElementsAre(0, 2));
  EXPECT_THAT([&] { collect(runtime, copied); },
              ThrowsMessage<stage_error>(HasSubstr("copy (item 1): cannot be copied")));
}

// Throws when it is moved, once it is stuck.
class moved_badly {
 public:
  moved_badly(int number, std::atomic<bool>& is_stuck) : number_(number), is_stuck_(&is_stuck) {}
  moved_badly(const moved_badly&) = default;
  moved_badly& operator=(const moved_badly&) = default;
  moved_badly(moved_badly&& other) : moved_badly(std::as_const(other)) {
    if (*is_stuck_) throw std::runtime_error("cannot be moved");
  }
  int number() const { return number_; }
  void stick() const { *is_stuck_ = true; }

 private:
  int number_;
  std::atomic<bool>* is_stuck_;
};

TEST(Retry, AMoveThatThrowsBeforeTheNextAttemptIsAFailureOfItsItem) {
  runtime runtime({.threads = 2});
  const map_options twice{.retry = {.attempts = 2, .pause = 1us}, .name = "move"};
  auto number_of = [](const moved_badly& item) {
    item.stick();
    if (item.number() >= 0) throw std::runtime_error("not yet");
    return item.number();
  };
  auto later = [&](const moved_badly& item) -> task<int> { co_return number_of(item); };
  std::atomic<bool> is_stuck = false;
  auto one = [&] {
    return from(numbers{1}) | map([&](int i) { return moved_badly(i, is_stuck); });
  };
  for (auto& moved : {one() | map(number_of, twice), one() | map(later, twice)}) {
    is_stuck = false;
    EXPECT_THAT([&] { collect(runtime, moved); },
                ThrowsMessage<stage_error>(HasSubstr("cannot be moved")));
    is_stuck = false;
    EXPECT_THAT(collect(runtime, moved, {.on_error = on_error::skip}), testing::IsEmpty());
  }
}

// Can be copied until it is broken.
class breakable {
 public:
  explicit breakable(const std::atomic<bool>& is_broken) : is_broken_(&is_broken) {}
  breakable(breakable&&) = default;
  breakable& operator=(breakable&&) = default;
  breakable(const breakable& other) : is_broken_(other.is_broken_) {
    if (*is_broken_) throw std::runtime_error("cannot be copied");
  }

 private:
  const std::atomic<bool>* is_broken_;
};

TEST(Substitute, ACopyThatThrowsIsAFailureOfItsItem) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 3u}) {
    std::atomic<bool> is_broken = false;
    auto fail_at_two = [&](int i) {
      if (i < 2) return breakable(is_broken);
      is_broken = true;
      throw std::runtime_error("broken");
    };
    auto items = runtime.run(
        from(numbers{3}) |
        map(fail_at_two,
            {.concurrency = concurrency, .substitute = breakable(is_broken), .name = "make"}));
    EXPECT_THAT([&] { collect(items); },
                ThrowsMessage<stage_error>(HasSubstr("make (2): cannot be copied")));
    EXPECT_THAT(items.failures(), SizeIs(1));
    EXPECT_EQ(items.statistics().stages.at(1).failed, 1u);
    EXPECT_EQ(items.statistics().stages.at(1).substituted, 0u);
  }
}

static async_generator<int> refuse_to_begin(async_generator<int>) {
  throw std::runtime_error("not started");
}
static async_generator<int> refuse_both(async_generator<int> in, async_generator<int>) {
  return refuse_to_begin(std::move(in));
}
struct throws_when_called {
  async_generator<int> operator()(async_generator<int>) const { throw std::runtime_error("no"); }
  async_generator<int> operator()(async_generator<int>, async_generator<int>) const {
    throw std::runtime_error("no");
  }
};

TEST(Failure, OfAStageThatCannotStartNamesIt) {
  runtime runtime({.threads = 1});
  auto message_of = [&](const pipeline<int>& what) { return only_failure(runtime, what); };
  auto some = from(numbers{3});
  EXPECT_EQ(message_of(some | through(refuse_to_begin)), "through: not started");
  EXPECT_EQ(message_of(combine(refuse_both, some, some)), "combine: not started");
  EXPECT_EQ(message_of(some | through(throws_when_called())), "throws_when_called: no");
  EXPECT_EQ(message_of(combine(throws_when_called(), some, some)), "throws_when_called: no");
  merge_options options{.order = merge_order::weighted};
  options.weights_of = [](std::uint64_t) -> std::vector<double> {
    throw std::runtime_error("no weights");
  };
  EXPECT_EQ(message_of(merge(std::vector<pipeline<int>>{some, some}, options)),
            "merge: no weights");
}

// As many items, and then a failure.
static pipeline<int> failing_after(int count) {
  return from([count]() -> async_generator<int> { return give_and_fail(count); });
}

TEST(Failure, IsReportedAfterTheItemsThatStagesHold) {
  runtime runtime({.threads = 2});
  auto given_by = [&]<class T>(const pipeline<T>& what) {
    std::vector<T> given;
    auto items = runtime.run(what);
    try {
      while (auto item = items.wait_next()) given.push_back(std::move(*item));
      ADD_FAILURE() << "no failure";
    } catch (const stage_error& e) {
      EXPECT_STREQ(e.what(), "source: the end of the disk");
    }
    return given;
  };
  auto ten = failing_after(10);
  auto same_length = [](int) { return 1; };
  EXPECT_THAT(given_by(ten | shuffle()), SizeIs(10));
  EXPECT_THAT(given_by(ten | batch(4)), SizeIs(3));
  EXPECT_THAT(given_by(ten | batch(4) | unbatch()), SizeIs(8));
  EXPECT_THAT(given_by(zip(ten | batch(4), from(up_to(20), {.name = "list"}) | batch(4))),
              SizeIs(2));
  EXPECT_THAT(given_by(ten | tee(batch(4), batch(4))), SizeIs(2));
  EXPECT_THAT(given_by(ten | batch({.size = 4, .drop_last = true})), SizeIs(2));
  EXPECT_THAT(given_by(ten | bucket(same_length, {.size = 16})), ElementsAre(SizeIs(10)));
  EXPECT_THAT(given_by(ten | window(3, {.step = 4})), SizeIs(2));
  EXPECT_THAT(given_by(ten | window(2, {.step = 4})), SizeIs(2));
  EXPECT_THAT(given_by(ten | batch_by(pairs())), SizeIs(5));
  EXPECT_THAT(given_by(failing_after(3) | batch_by(pairs())), ElementsAre(SizeIs(2), SizeIs(1)));
  EXPECT_THAT(given_by(ten | map(refuse_none, {.concurrency = 2}) | batch(4)), SizeIs(3));
}

// Puts two and two together until an item is refused.
class pairs_up_to {
 public:
  explicit pairs_up_to(int end) : end_(end) {}
  std::optional<std::vector<int>> add(int&& item) {
    if (item == end_) throw std::runtime_error("no");
    return pairs_.add(std::move(item));
  }
  std::optional<std::vector<int>> flush() { return pairs_.flush(); }

 private:
  int end_;
  pairs pairs_;
};

TEST(Failure, OfAStageThatHoldsItemsIsReportedAfterThem) {
  runtime runtime({.threads = 1});
  auto given_by = [&](const pipeline<std::vector<int>>& what) {
    std::vector<std::vector<int>> given;
    auto items = runtime.run(what);
    EXPECT_THAT(
        [&] {
          while (auto item = items.wait_next()) given.push_back(*item);
        },
        ThrowsMessage<stage_error>(HasSubstr(" (5): no")));
    return given;
  };
  auto length = [](int i) { return i == 5 ? refuse_all(i) : 1; };
  EXPECT_THAT(given_by(from(numbers{9}) | bucket(length, {.size = 8})), ElementsAre(SizeIs(5)));
  EXPECT_THAT(given_by(from(numbers{9}) | batch_by(pairs_up_to(5))),
              ElementsAre(SizeIs(2), SizeIs(2), SizeIs(1)));
}

TEST(Failure, AfterAStopHeldItemsAreDropped) {
  runtime runtime({.threads = 2});
  gate held;
  int seen = 0;
  auto source = from([&held]() -> async_generator<int> { return give_and_wait(5, held); });
  {
    auto items = runtime.run(source | shuffle() | map([&](int i) { return ++seen, i; }));
    held.wait_for(1);
    items.stop();
    held.open();
  }
  EXPECT_EQ(seen, 0);
}

TEST(FromIndex, AnItemThatCannotBeMadeIsDroppedWhereTheRunSaysSo) {
  runtime runtime({.threads = 1});
  auto picky = [](std::uint64_t i) { return refuse_odd(static_cast<int>(i)); };
  auto items = runtime.run(from_index(5, picky), {.on_error = on_error::skip});
  EXPECT_THAT(collect(items), ElementsAre(0, 2, 4));
  EXPECT_THAT(items.failures(), SizeIs(2));
  EXPECT_EQ(items.failures()[1].item, "item 3");
  EXPECT_THAT([&] { collect(runtime, from_index(5, picky)); },
              ThrowsMessage<stage_error>(HasSubstr("source (item 1): odd")));
}

TEST(FromIndex, ResumesFromAStateBehindDroppedItems) {
  runtime runtime({.threads = 1});
  auto picky = from_index(9, [](std::uint64_t i) { return refuse_odd(static_cast<int>(i)); });
  auto items = runtime.run(picky, {.on_error = on_error::skip});
  items.wait_next();
  items.wait_next();
  auto rest = runtime.run(picky, {.state = items.state(), .on_error = on_error::skip});
  EXPECT_THAT(collect(rest), ElementsAre(4, 6, 8));
  EXPECT_THAT(rest.failures(), SizeIs(3));
}

TEST(ErrorBudget, OfAStageThatMayNotSkipIsRefused) {
  auto list = from(test::up_to(3));
  auto same = [](int i) { return i; };
  auto any = [](int) { return true; };
  auto refused = [](const char* stage) {
    return ThrowsMessage<error>(std::string(stage) +
                                ": error_budget has no effect with on_error::fail");
  };
  constexpr auto fail = on_error::fail;
  const error_budget budget{.count = 5};
  EXPECT_THAT([&] { list | map(same, {.on_error = fail, .error_budget = budget}); },
              refused("map"));
  EXPECT_THAT([&] { list | filter(any, {.on_error = fail, .error_budget = budget}); },
              refused("filter"));
  EXPECT_THAT([&] { list | flat_map(test::up_to, {.on_error = fail, .error_budget = budget}); },
              refused("flat_map"));
  EXPECT_THAT([&] { list | route(same, {.on_error = fail, .error_budget = budget}, map(same)); },
              refused("route"));
  EXPECT_NO_THROW((list | map(same, {.on_error = fail, .substitute = 7, .error_budget = budget})));
}

}  // namespace lade::failure_test
