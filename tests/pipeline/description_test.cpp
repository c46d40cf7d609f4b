#include <lade/async_generator.hpp>
#include <lade/batch.hpp>
#include <lade/batch_by.hpp>
#include <lade/bucket.hpp>
#include <lade/cache.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/description.hpp>
#include <lade/draw.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/from_shards.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/route.hpp>
#include <lade/route_batches.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/tee.hpp>
#include <lade/thread_pool.hpp>
#include <lade/through.hpp>
#include <lade/waiting_items.hpp>
#include <lade/window.hpp>

#include "../support/pipelines.hpp"
#include "../support/seed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace lade::description_test {

using testing::AllOf;
using testing::Gt;
using testing::HasSubstr;
using testing::Le;
using testing::Optional;
using testing::SizeIs;

static pipeline<int> list_of(int size) { return from(test::up_to(size)); }

static int twice(int i) { return 2 * i; }
static task<int> later(int i) { co_return i; }
static bool is_even(int i) { return i % 2 == 0; }
static int half_of(int i) { return i % 2; }
static std::size_t length_of(int i) { return static_cast<std::size_t>(i); }
static async_generator<int> as_is(async_generator<int> in) { return in; }

// An item that reports its size.
struct sized_item {
  std::size_t size;
  std::size_t bytes() const { return size; }
};
static sized_item sized(int i) { return {length_of(i)}; }

// Batches of two.
struct pairs {
  std::vector<int> rest;

  std::optional<std::vector<int>> add(int i) {
    rest.push_back(i);
    return rest.size() == 2 ? flush() : std::nullopt;
  }
  std::optional<std::vector<int>> flush() {
    return rest.empty() ? std::nullopt : std::optional(std::exchange(rest, {}));
  }
};

// Shard i holds the items 10 i to 10 i + 9.
class ten_each {
 public:
  explicit ten_each(std::uint64_t size) : size_(size) {}
  std::uint64_t size() const { return size_; }
  std::string name(std::uint64_t i) const { return "shard " + std::to_string(i); }
  std::string identity() const { return "tens"; }
  async_generator<int> read(std::uint64_t i) const {
    for (int j = 0; j < 10; ++j) {
      int item = static_cast<int>(i) * 10 + j;
      co_yield item;
    }
  }

 private:
  std::uint64_t size_;
};

template <class T>
static stage_description last_of(const pipeline<T>& what) {
  return what.describe().stages.back();
}

template <class T>
static std::string last_line_of(const pipeline<T>& what) {
  auto text = to_string(what.describe());
  text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

TEST(Description, IsALineForEachStage) {
  thread_pool own({.threads = 1});
  auto images = list_of(1'000) | shuffle({.seed = 7}) | shard({.rank = 1, .world = 4}) |
                map(later, {.concurrency = 64, .name = "read"}) |
                map(twice, {.buffer = 9, .retry = {.attempts = 3}, .pool = &own}) |
                filter(is_even) | batch({.size = 8, .drop_last = true});
  EXPECT_EQ(to_string(images.describe()),
            "1 source: from, order shuffle 7, shard 1 of 4, items 1000, 250 items\n"
            "2 read: map of 1, on the reactor, concurrency 64, 250 items\n"
            "3 map of 2, pool lade-cpu, buffer 9, attempts 3, 250 items\n"
            "4 filter of 3\n"
            "5 batch of 4, size 8, drop_last\n");
}

TEST(Description, LinesArePrintable) {
  auto items = list_of(3) | map(twice, {.name = "clear\x1b[2J\nscreen"});
  EXPECT_THAT(to_string(items.describe()), HasSubstr("clear\\x1b[2J\\nscreen: map"));
  EXPECT_EQ(items.describe().stages.at(1).name, "clear\x1b[2J\nscreen");
}

TEST(Description, StatesHowAShardTreatsTheRemainder) {
  auto list = list_of(10);
  EXPECT_EQ(to_string((list | shard({1, 4, remainder::keep})).describe()),
            "1 source: from, shard 1 of 4, items 10, remainder keep, 3 items\n");
  EXPECT_EQ(to_string((list | map(twice) | shard({1, 4, remainder::pad})).describe()),
            "1 source: from, 10 items\n"
            "2 map of 1, on the CPU pool, 10 items\n"
            "3 shard of 2, rank 1, world 4, remainder pad, no state, 3 items\n");
}

TEST(Description, IsJson) {
  auto items = from(test::up_to(10), {.name = "\"a\""}) | batch(4);
  EXPECT_EQ(to_json(items.describe()),
            R"({"stages":[{"name":"\"a\"","kind":"from","inputs":[],"cardinality":"source",)"
            R"("executor":"caller","ordering":"kept","options":{},"size":10,)"
            R"("held_items":null,"held_bytes":null,"refuses_state":null},)"
            R"({"name":"batch","kind":"batch","inputs":[0],"cardinality":"group",)"
            R"("executor":"caller","ordering":"kept","options":{"size":"4"},"size":3,)"
            R"("held_items":4,"held_bytes":null,"refuses_state":null}]})");
  EXPECT_THAT(to_json((items | filter([](auto&) { return true; })).describe()),
              HasSubstr(R"("size":null,)"));
}

TEST(Description, StatesTheCardinalityOfAStage) {
  auto kind_of = [](const auto& what) { return what.describe().stages.back().cardinality; };
  auto some = [](int i) { return std::optional(i); };
  auto custom = [](async_generator<int> in) { return in; };
  EXPECT_EQ(kind_of(list_of(3)), cardinality::source);
  EXPECT_EQ(kind_of(list_of(3) | map(twice)), cardinality::one);
  EXPECT_EQ(kind_of(list_of(3) | map(some)), cardinality::at_most_one);
  EXPECT_EQ(kind_of(list_of(3) | filter(is_even)), cardinality::at_most_one);
  EXPECT_EQ(kind_of(list_of(3) | flat_map(test::up_to)), cardinality::several);
  EXPECT_EQ(kind_of(list_of(3) | map(twice) | repeat(3)), cardinality::several);
  EXPECT_EQ(kind_of(list_of(3) | window(2)), cardinality::group);
  EXPECT_EQ(kind_of(list_of(3) | through(custom)), cardinality::custom);
}

TEST(Description, StatesTheExecutorOfAStage) {
  thread_pool own({.threads = 1});
  auto executor_of = [](const auto& what) { return what.describe().stages.back().executor; };
  EXPECT_EQ(executor_of(list_of(3) | map(twice, {.concurrency = 1})), stage_executor::caller);
  EXPECT_EQ(executor_of(list_of(3) | map(twice)), stage_executor::cpu_pool);
  EXPECT_EQ(executor_of(list_of(3) | map(twice, {.pool = &own})), stage_executor::own_pool);
  EXPECT_EQ(executor_of(list_of(3) | map(later)), stage_executor::reactor);
  EXPECT_EQ(executor_of(list_of(3) | prefetch(2)), stage_executor::cpu_pool);
  EXPECT_EQ(executor_of(list_of(3) | tee(map(twice), map(twice))), stage_executor::cpu_pool);
  const std::vector inputs{list_of(3), list_of(3)};
  EXPECT_EQ(executor_of(merge(inputs, {.order = merge_order::arrival})), stage_executor::cpu_pool);
  EXPECT_EQ(executor_of(merge(inputs)), stage_executor::caller);
}

TEST(Description, StatesTheOrderingOfAStage) {
  auto order_of = [](const auto& what) { return what.describe().stages.back().ordering; };
  auto custom = [](async_generator<int> in) { return in; };
  EXPECT_EQ(order_of(list_of(3) | map(twice)), stage_ordering::kept);
  EXPECT_EQ(order_of(list_of(3) | map(twice, {.order = item_order::completion})),
            stage_ordering::changed);
  EXPECT_EQ(order_of(list_of(3) | map(twice) | shuffle()), stage_ordering::changed);
  EXPECT_EQ(order_of(merge<int>({list_of(3), list_of(3)})), stage_ordering::changed);
  EXPECT_EQ(order_of(list_of(3) | through(custom)), stage_ordering::custom);
  EXPECT_EQ(order_of(list_of(3) | batch_by(pairs())), stage_ordering::custom);
}

TEST(Description, StatesHowMuchAStageHolds) {
  EXPECT_EQ(last_of(list_of(3) | map(twice, {.concurrency = 3, .buffer = 5})).held_items, 8u);
  EXPECT_EQ(last_of(list_of(3) | map(later, {.concurrency = 3})).held_items, 6u);
  EXPECT_EQ(last_of(list_of(3) | map(twice)).held_items, std::nullopt);
  EXPECT_EQ(last_of(list_of(3) | prefetch(7)).held_items, 7u);
  EXPECT_EQ(last_of(list_of(3) | batch(4)).held_items, 4u);
  EXPECT_EQ(last_of(list_of(3) | map(twice) | shuffle({.window = 9})).held_items, 9u);
  auto cached = last_of(list_of(3) | cache({.items = 10}));
  EXPECT_EQ(cached.held_items, 10u);
  EXPECT_EQ(cached.held_bytes, std::nullopt);
  auto limited = last_of(list_of(3) | map(sized) | cache({.items = 10, .bytes = 100}));
  EXPECT_EQ(limited.held_items, 10u);
  EXPECT_EQ(limited.held_bytes, 100u);
}

TEST(Description, HasTheLimitsInBytes) {
  auto limit_of = [](const auto& made, const std::string& kind, const std::string& option) {
    for (auto& stage : made.describe().stages)
      for (auto& [name, value] : stage.options)
        if (stage.kind == kind && name == option) return value;
    return std::string();
  };
  auto list = list_of(3);
  auto of_first = [](int) { return 0; };
  const flat_map_options wide{.concurrency = 2, .buffer_bytes = 100};
  const merge_options by_arrival{.order = merge_order::arrival, .buffer_bytes = 100};
  auto routed = list | route(of_first, {.buffer_bytes = 100}, map(twice));
  auto rows = list | tee({.buffer_bytes = 100}, map(twice));
  EXPECT_EQ(limit_of(list | prefetch(2, {.bytes = 100}), "prefetch", "bytes"), "100");
  EXPECT_EQ(limit_of(list | map(twice, {.buffer_bytes = 100}), "map", "buffer_bytes"), "100");
  EXPECT_EQ(limit_of(list | flat_map(test::up_to, wide), "flat_map", "buffer_bytes"), "100");
  EXPECT_EQ(limit_of(merge<int>({list}, by_arrival), "merge", "buffer_bytes"), "100");
  EXPECT_EQ(limit_of(routed, "route", "buffer_bytes"), "100");
  EXPECT_EQ(limit_of(rows, "tee", "buffer_bytes"), "100");
  EXPECT_EQ(limit_of(list | tee(map(twice)), "tee", "buffer_bytes"), "");
}

// A function that takes up to four items per call.
struct fours {
  static constexpr unsigned items_at_a_time = 4;
  int operator()(int i) const { return i; }
  void operator()(waiting_items<int, int>& items) const {
    while (auto item = items.next()) {
      int same = **item;
      item->give(same);
    }
  }
};

TEST(Description, StatesHowMuchAStageWithSeveralInputsHolds) {
  const std::vector inputs{list_of(3), list_of(3), list_of(3)};
  auto held_by = [&](const merge_options& options) {
    return last_of(merge(inputs, options)).held_items;
  };
  EXPECT_EQ(held_by({.order = merge_order::arrival}), 9u);  // three slots for each input
  EXPECT_EQ(held_by({.order = merge_order::turns}), 0u);
  EXPECT_EQ(held_by({.order = merge_order::weighted, .weights = {1, 1, 2}}), 0u);
  EXPECT_EQ(last_of(zip(list_of(3), list_of(3))).held_items, 2u);
}

TEST(Description, StatesHowMuchAStageWithPathsHolds) {
  auto split_by = [](const auto& stage) { return (list_of(3) | stage).describe().stages.at(1); };
  // Before one path up to 3 * 5 items and 5 before each other, one taken by each path, and three
  // results of each.
  EXPECT_EQ(split_by(route(half_of, route_options{.buffer = 5}, map(twice), map(twice), chain()))
                .held_items,
            25u + 3u + 9u);
  // In each of two paths 5 items and the one taken, 5 results and the one in the tuple.
  EXPECT_EQ(split_by(tee(tee_options{.buffer = 5}, map(twice), chain())).held_items, 2 * 12u);
  EXPECT_EQ(split_by(tee(tee_options{.buffer = 0}, map(twice), chain())).held_items, 2 * 4u);
}

TEST(Description, StatesHowManyBatchesARouteOfBatchesHolds) {
  auto split_by = [](std::size_t buffer) {
    auto routed = list_of(9) | batch(3) |
                  route_batches(half_of, route_options{.buffer = buffer}, chain(), chain());
    return routed.describe().stages.at(2);
  };
  EXPECT_EQ(split_by(7).held_items, 7u);
  EXPECT_EQ(split_by(0).held_items, 1u);
}

TEST(Description, StatesHowMuchAFlatMapHolds) {
  auto held_by = [](const flat_map_options& options) {
    return last_of(list_of(3) | flat_map(test::up_to, options)).held_items;
  };
  EXPECT_EQ(held_by({}), 1u);
  // The items that are split, and six parts of each of them and of the one that is delivered.
  EXPECT_EQ(held_by({.concurrency = 4, .buffer = 5}), 4 + 5 * 6u);
  EXPECT_EQ(held_by({.concurrency = 4, .buffer = 0}), 4 + 5 * 2u);
  EXPECT_EQ(held_by({.concurrency = 4, .buffer = 5, .order = item_order::completion}), 4 + 9u);
  thread_pool own({.threads = 1});
  EXPECT_EQ(held_by({.buffer = 5, .pool = &own}), 1 + 2 * 6u);
  EXPECT_EQ(held_by({.concurrency = automatic}), std::nullopt);
}

TEST(Description, StatesHowMuchASourceOfShardsHolds) {
  auto held_by = [](const from_shards_options& options) {
    return last_of(from_shards(ten_each(9), options)).held_items;
  };
  EXPECT_EQ(held_by({}), 2u);
  // Seven items of each of four open shards, and six of the one that is delivered.
  EXPECT_EQ(held_by({.concurrency = 4, .buffer = 5}), 4 * 7 + 6u);
}

TEST(Description, StatesHowMuchABucketHolds) {
  auto held_by = [](const bucket_options& options) {
    return last_of(list_of(3) | bucket(length_of, options)).held_items;
  };
  EXPECT_EQ(held_by({.size = 4}), 4u);
  EXPECT_EQ(held_by({.boundaries = {10, 20}, .size = 4}), 4 + 2 * 3u);
  EXPECT_EQ(held_by({.padded = 100}), std::nullopt);  // items of length 0 have no limit
}

TEST(Description, StatesHowMuchAStageOfAStreamHolds) {
  auto stream = list_of(9) | map(twice);
  EXPECT_EQ(last_of(stream | take(2)).held_items, 0u);
  EXPECT_EQ(last_of(list_of(9) | batch(2) | unbatch()).held_items, 1u);
  auto held_of = [&](remainder how) {
    return last_of(stream | shard({.rank = 1, .world = 4, .remainder = how})).held_items;
  };
  EXPECT_EQ(held_of(remainder::drop), 1u);
  EXPECT_EQ(held_of(remainder::pad), 2u);
  EXPECT_EQ(held_of(remainder::wrap), 5u);
}

TEST(Description, AStageThatTakesSeveralItemsPerCallHoldsSlotsForThem) {
  EXPECT_EQ(last_of(list_of(3) | map(fours(), {.concurrency = 2, .buffer = 1})).held_items,
            3 + 2 * 2 * 3u);
}

// An item that counts the objects that hold a value: not those that were moved from.
class counted_value {
 public:
  explicit counted_value(int of) : value(of) { add(); }
  counted_value(const counted_value& other) : value(other.value), holds_(other.holds_) { add(); }
  counted_value(counted_value&& other) noexcept
      : value(other.value), holds_(std::exchange(other.holds_, false)) {}
  counted_value& operator=(counted_value other) noexcept {
    std::swap(value, other.value);
    std::swap(holds_, other.holds_);
    return *this;
  }
  ~counted_value() {
    if (holds_) --now;
  }

  int value;
  static inline std::atomic<std::uint64_t> now = 0;
  static inline std::atomic<std::uint64_t> most = 0;

 private:
  void add() const {
    if (!holds_) return;
    auto held = ++now;
    auto before = most.load();
    while (held > before && !most.compare_exchange_weak(before, held)) {}
  }

  bool holds_ = true;
};

static counted_value counted_of(int i) { return counted_value(i); }
static counted_value passed_on(counted_value item) { return item; }
// The path of 20 items, then that of the next 20.
static int path_of_value(const counted_value& item) { return item.value / 20 % 2; }
static std::size_t length_of_value(const counted_value& item) { return length_of(item.value % 7); }
static async_generator<counted_value> four_of(counted_value item) {
  for (int i = 0; i < 4; ++i) {
    counted_value part(item.value);
    co_yield part;
  }
}

// Runs `what` with a slow consumer. An inline stage, whose number is unknown, holds one item.
template <class T>
static void expect_to_hold_what_is_described(const pipeline<T>& what) {
  auto description = what.describe();
  std::uint64_t described = 0;
  for (auto& each : description.stages) described += each.held_items.value_or(1);
  auto consume = [](const T&) {
    test::pause(20);
    return 0;
  };
  runtime where({.threads = 3});
  counted_value::most = 0;
  test::collect(where, what | map(consume, {.concurrency = 1}));
  EXPECT_THAT(counted_value::most.load(), AllOf(Gt(0u), Le(described))) << to_string(description);
}

TEST(Description, AStageHoldsNoMoreThanDescribed) {
  auto items = list_of(60) | map(counted_of, {.concurrency = 1});
  auto pass = map(passed_on, {.concurrency = 1});
  auto check = [](const auto& what) { expect_to_hold_what_is_described(what); };
  const std::vector inputs{items, items};
  check(items | map(passed_on, {.concurrency = 2}));
  check(items | route(path_of_value, route_options{.buffer = 3}, pass, pass));
  check(items | tee(tee_options{.buffer = 3}, pass, pass));
  check(items | bucket(length_of_value, {.boundaries = {2, 4}, .size = 3}));
  for (auto order : {item_order::input, item_order::completion})
    check(items | flat_map(four_of, {.concurrency = 2, .buffer = 2, .order = order}));
  check(items | flat_map(four_of));
  check(merge(inputs));
  check(merge(inputs, {.order = merge_order::arrival}));
  check(zip(items, items));
  check(items | shard({.rank = 1, .world = 4, .remainder = remainder::wrap}));
}

TEST(Description, OptionsOfStagesArePrinted) {
  auto list = list_of(3);
  EXPECT_EQ(last_line_of(list | bucket(length_of, {.boundaries = {10, 20}, .size = 4})),
            "2 bucket of 1, boundaries 10 20, size 4, reordered");
  EXPECT_EQ(last_line_of(list | bucket(length_of, {.padded = 100, .drop_last = true})),
            "2 bucket of 1, padded 100, drop_last, reordered");
  EXPECT_EQ(last_line_of(list | through(as_is, {.lineage = lineage_rule::consumed})),
            "2 through of 1, lineage consumed");
  EXPECT_EQ(last_line_of(combine(as_is, {.lineage = lineage_rule::carried}, list)),
            "2 combine of 1, lineage carried");
  EXPECT_EQ(last_line_of(list | map(twice) | cache({.items = 10, .bytes = 99})),
            "3 cache of 2, items 10, bytes 99, no state, 3 items");
  EXPECT_EQ(last_line_of(list | map(twice) | cache()), "3 cache of 2, no state, 3 items");
}

TEST(Description, OptionsForFailuresAndTimeLimitsArePrinted) {
  using namespace std::chrono_literals;
  EXPECT_EQ(
      last_line_of(list_of(3) | map(twice, {.retry = {.attempts = 2},
                                            .error_budget = {.count = 9},
                                            .timeout = 1500ms,
                                            .deadline = 1min})),
      "2 map of 1, on the CPU pool, attempts 2, error_budget 9, timeout 1.5 s, deadline 60 s, "
      "3 items");
  EXPECT_EQ(last_line_of(list_of(3) | map(twice, {.concurrency = 1, .substitute = 7})),
            "2 map of 1, substitute given, 3 items");
  const error_budget rate{.rate = 0.01, .probation = 100};
  auto skips = [](auto options) {
    options.on_error = on_error::skip;
    return options;
  };
  EXPECT_THAT(last_line_of(list_of(3) | filter(is_even, {.error_budget = rate})),
              HasSubstr(", error_budget rate 0.01 after 100"));
  EXPECT_THAT(last_line_of(list_of(3) | flat_map(test::up_to, skips(flat_map_options()))),
              HasSubstr(", on_error skip"));
  EXPECT_THAT(last_line_of(list_of(3) | batch_by(pairs(), skips(batch_by_options()))),
              HasSubstr(", on_error skip"));
  EXPECT_THAT(last_line_of(list_of(3) | bucket(length_of, skips(bucket_options{.size = 4}))),
              HasSubstr(", on_error skip"));
  auto routed = list_of(3) | route(half_of, skips(route_options()), map(twice), map(twice));
  EXPECT_THAT(to_string(routed.describe()), HasSubstr("buffer 16, on_error skip, reordered"));
  auto custom = through(as_is, {.on_error = on_error::skip, .error_budget = {.count = 2}});
  EXPECT_THAT(last_line_of(list_of(3) | custom), HasSubstr(", on_error skip, error_budget 2"));
}

// A stage that describes its input when it is attached.
struct describing {
  std::string* into;

  template <class In>
  auto attach(const pipeline<In>& in) const {
    *into = to_string(in.describe());
    return in;
  }
};

TEST(Description, OfAPathThatIsBeingBuiltHasTheStagesBeforeIt) {
  std::string text;
  auto at_once = describing{&text};
  auto later = chain(map(twice), describing{&text});
  const std::string before = "1 source: from, 9 items\n";
  (void)(list_of(9) | tee(at_once, chain()));
  EXPECT_EQ(text, before);
  (void)(list_of(9) | tee(later, chain()));
  EXPECT_EQ(text, before + "2 map of 1, on the CPU pool, 9 items\n");
  (void)(list_of(9) | route(half_of, chain(), later));
  EXPECT_EQ(text, before + "2 map of 1, on the CPU pool\n");
  (void)(list_of(9) | tee(chain(), route(half_of, later, chain())));
  EXPECT_EQ(text, before + "2 map of 1, on the CPU pool\n");
  auto same = map(std::identity());
  (void)(list_of(9) | batch(3) | route_batches(half_of, chain(same, describing{&text}), same));
  EXPECT_EQ(text,
            before + "2 batch of 1, size 3, 3 items\n3 identity: map of 2, on the CPU pool\n");
}

// The described sizes are the numbers of items that the stages yield.
TEST(Description, SizesInPathsAreThoseOfRuns) {
  runtime runtime({.threads = 2});
  auto check = [&](const auto& what) {
    auto items = runtime.run(what);
    test::collect(items);
    auto run = items.statistics();
    auto described = what.describe().stages;
    ASSERT_EQ(described.size(), run.stages.size());
    for (std::size_t i = 0; i < described.size(); ++i)
      EXPECT_EQ(described[i].size.value_or(run.stages[i].out), run.stages[i].out)
          << run.stages[i].name;
  };
  check(list_of(10) | route(half_of, map(twice), map(twice)));
  check(list_of(10) | tee(map(twice), chain(map(twice), map(twice))));
  auto both = map(std::identity());
  check(list_of(10) | batch(5) | route_batches(half_of, both, both));
}

TEST(Description, OptionsOfAMergeArePrinted) {
  const std::vector inputs{list_of(3), list_of(3)};
  EXPECT_EQ(
      last_line_of(merge(inputs, {.order = merge_order::weighted, .weights = {1, 2.5}, .seed = 7})),
      "3 merge of 2 and 1, order weighted, weights 1 2.5, seed 7, reordered");
  auto of_epoch = [](std::uint64_t) { return std::vector{1.0, 1.0}; };
  EXPECT_EQ(last_line_of(merge(inputs, {.order = merge_order::weighted, .weights_of = of_epoch})),
            "3 merge of 2 and 1, order weighted, weights of the epoch, seed 0, reordered");
  EXPECT_EQ(last_line_of(merge(inputs, {.end = merge_end::first})),
            "3 merge of 2 and 1, order turns, end first, reordered, no state");
}

TEST(Description, OptionsOfASourceOfShardsArePrinted) {
  const ten_each shards(9);
  EXPECT_EQ(last_line_of(from_shards(shards)), "1 from_shards, shards 0 of 1");
  EXPECT_EQ(last_line_of(from_shards(shards, {.name = "logs",
                                              .shuffle = true,
                                              .seed = 7,
                                              .shard = {.rank = 1, .world = 3},
                                              .concurrency = 4,
                                              .buffer = 8})),
            "1 logs: from_shards, on the CPU pool, order shuffle 7, shards 1 of 3, concurrency 4, "
            "buffer 8");
}

// In the words of the error that a run's state() throws.
TEST(Description, StatesWhyAStageRefusesAState) {
  auto custom = [](async_generator<int> in) { return in; };
  auto list = list_of(9);
  auto mapped = list | map(twice);
  runtime where({.threads = 2});
  auto check = [&](const auto& what) {
    auto why = what.describe().stages.back().refuses_state;
    EXPECT_NE(why, "");
    auto items = where.run(what);
    items.wait_next();
    EXPECT_THAT([&] { items.state(); }, ThrowsMessage<error>(HasSubstr(why)));
  };
  check(list | through(custom));
  check(mapped | take(3));
  check(mapped | skip(1));
  check(mapped | repeat(2));
  check(mapped | shard({}));
  check(mapped | window(2, {.step = 1}));
  check(mapped | cache());
  check(list | take(3) | repeat(2));
  check(merge<int>({list, list}, {.end = merge_end::first}));
  EXPECT_EQ((mapped | repeat(1)).describe().stages.back().refuses_state, "");
  EXPECT_EQ(mapped.describe().stages.back().refuses_state, "");
}

// The paths take items of the stage that splits them, and the next stage those of all paths.
TEST(Description, IsAGraph) {
  auto inner = route(half_of, map(twice, {.name = "a"}), map(twice, {.name = "b"}));
  auto items =
      list_of(9) | tee(chain(prefetch(2), inner, map(twice, {.name = "c"})), chain()) | batch(2);
  EXPECT_EQ(to_string(items.describe()),
            "1 source: from, 9 items\n"
            "2 tee of 1, on the CPU pool, buffer 16\n"
            "3 prefetch of 2, on the CPU pool, count 2, 9 items\n"
            "4 route of 3, on the CPU pool, buffer 16, reordered\n"
            "5 a: map of 4, on the CPU pool\n"
            "6 b: map of 4, on the CPU pool\n"
            "7 c: map of 5 and 6, on the CPU pool\n"
            "8 batch of 7 and 2, size 2\n");
}

template <class T>
static void expect_names_of_statistics(const pipeline<T>& what) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(what);
  test::collect(items);
  std::vector<std::string> names;
  for (auto& each : items.statistics().stages) names.push_back(each.name);
  std::vector<std::string> described;
  for (auto& each : what.describe().stages) described.push_back(each.name);
  EXPECT_EQ(described, names);
}

// Stages without statistics have names of their own too.
TEST(Description, GivesStagesOfOneNameDifferentNames) {
  auto batches = list_of(20) | batch(2) | unbatch() | batch(4) | unbatch();
  std::vector<std::string> names;
  for (auto& each : batches.describe().stages) names.push_back(each.name);
  EXPECT_THAT(names,
              testing::ElementsAre("source", "batch", "unbatch", "batch (2)", "unbatch (2)"));
}

TEST(Description, ANumberedNameIsNotThatOfAnotherStage) {
  auto mapped = list_of(20) | map(twice, {.name = "map (2)"}) | map(twice) | map(twice);
  expect_names_of_statistics(mapped);
  std::vector<std::string> names;
  for (auto& each : mapped.describe().stages) names.push_back(each.name);
  EXPECT_THAT(names, testing::ElementsAre("source", "map (2)", "map", "map (3)"));
}

TEST(Description, NamesStagesAsStatisticsDo) {
  auto list = list_of(20);
  auto mapped = list | map(twice) | map(twice) | prefetch(3) | map(later);
  expect_names_of_statistics(mapped | cache());
  expect_names_of_statistics(zip(mapped, list | batch(3), mapped));
  expect_names_of_statistics(merge<int>({list | map(twice), mapped, list}) | map(twice));
  expect_names_of_statistics(
      merge<int>({list | map(twice), mapped}, {.order = merge_order::arrival}));
  expect_names_of_statistics(mapped |
                             route(half_of, map(twice), chain(filter(is_even), map(twice))) |
                             flat_map(test::up_to));
  expect_names_of_statistics(
      zip(list, list | tee(map(twice), chain(map(twice), route(half_of, map(twice), chain())))) |
      prefetch(1));
}

// What a list, a stream of it, and either with random stages behind yields.
TEST(Description, SizesAreThoseOfRuns) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto below = [&](std::uint64_t end) { return random() % end; };
  runtime runtime({.threads = 2});
  for (int round = 0; round < 200; ++round) {
    auto items = list_of(static_cast<int>(below(30)));
    if (below(2) == 0) items = items | map(twice);
    for (auto stages = below(6); stages-- > 0;) {
      const std::uint64_t world = 1 + below(4);
      switch (below(9)) {
        case 0: items = items | take(below(20)); break;
        case 1: items = items | skip(below(5)); break;
        case 2: items = items | repeat(below(4)); break;
        case 3:
          items = items | shard({.rank = below(world),
                                 .world = world,
                                 .remainder = static_cast<remainder>(below(4))});
          break;
        case 4: items = items | shuffle({.seed = below(9), .window = 1 + below(9)}); break;
        case 5: items = items | prefetch(1 + below(4)); break;
        case 6: items = merge<int>({items, items | map(twice)}); break;
        case 7:
          items =
              zip(items, items | take(3)) | map([](const auto& row) { return std::get<0>(row); });
          break;
        default:
          items = items | batch({.size = 1 + below(5), .drop_last = below(2) == 0}) |
                  map([](const std::vector<int>& in) { return in.front(); });
      }
    }
    const auto size = items.size();
    ASSERT_TRUE(size.has_value()) << to_string(items.describe());
    ASSERT_EQ(test::collect(runtime, items).size(), *size) << to_string(items.describe());
  }
}

TEST(Description, HasNoSizeThatOnlyARunDetermines) {
  auto list = list_of(10);
  EXPECT_EQ(from(test::numbers{3}).size(), std::nullopt);
  EXPECT_EQ((list | filter(is_even)).size(), std::nullopt);
  EXPECT_EQ((list | flat_map(test::up_to)).size(), std::nullopt);
  EXPECT_EQ((list | batch(3) | unbatch()).size(), std::nullopt);
  EXPECT_EQ((list | route(half_of, map(twice), map(twice))).size(), std::nullopt);
  EXPECT_EQ(merge<int>({list, list}, {.end = merge_end::first}).size(), std::nullopt);
  EXPECT_EQ((list | draw({.weights = {1, 2}})).size(), std::nullopt);  // of which a run throws
  constexpr auto endless = ~std::uint64_t{0};
  EXPECT_EQ((list | repeat(endless)).size(), std::nullopt);
  EXPECT_EQ((list | repeat(endless) | shard({.rank = 0, .world = 2})).size(), std::nullopt);
  EXPECT_EQ((list | repeat(endless) | skip(3) | shuffle()).size(), std::nullopt);
  EXPECT_EQ((list | map(twice) | repeat(endless) | skip(3)).size(), std::nullopt);
  EXPECT_THAT((list | repeat(endless) | skip(3) | take(5)).size(), Optional(5u));
  EXPECT_THAT((list | repeat(endless) | repeat(0)).size(), Optional(0u));
  auto half = from_index(endless / 2 + 1, [](std::uint64_t) { return 0; });
  EXPECT_EQ(merge<int>({half, half}).size(), std::nullopt);
}

TEST(Description, ASizeOfDrawsNeedsNoSizeOfTheList) {
  auto listed = from([] { return test::up_to(2); }) | draw({.weights = {1, 2}, .count = 7});
  EXPECT_THAT(listed.size(), Optional(7u));
}

TEST(Description, OfALongPipelineNeedsNoStack) {
  auto items = list_of(2);
  auto first_of = [](const std::vector<int>& in) { return in.front(); };
  for (int i = 0; i < 100'000; ++i) items = items | batch(1) | map(first_of);
  EXPECT_THAT(items.describe().stages, SizeIs(200'001));
}

TEST(Description, OfAPipelineThatHasBeenMovedFromIsRefused) {
  auto items = list_of(2);
  auto other = std::move(items);
  EXPECT_THROW(items.describe(), error);  // NOLINT(bugprone-use-after-move)
  EXPECT_THROW(static_cast<void>(items.size()), error);
}

}  // namespace lade::description_test
