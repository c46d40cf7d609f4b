#include <lade/batch.hpp>
#include <lade/cut.hpp>
#include <lade/error.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/pipeline.hpp>
#include <lade/random.hpp>
#include <lade/run.hpp>
#include <lade/shard.hpp>
#include <lade/through.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lade::pipeline_test {

using test::collect;
using test::numbers;

// A number and the positions that it came from.
class traced {
 public:
  traced(int value, lineage origin) : value_(value), origin_(std::move(origin)) {}
  int value() const { return value_; }
  const lineage& origin() const { return origin_; }
  void also(const lineage& more) { origin_.merge(more); }
  friend bool operator==(const traced& a, const traced& b) {
    return a.value_ == b.value_ && std::ranges::equal(a.origin_.ranges(), b.origin_.ranges());
  }
  friend void PrintTo(const traced& item, std::ostream* to) {
    *to << item.value_ << " from " << to_string(item.origin_);
  }

 private:
  int value_;
  lineage origin_;
};

static async_generator<traced> traced_items(async_generator<int> in) {
  while (auto item = co_await in.next()) co_yield traced(*item, in.origin());
}

static async_generator<int> pass_on(async_generator<int> in) {
  while (auto item = co_await in.next()) co_yield std::move(*item);
}

// A stage that a pipeline of numbers and its twin on plain vectors both know.
struct step {
  enum class kind {
    map,
    map_in_place,
    map_task,
    map_dropping,
    filter,
    flat_map,
    take,
    skip,
    repeat,
    prefetch,
    shard,
    batches,
    through
  };
  kind what;
  unsigned a;
  unsigned b;
};

static int next_number(int i) {
  test::pause(i % 3);
  return i + 1;
}
static task<int> next_number_later(int i) { co_return i + 1; }
static int refuse_thirds(int i) {
  if (i % 3 == 0) throw std::runtime_error("a third");
  return i;
}
static bool not_fourth(int i) { return i % 4 != 0; }
static std::vector<int> as_many(int i) {
  return std::vector<int>(static_cast<std::size_t>(i % 3), i);
}

static pipeline<int> append(const pipeline<int>& in, const step& s) {
  switch (s.what) {
    case step::kind::map: return in | map(next_number, {.concurrency = 2 + s.a % 4, .buffer = s.b});
    case step::kind::map_in_place: return in | map(next_number, {.concurrency = 1});
    case step::kind::map_task: return in | map(next_number_later, {.concurrency = 1 + s.a % 4});
    case step::kind::map_dropping:
      return in | map(refuse_thirds, {.concurrency = 1 + s.a % 3, .on_error = on_error::skip});
    case step::kind::filter: return in | filter(not_fourth);
    case step::kind::flat_map: return in | flat_map(as_many);
    case step::kind::take: return in | take(s.a);
    case step::kind::skip: return in | skip(s.a);
    case step::kind::repeat: return in | repeat(s.a % 3);
    case step::kind::prefetch: return in | prefetch(s.a + 1);
    case step::kind::shard: return in | shard({.rank = s.b % (s.a + 1), .world = s.a + 1});
    case step::kind::batches: return in | batch(s.a + 1) | unbatch();
    case step::kind::through: return in | through(pass_on);
  }
  return in;
}

using items = std::vector<traced>;

static items twin(unsigned count, std::span<const step> steps, std::uint64_t first);

// What a stage makes of all its input; `pending` is the lineage of what it dropped.
static items twin_of_step(const step& s, const items& in) {
  items out;
  lineage pending;
  auto give = [&](int value, const traced& from) {
    pending.merge(from.origin());
    out.emplace_back(value, std::exchange(pending, {}));
  };
  std::size_t index = 0;
  for (auto& item : in) {
    auto i = index++;
    switch (s.what) {
      case step::kind::map:
      case step::kind::map_in_place:
      case step::kind::map_task: give(item.value() + 1, item); break;
      case step::kind::map_dropping:
        if (item.value() % 3 == 0)
          pending.merge(item.origin());
        else
          give(item.value(), item);
        break;
      case step::kind::filter:
        if (item.value() % 4 == 0)
          pending.merge(item.origin());
        else
          give(item.value(), item);
        break;
      case step::kind::flat_map:
        pending.merge(item.origin());
        for (auto value : as_many(item.value())) give(value, item);
        break;
      case step::kind::take:
        if (i < s.a) give(item.value(), item);
        break;
      case step::kind::skip:
        if (i < s.a)
          pending.merge(item.origin());
        else
          give(item.value(), item);
        break;
      case step::kind::shard: {
        auto world = s.a + 1;
        if (i % world == s.b % world && i - i % world + world <= in.size())
          give(item.value(), item);
        break;
      }
      case step::kind::batches: {
        auto begin = i - i % (s.a + 1);
        lineage whole;
        for (auto k = begin; k < std::min(in.size(), begin + s.a + 1); ++k)
          whole.merge(in[k].origin());
        give(item.value(), traced(0, whole));
        break;
      }
      default: give(item.value(), item);
    }
  }
  return out;
}

static items twin(unsigned count, std::span<const step> steps, std::uint64_t first) {
  items out;
  if (steps.empty()) {
    for (unsigned i = 0; i < count; ++i) out.emplace_back(static_cast<int>(i), lineage(first + i));
    return out;
  }
  auto& last = steps.back();
  auto before = steps.first(steps.size() - 1);
  if (last.what != step::kind::repeat) return twin_of_step(last, twin(count, before, first));
  for (auto round = last.a % 3; round > 0; --round)
    for (auto& item : twin(count, before, first)) {
      first = std::max(first, item.origin().ranges().back().last + 1);
      out.push_back(item);
    }
  return out;
}

TEST(Pipeline, YieldsTheItemsAndLineageOfAPlainLoop) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime runtime({.threads = 2});
  for (int round = 0; round < 150; ++round) {
    auto count = static_cast<unsigned>(draw.below(40));
    std::vector<step> steps;
    pipeline<int> made = from(numbers{static_cast<int>(count)});
    std::string text = "round " + std::to_string(round) + ", " + std::to_string(count) + " items";
    for (auto n = draw.below(7); n > 0; --n) {
      step s{static_cast<step::kind>(draw.below(13)), static_cast<unsigned>(draw.below(20)),
             static_cast<unsigned>(draw.below(5))};
      steps.push_back(s);
      made = append(made, s);
      text += " | " + std::to_string(static_cast<int>(s.what)) + "(" + std::to_string(s.a) + ", " +
              std::to_string(s.b) + ")";
    }
    ASSERT_EQ(collect(runtime, made | through(traced_items)), twin(count, steps, 0)) << text;
  }
}

TEST(Pipeline, MayBeAThousandStagesDeep) {
  runtime runtime({.threads = 2});
  pipeline<int> deep = from(numbers{20});
  for (int i = 0; i < 250; ++i)
    deep = deep | take(100) | skip(0) | filter([](int n) { return n >= 0; }) |
           map([](int n) { return n + 1; }, {.concurrency = 1});
  auto last = 250;
  for (auto item : collect(runtime, deep)) EXPECT_EQ(item, last++);
  EXPECT_EQ(last, 270);
}

TEST(Pipeline, MayHaveHundredsOfConcurrentStages) {
  runtime runtime({.threads = 2});
  pipeline<int> deep = from(numbers{-1});
  for (int i = 0; i < 200; ++i)
    deep = deep | prefetch(1) | map([](int n) { return n + 1; }, {.concurrency = 2});
  int expected = 200;
  for (auto& item : runtime.run(deep)) {
    EXPECT_EQ(item, expected++);
    if (expected == 230) break;
  }
}

TEST(Pipeline, ThatWasMovedFromIsRefused) {
  runtime runtime({.threads = 1});
  auto first = from(test::up_to(5));
  auto second = std::move(first);
  auto refused = testing::ThrowsMessage<error>("use a pipeline: it has been moved from");
  EXPECT_THAT([&] { collect(runtime, first); }, refused);  // NOLINT(bugprone-use-after-move)
  EXPECT_THAT([&] { (void)(first | take(1)); }, refused);
  EXPECT_THAT([&] { collect(runtime, first | map([](int i) { return i; })); }, refused);
  EXPECT_EQ(collect(runtime, second), test::up_to(5));
}

TEST(Pipeline, AFailedSourceDeliversEarlierItems) {
  runtime runtime({.threads = 2});
  auto broken = []() -> async_generator<int> {
    for (int i = 0; i < 5; ++i) {
      int item = i;
      co_yield item;
    }
    throw error(errc::invalid_data, "read the list");
  };
  pipeline<int> made = from(broken);
  for (const auto& one :
       {made, made | map(next_number, {.concurrency = 3}) | through(pass_on), made | prefetch(2)}) {
    auto run = runtime.run(one);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(run.wait_next());
    try {
      run.wait_next();
      ADD_FAILURE();
    } catch (const stage_error& e) {
      EXPECT_EQ(e.stage(), "source");
      EXPECT_EQ(e.code(), errc::invalid_data);
    }
  }
}

static int add_one(int i) { return i + 1; }
static bool is_wanted(int i) { return i >= 0; }
static int refuse(int) { throw std::runtime_error("no"); }

// A chain of `stages` inline stages. Every second one adds 1.
static pipeline<int> chain_of(const pipeline<int>& source, int stages) {
  auto all = source;
  for (int i = 0; i < stages; ++i) {
    if (i % 100 == 0)
      all = all | through(pass_on);
    else if (i % 2 == 0)
      all = all | filter(is_wanted);
    else
      all = all | map(add_one, {.concurrency = 1});
  }
  return all;
}

TEST(Pipeline, OfVeryManyInlineStagesRunsOnAnOrdinaryStack) {
  constexpr int very_many = 100'000;
  runtime runtime({.threads = 2});
  EXPECT_EQ(collect(runtime, chain_of(from(numbers{3}), very_many)),
            (std::vector{very_many / 2, very_many / 2 + 1, very_many / 2 + 2}));
}

TEST(Pipeline, OfManyInlineStagesMayFailOrBeLeft) {
  constexpr int many = 20'000;
  runtime runtime({.threads = 1});
  auto failing = chain_of(from(numbers{3}) | map(refuse, {.concurrency = 1}), many);
  EXPECT_THROW(collect(runtime, failing), stage_error);
  auto endless = chain_of(from(numbers{-1}), many);
  { auto unasked = runtime.run(endless); }
  auto left = runtime.run(endless);
  EXPECT_EQ(left.wait_next(), many / 2);
}

}  // namespace lade::pipeline_test
