#include <lade/cut.hpp>
#include <lade/from.hpp>
#include <lade/shuffle.hpp>

#include "support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace lade {

using test::collect;
using test::numbers;
using testing::ElementsAre;
using testing::SizeIs;

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
