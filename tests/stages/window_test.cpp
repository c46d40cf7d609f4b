#include <lade/error.hpp>
#include <lade/filter.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/through.hpp>
#include <lade/window.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace lade::window_test {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;
using ints = std::vector<int>;

TEST(Window, SlidesByOneItem) {
  runtime runtime({.threads = 1});
  EXPECT_THAT(collect(runtime, from(numbers{5}) | window(3)),
              ElementsAre(ints{0, 1, 2}, ints{1, 2, 3}, ints{2, 3, 4}));
  EXPECT_THAT(collect(runtime, from(numbers{2}) | window(3)), IsEmpty());
  EXPECT_THAT(collect(runtime, from(numbers{2}) | window(1)), ElementsAre(ints{0}, ints{1}));
}

TEST(Window, MovesByItsStep) {
  runtime runtime({.threads = 1});
  EXPECT_THAT(collect(runtime, from(numbers{8}) | window(3, {.step = 2})),
              ElementsAre(ints{0, 1, 2}, ints{2, 3, 4}, ints{4, 5, 6}));
  EXPECT_THAT(collect(runtime, from(numbers{8}) | window(3, {.step = 3})),
              ElementsAre(ints{0, 1, 2}, ints{3, 4, 5}));
  EXPECT_THAT(collect(runtime, from(numbers{8}) | window(2, {.step = 3})),
              ElementsAre(ints{0, 1}, ints{3, 4}, ints{6, 7}));
  EXPECT_THAT(collect(runtime, from(numbers{7}) | window(2, {.step = 3})),
              ElementsAre(ints{0, 1}, ints{3, 4}));
}

static async_generator<std::string> origins(async_generator<ints> in) {
  while (co_await in.next()) {
    auto positions = to_string(in.origin());
    co_yield positions;
  }
}

TEST(Window, HasTheLineageOfItsItems) {
  runtime runtime({.threads = 1});
  auto even = from(numbers{10}) | filter([](int i) { return i % 2 == 0; });
  EXPECT_THAT(collect(runtime, even | window(3) | through(origins)),
              ElementsAre("0-4", "1-6", "3-8"));
  EXPECT_THAT(collect(runtime, from(numbers{8}) | window(2, {.step = 3}) | through(origins)),
              ElementsAre("0-2", "3-5", "6-7"));
}

TEST(Window, ThatDoesNotOverlapResumesExactly) {
  runtime runtime({.threads = 2});
  for (std::size_t step : {3u, 4u, 7u}) {
    auto windows = from(numbers{50}) | map([](int i) { return i; }) | window(3, {.step = step});
    std::vector<ints> parts;
    run_options options;
    while (true) {
      auto items = runtime.run(windows, options);
      auto one = items.wait_next();
      if (!one) break;
      parts.push_back(*one);
      options.state = items.state();
    }
    EXPECT_EQ(parts, collect(runtime, windows)) << "step " << step;
  }
}

TEST(Window, ThatOverlapsHasNoState) {
  runtime runtime({.threads = 1});
  auto items = runtime.run(from(numbers{9}) | window(3));
  items.wait_next();
  EXPECT_THAT([&] { items.state(); },
              ThrowsMessage<error>(HasSubstr("window puts an item into several windows")));
}

TEST(Window, CountsItems) {
  runtime runtime({.threads = 1});
  auto items = runtime.run(from(numbers{9}) | window(3));
  collect(items);
  auto stage = items.statistics().stages.back();
  EXPECT_EQ(stage.name, "window");
  EXPECT_EQ(stage.in, 9u);
  EXPECT_EQ(stage.out, 7u);
}

TEST(Window, CopiesItemsOnlyToOverlap) {
  runtime runtime({.threads = 1});
  auto owned = from(numbers{5}) | map([](int i) { return std::make_unique<int>(i); });
  EXPECT_EQ(collect(runtime, owned | window(2, {.step = 2})).size(), 2u);
  EXPECT_THAT([&] { owned | window(2); },
              ThrowsMessage<error>(HasSubstr("items that cannot be copied")));
}

TEST(Window, ACopyThatThrowsNamesStageAndItem) {
  runtime runtime({.threads = 1});
  auto items = from(numbers{5}) | map(make_fragile);
  EXPECT_EQ(only_failure(runtime, items | window(2)), "window (f0): no copy");
  EXPECT_EQ(collect(runtime, items | window(2, {.step = 2})).size(), 2u);
}

}  // namespace lade::window_test
