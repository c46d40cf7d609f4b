#include <lade/bucket.hpp>
#include <lade/error.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/random.hpp>
#include <lade/run.hpp>
#include <lade/through.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace lade::bucket_test {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;
using ints = std::vector<int>;

// Numbers whose length they are themselves.
static int itself(int i) {
  if (i == 13) throw std::runtime_error("unlucky");
  return i;
}

static std::vector<ints> batches(const ints& items, const bucket_options& options) {
  runtime runtime({.threads = 1});
  return collect(runtime, from(items) | bucket(itself, options));
}

TEST(Bucket, BatchesItemsOfAboutTheSameLength) {
  EXPECT_THAT(batches({1, 20, 2, 200, 10, 30, 11}, {.boundaries = {10, 100}, .size = 2}),
              ElementsAre(ints{1, 2}, ints{20, 30}, ints{10}, ints{11}, ints{200}));
  EXPECT_THAT(batches({}, {.boundaries = {10, 100}, .size = 2}), IsEmpty());
}

TEST(Bucket, WithoutBoundariesIsOneOfAll) {
  EXPECT_THAT(batches({1, 20, 2}, {.size = 2}), ElementsAre(ints{1, 20}, ints{2}));
}

TEST(Bucket, KeepsToItsBudgetOfPaddedElements) {
  EXPECT_THAT(batches({5, 5, 5, 5, 5}, {.padded = 20}), ElementsAre(ints{5, 5, 5, 5}, ints{5}));
  EXPECT_THAT(batches({1, 2, 3, 10, 1}, {.padded = 20}), ElementsAre(ints{1, 2, 3}, ints{10, 1}));
  EXPECT_THAT(batches({0, 0, 0}, {.padded = 1}), ElementsAre(ints{0, 0, 0}));
}

TEST(Bucket, AnItemThatExceedsTheBudgetGoesAlone) {
  EXPECT_THAT(batches({1, 100, 2}, {.padded = 20}), ElementsAre(ints{1}, ints{100}, ints{2}));
}

TEST(Bucket, MayDropTheRemainder) {
  EXPECT_THAT(batches({1, 2, 30, 3}, {.boundaries = {10}, .size = 2, .drop_last = true}),
              ElementsAre(ints{1, 2}));
}

TEST(Bucket, YieldsEveryItemOnceWithinItsBounds) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  for (int round = 0; round < 200; ++round) {
    ints items(draw.below(100));
    for (auto& each : items) each = static_cast<int>(20 + draw.below(50));
    bucket_options options{.boundaries = {30, 40}, .size = 1 + draw.below(9)};
    if (draw.below(2)) options.padded = 10 + draw.below(300);
    ints all;
    for (auto& batch : batches(items, options)) {
      auto bucket_of = [](int i) { return (i > 30) + (i > 40); };
      auto longest = static_cast<std::size_t>(*std::ranges::max_element(batch));
      ASSERT_LE(batch.size(), options.size);
      ASSERT_TRUE(batch.size() == 1 || batch.size() * longest <= options.padded);
      for (auto each : batch) ASSERT_EQ(bucket_of(each), bucket_of(batch.front()));
      all.insert(all.end(), batch.begin(), batch.end());
    }
    std::ranges::sort(all);
    std::ranges::sort(items);
    ASSERT_EQ(all, items);
  }
}

static async_generator<std::string> origins(async_generator<ints> in) {
  while (co_await in.next()) {
    auto positions = to_string(in.origin());
    co_yield positions;
  }
}

TEST(Bucket, HasTheLineageOfItsItems) {
  runtime runtime({.threads = 1});
  ints items{1, 20, 2, 13, 30, 3};
  auto skipping = bucket(itself, {.boundaries = {10}, .size = 2, .on_error = on_error::skip});
  EXPECT_THAT(collect(runtime, from(items) | skipping | through(origins)),
              ElementsAre("0, 2", "1, 3-4", "5"));
}

TEST(Bucket, AfterAnInterruptionEveryItemIsDeliveredOnce) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime runtime({.threads = 2});
  for (int round = 0; round < 50; ++round) {
    ints items(draw.below(120));
    for (std::size_t i = 0; i < items.size(); ++i) items[i] = static_cast<int>(1000 + i);
    auto key = draw();
    auto all = from(items) | map([](int i) { return i; }) |
               bucket([key](int i) { return random(key, i).below(50); },
                      {.boundaries = {10, 30}, .size = 4});
    ints seen;
    run_options options;
    for (bool more = true; more;) {
      auto run = runtime.run(all, options);
      for (auto count = 1 + draw.below(5); more && count > 0; --count) {
        auto batch = run.wait_next();
        more = batch.has_value();
        if (more) seen.insert(seen.end(), batch->begin(), batch->end());
      }
      options.state = run.state();
    }
    std::ranges::sort(seen);
    ASSERT_EQ(seen, items);
  }
}

TEST(Bucket, HasNoStateBehindPartsOfItems) {
  runtime runtime({.threads = 1});
  auto twice = flat_map([](int i) { return ints{i, i}; });
  auto items = runtime.run(from(ints{1, 2, 3}) | twice | bucket(itself, {.size = 2}));
  items.wait_next();
  EXPECT_THAT([&] { items.state(); },
              ThrowsMessage<error>(HasSubstr("flat_map makes several items of one before bucket")));
}

TEST(Bucket, AnItemWithoutALengthFails) {
  EXPECT_THAT([] { batches({1, 13}, {.size = 2}); },
              ThrowsMessage<stage_error>("bucket (13): unlucky"));
  EXPECT_THAT([] { batches({-1}, {.size = 2, .name = "by size"}); },
              ThrowsMessage<stage_error>("by size (-1): bucket: a length below 0"));
  EXPECT_THAT(batches({1, 13, 2}, {.size = 2, .on_error = on_error::skip}),
              ElementsAre(ints{1, 2}));
}

TEST(Bucket, EndsWithMoreFailuresThanItsBudget) {
  bucket_options bounded{.size = 2, .on_error = on_error::skip, .error_budget = {.count = 2}};
  EXPECT_THAT(batches({13, 1, 13, 2}, bounded), ElementsAre(ints{1, 2}));
  EXPECT_THAT([&] { batches({13, 1, 13, 13}, bounded); },
              ThrowsMessage<stage_error>(HasSubstr("bucket (13): unlucky (more failures than")));
}

TEST(Bucket, CopiesNoItems) {
  runtime runtime({.threads = 1});
  auto owned = from(numbers{5}) | map([](int i) { return std::make_unique<int>(i); }) |
               bucket([](const std::unique_ptr<int>& i) { return *i; }, {.size = 2});
  EXPECT_EQ(collect(runtime, owned).size(), 3u);
}

TEST(Bucket, NeedsABoundAndBoundariesThatAscend) {
  auto with = [](bucket_options options) { return [options] { bucket(itself, options); }; };
  EXPECT_THAT(with({}), ThrowsMessage<error>(HasSubstr("bucket: neither a batch size nor")));
  EXPECT_THAT(with({.boundaries = {3, 3}, .size = 1}),
              ThrowsMessage<error>("bucket: boundaries that do not ascend"));
}

}  // namespace lade::bucket_test
