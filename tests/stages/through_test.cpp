#include <lade/async_generator.hpp>
#include <lade/error.hpp>
#include <lade/failure.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/through.hpp>

#include "../support/pipelines.hpp"
#include "../support/resume.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lade::through_test {

using test::collect;
using test::up_to;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Sums of two items each, and the last alone. Throws where an item is one of `bad`.
static async_generator<int> pair_sums(async_generator<int> in, std::vector<int> bad) {
  int sum = 0;
  bool has_one = false;
  while (auto* item = co_await in.next()) {
    if (std::ranges::find(bad, *item) != bad.end())
      throw std::runtime_error("bad " + std::to_string(*item));
    sum += *item;
    has_one = !has_one;
    if (has_one) continue;
    co_yield sum;
    sum = 0;
  }
  if (has_one) co_yield sum;
}

static constexpr through_options skipping{.lineage = lineage_rule::consumed,
                                          .on_error = on_error::skip};

static auto sums_without(std::vector<int> bad, through_options options = skipping) {
  return through(pair_sums, options, std::move(bad));
}

TEST(ThroughOnError, SkipDropsWhatTheCoroutineHasTakenSinceItsLastItem) {
  runtime where;
  EXPECT_THAT(collect(where, from(up_to(8)) | sums_without({3})), ElementsAre(1, 9, 13));
  EXPECT_THAT(collect(where, from(up_to(8)) | sums_without({0, 4})), ElementsAre(3, 11, 7));
}

TEST(ThroughOnError, SkipCountsOneFailureAndNamesTheItemTakenLast) {
  runtime where;
  auto run = where.run(from(up_to(8)) | sums_without({3}));
  collect(run);
  auto failures = run.failures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].stage, "through");
  EXPECT_EQ(failures[0].item, "3");
  EXPECT_EQ(to_string(failures[0].positions), "2-3");
  EXPECT_EQ(run.statistics().stages.back().failed, 1u);
}

TEST(ThroughOnError, FailEndsTheRunAlsoWhereTheRunSkips) {
  runtime where;
  auto items = from(up_to(8)) | through(pair_sums, {}, std::vector{3});
  EXPECT_THAT([&] { collect(where, items, {.on_error = on_error::skip}); },
              ThrowsMessage<stage_error>(HasSubstr("bad 3")));
}

TEST(ThroughOnError, AFailureOfTheInputIsNotSkipped) {
  auto failing = map([](int item) {
    if (item == 5) throw std::runtime_error("five");
    return item;
  });
  runtime where;
  EXPECT_THAT([&] { collect(where, from(up_to(8)) | failing | sums_without({})); },
              ThrowsMessage<stage_error>(HasSubstr("five")));
}

TEST(ThroughOnError, ACoroutineThatThrowsBeforeItTakesAnItemEndsTheRun) {
  auto never = [](async_generator<int> in) -> async_generator<int> {
    throw std::runtime_error("no model");
    while (auto* item = co_await in.next()) co_yield *item;
  };
  runtime where;
  EXPECT_THAT([&] { collect(where, from(up_to(3)) | through(never, skipping)); },
              ThrowsMessage<stage_error>(HasSubstr("no model")));
}

TEST(ThroughOnError, ACoroutineThatThrowsAtTheEndOfItsInputIsNotCalledAgain) {
  auto throws_at_end = [](async_generator<int> in) -> async_generator<int> {
    while (auto* item = co_await in.next()) co_yield *item;
    throw std::runtime_error("end");
  };
  runtime where;
  auto run = where.run(from(up_to(3)) | through(throws_at_end, skipping));
  EXPECT_EQ(collect(run), up_to(3));
  EXPECT_EQ(run.statistics().stages.back().failed, 1u);
}

TEST(ThroughOnError, SkipEndsTheRunWithOneFailureMoreThanItsBudget) {
  auto options = skipping;
  options.error_budget = {.count = 1};
  runtime where;
  EXPECT_THAT(collect(where, from(up_to(8)) | sums_without({3}, options)), ElementsAre(1, 9, 13));
  EXPECT_THAT([&] { collect(where, from(up_to(8)) | sums_without({1, 3}, options)); },
              ThrowsMessage<stage_error>(HasSubstr("bad 3")));
}

TEST(ThroughOnError, ABudgetWithoutSkipIsRefused) {
  EXPECT_THAT([] { sums_without({}, {.error_budget = {.count = 3}}); },
              ThrowsMessage<error>(HasSubstr("error_budget has no effect without")));
}

TEST(ThroughOnError, SkipIsRefusedWhereTheCoroutineHoldsItems) {
  auto options = skipping;
  options.lineage = lineage_rule::carried;
  EXPECT_THAT([&] { sums_without({}, options); },
              ThrowsMessage<error>(AllOf(HasSubstr("on_error::skip"), HasSubstr("carried"))));
}

static async_generator<int> but(async_generator<int> in, int bad) {
  while (auto* item = co_await in.next()) {
    if (*item == bad) throw std::runtime_error("bad");
    co_yield *item;
  }
}

static async_generator<int> through_a_helper(async_generator<int> in, int bad) {
  auto items = but(std::move(in), bad);
  while (auto* item = co_await items.next()) co_yield *item;
}

TEST(ThroughOnError, WhatAHelperOfTheCoroutineHasTakenIsSkippedToo) {
  runtime where;
  auto items = from(up_to(8)) | through(through_a_helper, skipping, 3);
  auto run = where.run(items);
  EXPECT_THAT(collect(run), ElementsAre(0, 1, 2, 4, 5, 6, 7));
  auto first = where.run(items);
  for (int i = 0; i < 5; ++i) first.wait_next();
  EXPECT_EQ(to_string(first.state().delivered), "0-5");
}

TEST(ThroughOnError, ARunWithSkippedItemsResumesExactly) {
  runtime where;
  auto make = [] { return from(up_to(40)) | sums_without({3, 4, 11, 20, 39}); };
  const auto whole = collect(where, make());
  for (std::size_t step = 1; step < 6; ++step)
    EXPECT_EQ(test::with_interruptions(where, make, step), whole) << "after " << step;
}

static async_generator<int> row_sums(async_generator<int> a, async_generator<int> b) {
  while (true) {
    auto* left = co_await a.next();
    auto* right = co_await b.next();
    if (!left || !right) co_return;
    if (*left == 2) throw std::runtime_error("two");
    int sum = *left + *right;
    co_yield sum;
  }
}

TEST(CombineOnError, SkipDropsWhatItHasTakenOfAllInputs) {
  runtime where;
  auto rows = combine(row_sums, skipping, from(up_to(5)), from(up_to(5)));
  EXPECT_THAT(collect(where, rows), ElementsAre(0, 2, 6, 8));
}

TEST(CombineOnError, AFailureOfAnInputIsNotSkipped) {
  auto failing = from(up_to(5)) | map([](int item) {
                   if (item == 3) throw std::runtime_error("three");
                   return item;
                 });
  runtime where;
  EXPECT_THAT([&] { collect(where, combine(row_sums, skipping, failing, from(up_to(5)))); },
              ThrowsMessage<stage_error>(HasSubstr("three")));
}

}  // namespace lade::through_test
