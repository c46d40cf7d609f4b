#include <lade/batch_by.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lade::batch_by_test {

using namespace test;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::ThrowsMessage;
using ints = std::vector<int>;

// Batches of numbers whose sum is at least 5; what is left, one by one.
class sums {
 public:
  std::optional<ints> add(int item) {
    if (item == 13) throw std::runtime_error("unlucky");
    held_.push_back(item);
    sum_ += item;
    if (sum_ < 5) return std::nullopt;
    sum_ = 0;
    return std::exchange(held_, {});
  }
  std::optional<ints> flush() {
    if (held_.empty()) return std::nullopt;
    if (held_.back() == -1) throw std::runtime_error("cannot flush");
    ints last{held_.back()};
    held_.pop_back();
    return last;
  }

 private:
  ints held_;
  int sum_ = 0;
};

TEST(BatchBy, YieldsTheBatchesOfTheAccumulator) {
  runtime runtime({.threads = 2});
  auto batches = from(ints{1, 2, 3, 4, 5, 0, 2, 1}) | batch_by(sums());
  auto expected = ElementsAre(ints{1, 2, 3}, ints{4, 5}, ints{1}, ints{2}, ints{0});
  EXPECT_THAT(collect(runtime, batches), expected);
  EXPECT_THAT(collect(runtime, batches), expected);  // on a copy of its own
  EXPECT_THAT(collect(runtime, from(ints()) | batch_by(sums())), IsEmpty());
}

TEST(BatchBy, FinalBatchesDrawDifferentRandomNumbers) {
  runtime runtime({.threads = 1});
  auto draw = map([](const ints&, random numbers) { return numbers(); });
  for (auto& in : {ints{5, 1, 2, 1}, ints{1, 2, 1}}) {
    auto drawn = collect(runtime, from(in) | batch_by(sums()) | draw);
    EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), drawn.size());
  }
}

// Pairs of what cannot be copied.
class pairs {
 public:
  using pair = std::pair<std::unique_ptr<int>, std::unique_ptr<int>>;

  pairs() = default;
  pairs(const pairs&) {}
  std::optional<pair> add(std::unique_ptr<int> item) {
    if (!first_) {
      first_ = std::move(item);
      return std::nullopt;
    }
    return pair(std::move(first_), std::move(item));
  }
  std::optional<pair> flush() { return std::nullopt; }

 private:
  std::unique_ptr<int> first_;
};

static async_generator<std::unique_ptr<int>> owned(int end) {
  for (int i = 0; i < end; ++i) {
    auto item = std::make_unique<int>(i);
    co_yield item;
  }
}

TEST(BatchBy, CopiesNoItems) {
  runtime runtime({.threads = 1});
  auto batches = collect(runtime, from([] { return owned(5); }) | batch_by(pairs()));
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(*batches[1].second, 3);
}

TEST(BatchBy, AFailureNamesTheItem) {
  runtime runtime({.threads = 1});
  EXPECT_THAT([&] { collect(runtime, from(ints{1, 13}) | batch_by(sums())); },
              ThrowsMessage<stage_error>("sums (13): unlucky"));
  EXPECT_THAT([&] { collect(runtime, from(ints{1, -1}) | batch_by(sums(), {.name = "add"})); },
              ThrowsMessage<stage_error>("add: cannot flush"));
}

TEST(BatchBy, MaySkipFailures) {
  runtime runtime({.threads = 1});
  auto skipping = batch_by(sums(), {.on_error = on_error::skip});
  auto items = runtime.run(from(ints{1, 13, 4, 13, 2, -1}) | skipping);
  EXPECT_THAT(collect(items), ElementsAre(ints{1, 4}));
  auto stage = items.statistics().stages.back();
  EXPECT_EQ(stage.in, 6u);
  EXPECT_EQ(stage.out, 1u);
  EXPECT_EQ(stage.skipped, 3u);
  auto once = batch_by(sums(), {.on_error = on_error::skip, .error_budget = {.count = 1}});
  EXPECT_THAT(
      [&] { collect(runtime, from(ints{13, 13}) | once); },
      ThrowsMessage<stage_error>("sums (13): unlucky (more failures than the budget allows)"));
}

TEST(BatchBy, HasNoState) {
  runtime runtime({.threads = 1});
  auto items = runtime.run(from(ints{9, 9}) | batch_by(sums()));
  items.wait_next();
  EXPECT_THAT([&] { items.state(); },
              ThrowsMessage<error>("state of a run: sums decides which items it holds back"));
}

// Its copies throw while `refuses` is set.
class reluctant : public sums {
 public:
  explicit reluctant(const bool& refuses) : refuses_(refuses) {}
  reluctant(const reluctant& other) : sums(other), refuses_(other.refuses_) {
    if (refuses_) throw std::runtime_error("no copy");
  }

 private:
  const bool& refuses_;
};

TEST(BatchBy, AnAccumulatorWhoseCopyThrowsNamesTheStage) {
  runtime runtime({.threads = 1});
  bool refuses = false;
  auto batches = from(ints{9, 9}) | batch_by(reluctant(refuses));
  refuses = true;
  EXPECT_EQ(only_failure(runtime, batches), "reluctant: no copy");
}

}  // namespace lade::batch_by_test
