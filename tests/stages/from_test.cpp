#include <lade/cut.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/sleep.hpp>
#include <lade/state.hpp>
#include <lade/task.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lade::from_test {

using test::collect;
using test::numbers;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::ThrowsMessage;

TEST(From, AVectorAnArrayAListOrAGenerator) {
  runtime runtime({.threads = 1});
  EXPECT_THAT(collect(runtime, from(std::vector{1, 2, 3})), ElementsAre(1, 2, 3));
  EXPECT_THAT(collect(runtime, from(std::array{1, 2, 3})), ElementsAre(1, 2, 3));
  EXPECT_THAT(collect(runtime, from(std::list{1, 2, 3})), ElementsAre(1, 2, 3));
  EXPECT_THAT(collect(runtime, from(numbers{3})), ElementsAre(0, 1, 2));
}

TEST(From, AFunctionOfOptionalsRestartsInEveryRun) {
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

// Squares, by their index.
class squares {
 public:
  explicit squares(std::uint64_t count, std::string name = "squares")
      : count_(count), name_(std::move(name)) {}
  std::uint64_t size() const { return count_; }
  int at(std::uint64_t i) const {
    if (i == 4) throw std::runtime_error("four");
    return static_cast<int>(i * i);
  }
  std::string identity() const { return name_; }

 private:
  std::uint64_t count_;
  std::string name_;
};

TEST(From, AnIndexSourceIsCutShuffledShardedAndRepeatedByIndex) {
  runtime runtime({.threads = 1});
  auto first = from(squares(4));
  EXPECT_THAT(collect(runtime, first), ElementsAre(0, 1, 4, 9));
  EXPECT_THAT(collect(runtime, first | skip(1) | take(2) | repeat(2)), ElementsAre(1, 4, 1, 4));
  EXPECT_THAT(collect(runtime, first | shard({.rank = 1, .world = 2})), ElementsAre(1, 9));
  EXPECT_THAT(test::sorted(collect(runtime, first | shuffle())), ElementsAre(0, 1, 4, 9));
  auto shuffled = from(squares(1000), {.name = "squares"}) | shuffle() | shard({.world = 3});
  EXPECT_EQ(shuffled.size(), 333u);
  EXPECT_EQ(shuffled.describe().stages.size(), 1u);  // the order is the source's
}

TEST(From, AnIndexSourceMakesOnlyTheItemsThatAreVisited) {
  runtime runtime({.threads = 1});
  EXPECT_THAT(collect(runtime, from(squares(1000)) | skip(5) | take(2)), ElementsAre(25, 36));
  EXPECT_THAT([&] { collect(runtime, from(squares(5))); },
              ThrowsMessage<stage_error>("source (item 4): four"));
  EXPECT_THAT(collect(runtime, from(squares(6)), {.on_error = on_error::skip}), SizeIs(5));
}

// The state of a run that has delivered one item.
template <class T>
static state state_behind_one(runtime& where, const pipeline<T>& what) {
  auto items = where.run(what);
  items.wait_next();
  return items.state();
}

TEST(From, StatesCompareTheIdentityOfAnIndexSource) {
  runtime runtime({.threads = 1});
  auto saved = state_behind_one(runtime, from(squares(4)));
  EXPECT_THAT(collect(runtime, from(squares(4)), {.state = saved}), ElementsAre(1, 4, 9));
  EXPECT_THAT([&] { collect(runtime, from(squares(4, "cubes")), {.state = saved}); },
              ThrowsMessage<error>(HasSubstr("squares")));
  auto called = from(squares(4, "cubes"), {.identity = "squares"});
  EXPECT_THAT(collect(runtime, called, {.state = saved}), ElementsAre(1, 4, 9));
}

static task<squares> load_squares(std::shared_ptr<int> calls) {
  ++*calls;
  co_await sleep(std::chrono::nanoseconds(1));
  co_return squares(4);
}

static task<std::vector<int>> fail_to_load() {
  throw std::runtime_error("no table");
  co_return std::vector<int>();
}

TEST(From, ATaskOfAnIndexSourceIsAwaitedInEveryRun) {
  runtime runtime({.threads = 1});
  auto calls = std::make_shared<int>();
  auto loaded = from([calls] { return load_squares(calls); });
  EXPECT_EQ(loaded.size(), std::nullopt);
  EXPECT_EQ(*calls, 0);
  EXPECT_THAT(collect(runtime, loaded | skip(2) | repeat(2)), ElementsAre(4, 9, 4, 9));
  EXPECT_EQ(*calls, 1);
  auto saved = state_behind_one(runtime, loaded);
  EXPECT_THAT(collect(runtime, loaded, {.state = saved}), ElementsAre(1, 4, 9));
  EXPECT_THAT([&] { collect(runtime, from(squares(4, "cubes")), {.state = saved}); },
              ThrowsMessage<error>(HasSubstr("squares")));
  EXPECT_THAT([&] { collect(runtime, from(fail_to_load, {.name = "table"})); },
              ThrowsMessage<stage_error>("table: no table"));
}

TEST(From, AFunctionOfAnIndexSourceIsCalledInEveryRun) {
  runtime runtime({.threads = 1});
  int calls = 0;
  auto made = from([&calls] { return squares(static_cast<std::uint64_t>(++calls)); });
  EXPECT_THAT(collect(runtime, made), ElementsAre(0));
  EXPECT_THAT(collect(runtime, made), ElementsAre(0, 1));
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

// Expects three items and the failure of a source that fails at item 3.
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

TEST(From, AFailedSourceDeliversEarlierItems) {
  auto optionals = [i = 0]() mutable { return std::optional(refuse_three(i++)); };
  expect_three_items(from(optionals), "source: three");
  std::list list{0, 1, 2, 3, 4};
  expect_three_items(from(std::views::transform(list, refuse_three)), "source: three");
  expect_three_items(from(numbers_until_three), "source: three");
  expect_three_items(from(numbers_later), "source: three");
  expect_three_items(from(broken_listing()), "source: three");
  expect_three_items(from(broken_listing()) | take(9), "source: three");
}

TEST(From, AFailedListDeliversEarlierItemsAndNamesTheItem) {
  auto by_index = from_index(9, [](std::uint64_t i) { return refuse_three(static_cast<int>(i)); });
  expect_three_items(by_index, "source (item 3): three");
  std::vector list{0, 1, 2, 3, 4};
  expect_three_items(from(std::views::transform(list, refuse_three)), "source (item 3): three");
}

TEST(From, AShuffledListingThatFailsDeliversNothing) {
  runtime runtime({.threads = 1});
  auto items = runtime.run(from(broken_listing()) | shuffle());
  EXPECT_THAT([&] { items.wait_next(); }, ThrowsMessage<stage_error>("source: three"));
  EXPECT_FALSE(items.wait_next());
}

TEST(From, AFunctionThatThrowsInsteadOfReturningIsNamed) {
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

}  // namespace lade::from_test
