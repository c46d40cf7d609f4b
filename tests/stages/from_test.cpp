#include <lade/cut.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/shuffle.hpp>
#include <lade/sleep.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

namespace lade {

using test::collect;
using test::numbers;
using testing::ElementsAre;
using testing::SizeIs;
using testing::ThrowsMessage;

TEST(From, AVectorAnArrayAListOrAGenerator) {
  runtime runtime({.threads = 1});
  EXPECT_THAT(collect(runtime, from(std::vector{1, 2, 3})), ElementsAre(1, 2, 3));
  EXPECT_THAT(collect(runtime, from(std::array{1, 2, 3})), ElementsAre(1, 2, 3));
  EXPECT_THAT(collect(runtime, from(std::list{1, 2, 3})), ElementsAre(1, 2, 3));
  EXPECT_THAT(collect(runtime, from(numbers{3})), ElementsAre(0, 1, 2));
}

TEST(From, AFunctionOfOptionalsBeginsAnewInEveryRun) {
  runtime runtime({.threads = 1});
  auto made = from([i = 0]() mutable { return i < 3 ? std::optional(i++) : std::nullopt; });
  EXPECT_THAT(collect(runtime, made), ElementsAre(0, 1, 2));
  EXPECT_THAT(collect(runtime, made), ElementsAre(0, 1, 2));
}

TEST(From, AFunctionOfARangeIsCalledInEveryRun) {
  runtime runtime({.threads = 1});
  int calls = 0;
  auto listed = from([&] {
    ++calls;
    return std::vector{0, 1, 2, 3, 4};
  });
  EXPECT_EQ(calls, 0);
  EXPECT_THAT(collect(runtime, listed | skip(1) | take(2) | repeat(2)), ElementsAre(1, 2, 1, 2));
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(test::sorted(collect(runtime, listed | shuffle())), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(calls, 2);
  auto walked = from([] { return std::ranges::owning_view(std::list{1, 2, 3}); });
  EXPECT_THAT(collect(runtime, walked), ElementsAre(1, 2, 3));
  EXPECT_THAT(collect(runtime, walked), ElementsAre(1, 2, 3));
}

TEST(From, MayHaveANameThatErrorsAndStatisticsCallIt) {
  runtime runtime({.threads = 1});
  auto refuse = [](std::uint64_t i) -> int { throw std::runtime_error("no " + std::to_string(i)); };
  auto indexed = from_index(3, refuse, {.name = "pages"}) | skip(1);
  auto walked = from(numbers{3}, {.name = "words"});
  EXPECT_THAT([&] { collect(runtime, indexed); },
              ThrowsMessage<stage_error>("pages (item 1): no 1"));
  auto items = runtime.run(walked);
  collect(items);
  EXPECT_EQ(items.statistics().stages.front().name, "words");
}

TEST(From, ItemsMadeByTheirIndexAreMadeOnlyWhenVisited) {
  runtime runtime({.threads = 1});
  std::vector<std::uint64_t> made;
  auto squares = from_index(1000, [&](std::uint64_t i) {
    made.push_back(i);
    return std::make_unique<std::uint64_t>(i * i);
  });
  EXPECT_THAT(collect(runtime, squares | skip(3) | take(2) | repeat(2)), SizeIs(4));
  EXPECT_THAT(made, ElementsAre(3, 4, 3, 4));
}

TEST(From, AnItemThatCannotBeMadeIsNamed) {
  runtime runtime({.threads = 1});
  auto items = runtime.run(from_index(10, [](std::uint64_t i) {
    if (i == 4) throw std::runtime_error("four");
    return i;
  }));
  try {
    while (items.wait_next()) {}
    ADD_FAILURE();
  } catch (const stage_error& e) {
    EXPECT_STREQ(e.what(), "source (item 4): four");
  }
}

static int refuse_three(int i) {
  if (i == 3) throw std::runtime_error("three");
  return i;
}

static async_generator<int> numbers_until_three() {
  for (int i = 0;; ++i) {
    int item = refuse_three(i);
    co_yield item;
  }
}

// A generator that is ready for the next item only after a wait.
static async_generator<int> numbers_later() {
  for (int i = 0;; ++i) {
    co_await sleep(std::chrono::nanoseconds(1));
    int item = refuse_three(i);
    co_yield item;
  }
}

struct broken_listing {
  async_generator<int> list() const { return numbers_until_three(); }
  std::vector<int> list_all() const { throw std::runtime_error("three"); }
};

// What a source gives that fails at item 3.
static void expect_three_items(const pipeline<int>& source, const std::string& why) {
  runtime runtime({.threads = 2});
  auto same = [](int i) { return i; };
  for (const auto& each : {source, source | map(same, {.concurrency = 3})}) {
    auto items = runtime.run(each);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(items.wait_next(), i);
    EXPECT_THAT([&] { items.wait_next(); }, ThrowsMessage<stage_error>(why));
    EXPECT_FALSE(items.wait_next());
  }
}

TEST(From, ASourceThatFailsGivesWhatCameBefore) {
  auto optionals = [i = 0]() mutable { return std::optional(refuse_three(i++)); };
  expect_three_items(from(optionals), "source: three");
  std::list list{0, 1, 2, 3, 4};
  expect_three_items(from(std::views::transform(list, refuse_three)), "source: three");
  expect_three_items(from(numbers_until_three), "source: three");
  expect_three_items(from(numbers_later), "source: three");
  expect_three_items(from(broken_listing()), "source: three");
  expect_three_items(from(broken_listing()) | take(9), "source: three");
}

TEST(From, AListThatFailsGivesWhatCameBeforeAndNamesTheItem) {
  auto by_index = from_index(9, [](std::uint64_t i) { return refuse_three(static_cast<int>(i)); });
  expect_three_items(by_index, "source (item 3): three");
  std::vector list{0, 1, 2, 3, 4};
  expect_three_items(from(std::views::transform(list, refuse_three)), "source (item 3): three");
}

TEST(From, AListingThatCannotBeReadAsAWholeGivesNothing) {
  runtime runtime({.threads = 1});
  auto items = runtime.run(from(broken_listing()) | shuffle());
  EXPECT_THAT([&] { items.wait_next(); }, ThrowsMessage<stage_error>("source: three"));
  EXPECT_FALSE(items.wait_next());
}

TEST(From, AFunctionThatThrowsInsteadOfGivingItemsIsNamed) {
  runtime runtime({.threads = 1});
  auto message_of = [&](const pipeline<int>& what) { return test::only_failure(runtime, what); };
  auto list = []() -> std::vector<int> { throw std::runtime_error("no list"); };
  auto range = []() -> std::list<int> { throw std::runtime_error("no range"); };
  auto generator = []() -> async_generator<int> { throw std::runtime_error("no generator"); };
  EXPECT_EQ(message_of(from(list)), "source: no list");
  EXPECT_EQ(message_of(from(range)), "source: no range");
  EXPECT_EQ(message_of(from(generator)), "source: no generator");
}

// Something that can be listed lazily or as a whole, and counts how it was.
struct listed {
  int* whole;
  async_generator<int> list() const { return test::count_to(5); }
  std::vector<int> list_all() const {
    ++*whole;
    return {0, 1, 2, 3, 4};
  }
};

TEST(From, AListingIsReadAsAWholeOnlyWhereItMustBe) {
  runtime runtime({.threads = 1});
  int whole = 0;
  EXPECT_THAT(collect(runtime, from(listed{&whole})), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(collect(runtime, from(listed{&whole}) | skip(1) | take(2)), ElementsAre(1, 2));
  EXPECT_EQ(whole, 0);
  EXPECT_THAT(collect(runtime, from(listed{&whole}) | shuffle()),
              testing::UnorderedElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(whole, 1);
}

}  // namespace lade
