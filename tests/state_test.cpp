#include <lade/batch.hpp>
#include <lade/cut.hpp>
#include <lade/draw.hpp>
#include <lade/error.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/run.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>
#include <lade/through.hpp>

#include "support/pipelines.hpp"
#include "support/resume.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace lade {

using namespace test;
using testing::HasSubstr;
using testing::ThrowsMessage;
using ints = std::vector<int>;

static ints up_to(int end) {
  ints all(static_cast<std::size_t>(end));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

static ints sorted(ints items) {
  std::ranges::sort(items);
  return items;
}

// A random pipeline of numbers, every time with other threads in it.
class random_pipeline {
 public:
  explicit random_pipeline(random draw) : draw_(draw), shape_(draw_()) {}

  pipeline<int> operator()() {
    random draw(shape_);
    in_order_ = comparable_ = true;
    auto made = sources(draw);
    for (auto stages = draw.below(4); stages > 0; --stages) made = with_stage(made, draw);
    return made;
  }

  bool in_order() const { return in_order_; }

  // Whether the items do not depend on the order of those before: the first of a batch does.
  bool comparable() const { return comparable_; }

 private:
  pipeline<int> sources(random& draw) {
    bool sharded = draw.below(3) == 0;
    auto first = source(draw, sharded);
    switch (draw.below(6)) {
      case 0: return zip(first, source(draw, sharded)) | map(sum_of_both, {.concurrency = 1});
      case 1: {
        in_order_ = false;  // the turns begin anew
        merge_options how{.order = static_cast<merge_order>(draw.below(3)), .weights = {1, 3, 2}};
        return merge(std::vector{first, source(draw, sharded), source(draw, sharded)}, how);
      }
      case 2: return combine(every_second, first, source(draw, sharded));
      default: return first;
    }
  }

  static int sum_of_both(const std::tuple<int, int>& both) {
    return std::get<0>(both) + 1000 * std::get<1>(both);
  }

  // One of each, the second left out.
  static async_generator<int> every_second(async_generator<int> a, async_generator<int> b) {
    while (auto* item = co_await a.next()) {
      if (!co_await b.next()) co_return;
      co_yield *item;
    }
  }

  static pipeline<int> source(random& draw, bool sharded) {
    auto size = static_cast<int>(draw.below(200));
    if (!sharded && draw.below(4) == 0) return from(numbers{size});
    auto list = from(up_to(size));
    if (size > 0 && draw.below(3) == 0) list = list | drawing(draw, static_cast<std::size_t>(size));
    if (draw.below(2)) list = list | skip(draw.below(20)) | shuffle({.seed = draw()});
    if (draw.below(2)) list = list | repeat(1 + draw.below(3));
    if (draw.below(2)) list = list | skip(draw.below(20));
    if (draw.below(2)) list = list | take(draw.below(300));
    if (sharded) list = list | shard({.rank = 1, .world = 3, .remainder = any_of(draw)});
    return list;
  }

  // Any number of draws of `size` items.
  static draw_stage drawing(random& draw, std::size_t size) {
    std::vector<double> weights(size, 1.0);
    for (auto& each : weights) each += draw.uniform(0, 9);
    return lade::draw({.weights = weights, .count = draw.below(300), .seed = draw()});
  }

  static remainder any_of(random& draw) { return static_cast<remainder>(draw.below(3)); }

  unsigned any_concurrency() { return static_cast<unsigned>(1 + draw_.below(8)); }

  pipeline<int> with_stage(const pipeline<int>& in, random& draw) {
    switch (draw.below(9)) {
      case 0: return in | map([](int i) { return i + 1; }, {.concurrency = any_concurrency()});
      case 1: return in | filter([](int i) { return i % 3 != 0; });
      case 2:
        return in |
               map(fail_on_fives, {.concurrency = any_concurrency(), .on_error = on_error::skip});
      case 3:
        comparable_ = in_order_;
        return in | batch(1 + draw.below(7)) | map([](const ints& all) { return all.front(); });
      case 4: return in | prefetch(1 + draw_.below(5));
      case 5:
        in_order_ = false;
        return in | map([](int i) { return 2 * i; },
                        {.concurrency = any_concurrency(), .order = item_order::completion});
      case 6:
        in_order_ = false;
        return in | map([](int i) { return i; }) |
               shuffle({.seed = draw(), .window = 1 + draw.below(20)});
      case 7: return in | map(add_random, {.concurrency = any_concurrency()});
      default: return in | map(even_only, {.concurrency = any_concurrency()});
    }
  }

  static int fail_on_fives(int i) {
    if (i % 5 == 0) throw std::runtime_error("five");
    return i;
  }
  static int add_random(int i, random numbers) { return i + static_cast<int>(numbers.below(100)); }
  static std::optional<int> even_only(int i) { return i % 2 ? std::nullopt : std::optional(i); }

  random draw_;
  std::uint64_t shape_;
  bool in_order_ = true;
  bool comparable_ = true;
};

TEST(State, ARunThatIsInterruptedDeliversWhatAnUninterruptedOneDoes) {
  auto seed = new_seed();
  runtime runtime({.threads = 3});
  for (std::uint64_t i = 0; i < 300; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    run_options options{.epoch = draw.below(5), .seed = draw()};
    random_pipeline make(draw);
    auto whole = collect(runtime, make(), options);
    auto parts = with_interruptions(runtime, std::ref(make), 1 + draw.below(60), options);
    if (!make.in_order()) {
      std::ranges::sort(parts);
      std::ranges::sort(whole);
    }
    if (make.comparable()) {
      ASSERT_EQ(parts, whole);
    }
  }
}

TEST(State, OutOfOrderEveryItemComesOnce) {
  runtime runtime({.threads = 3});
  auto make = [] {
    return from(up_to(500)) | shuffle({.seed = 1}) |
           map([](int i) { return i; }, {.concurrency = 8, .order = item_order::completion}) |
           shuffle({.window = 16});
  };
  EXPECT_EQ(sorted(with_interruptions(runtime, make, 37)), up_to(500));
}

TEST(State, PartsOfAnItemComeOnce) {
  runtime runtime({.threads = 2});
  auto make = [] {
    return from(up_to(40)) | map([](int i) -> std::optional<int> {
             return i % 4 ? std::optional(i) : std::nullopt;
           }) |
           flat_map([](int i) { return ints(static_cast<std::size_t>(i % 5), i); }) |
           map([](int i) { return i; }, {.concurrency = 3});
  };
  EXPECT_EQ(with_interruptions(runtime, make, 3), collect(runtime, make()));
}

TEST(State, IsRefusedWhereTheOrderChangesBeforePartsAreMade) {
  runtime runtime({.threads = 2});
  auto twice = [](int i) { return ints{i, i}; };
  map_options as_finished{.order = item_order::completion};
  auto same = [](int i) { return i; };
  for (auto& reordered : {from(numbers{9}) | shuffle(), from(numbers{9}) | map(same, as_finished),
                          merge(std::vector<pipeline<int>>{from(up_to(9))})}) {
    auto items = runtime.run(reordered | filter([](int i) { return i > 1; }) | flat_map(twice));
    items.wait_next();
    EXPECT_THAT([&] { items.state(); },
                ThrowsMessage<error>(HasSubstr("before a stage that makes several items of one")));
  }
}

TEST(State, AnotherNumberOfRanksDeliversTheRest) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime runtime({.threads = 2});
  for (int i = 0; i < 50; ++i) {
    auto size = static_cast<int>(draw.below(400));
    auto shuffled = from(up_to(size)) | shuffle({.seed = draw()});
    ints all;
    std::optional<state> merged;
    for (int restart = 0; restart < 4; ++restart) {
      auto world = 1 + draw.below(6);
      auto steps = 1 + draw.below(30);
      std::vector<state> ranks;
      for (std::uint64_t rank = 0; rank < world; ++rank) {
        auto items =
            runtime.run(shuffled | shard({.rank = rank, .world = world}), {.state = merged});
        auto some = take_some(items, restart < 3 ? steps + draw.below(3) : 1000);
        all.insert(all.end(), some.begin(), some.end());
        ranks.push_back(state_from_json(to_json(items.state())));
      }
      merged = merge(ranks);
    }
    auto items = runtime.run(shuffled, {.state = merged});
    auto rest = take_some(items, 1000);
    EXPECT_LT(rest.size(), 6u);  // the remainder
    all.insert(all.end(), rest.begin(), rest.end());
    ASSERT_EQ(sorted(all), up_to(size));
  }
}

TEST(State, AnotherNumberOfRanksDeliversTheRestOfSeveralSources) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime runtime({.threads = 2});
  for (int i = 0; i < 50; ++i) {
    auto size = static_cast<int>(draw.below(200));
    auto first = from(up_to(size)) | shuffle({.seed = draw()});
    auto second =
        from_index(draw.below(200), [size](std::uint64_t k) { return size + static_cast<int>(k); });
    auto part = [&](std::uint64_t rank, std::uint64_t world) {
      shard_options options{.rank = rank, .world = world};
      return merge(std::vector<pipeline<int>>{first | shard(options), second | shard(options)});
    };
    auto whole = sorted(collect(runtime, part(0, 1)));
    ints all;
    std::optional<state> merged;
    for (int restart = 0; restart < 4; ++restart) {
      auto world = 1 + draw.below(6);
      auto steps = draw.below(30);
      std::vector<state> ranks;
      for (std::uint64_t rank = 0; rank < world; ++rank) {
        auto items = runtime.run(part(rank, world), {.state = merged});
        auto some = take_some(items, restart < 3 ? 1 + steps + draw.below(3) : 1000);
        all.insert(all.end(), some.begin(), some.end());
        ranks.push_back(state_from_json(to_json(items.state())));
      }
      merged = merge(ranks);
    }
    auto rest = collect(runtime, part(0, 1), {.state = merged});
    EXPECT_LT(rest.size(), 11u);  // the remainders
    all.insert(all.end(), rest.begin(), rest.end());
    ASSERT_EQ(sorted(all), whole);
  }
}

TEST(State, AnotherNumberOfRanksDeliversTheRestOfTheDraws) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random random(seed);
  runtime runtime({.threads = 2});
  for (int i = 0; i < 30; ++i) {
    std::vector<double> weights(1 + random.below(50), 1.0);
    for (auto& each : weights) each += random.uniform(0, 9);
    auto drawn = from(up_to(static_cast<int>(weights.size()))) |
                 draw({.weights = weights, .count = 12 * random.below(30), .seed = random()});
    std::vector<ints> some;
    std::vector<state> ranks;
    for (std::uint64_t rank = 0; rank < 4; ++rank) {
      auto items = runtime.run(drawn | shard({.rank = rank, .world = 4}));
      some.push_back(take_some(items, 1 + random.below(20)));
      ranks.push_back(state_from_json(to_json(items.state())));
    }
    for (std::uint64_t rank = 0; rank < 3; ++rank)
      some.push_back(collect(runtime,
                             drawn | shard({.rank = rank, .world = 3, .remainder = remainder::pad}),
                             {.state = merge(ranks)}));
    ints all;
    for (auto& each : some) all.insert(all.end(), each.begin(), each.end());
    auto whole = sorted(collect(runtime, drawn));
    std::ranges::sort(all);
    ASSERT_TRUE(std::ranges::includes(all, whole));
    ASSERT_LT(all.size(), whole.size() + 3);
  }
}

TEST(State, OfRanksBehindARepeatMergesInAnyRound) {
  runtime runtime({.threads = 1});
  auto rounds = from(up_to(6)) | shuffle() | repeat(4);
  for (std::size_t steps = 1; steps < 12; ++steps) {
    ints all;
    std::vector<state> ranks;
    for (std::uint64_t rank = 0; rank < 2; ++rank) {
      auto items = runtime.run(rounds | shard({.rank = rank, .world = 2}));
      auto some = take_some(items, steps);
      all.insert(all.end(), some.begin(), some.end());
      ranks.push_back(items.state());
    }
    auto rest = collect(runtime, rounds, {.state = merge(ranks)});
    all.insert(all.end(), rest.begin(), rest.end());
    ASSERT_EQ(sorted(all), sorted(collect(runtime, rounds)));
  }
}

TEST(State, IsSmallHoweverManyItemsThereAre) {
  runtime runtime({.threads = 2});
  auto numbers = from_index(100'000'000, [](std::uint64_t i) { return static_cast<int>(i); }) |
                 shuffle() | shard({.rank = 3, .world = 8});
  auto items = runtime.run(
      numbers | map([](int i) { return i; }, {.concurrency = 16, .order = item_order::completion}));
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(items.wait_next());
  EXPECT_LT(to_json(items.state()).size(), 4096u);
}

TEST(State, OfTheEndLeavesNothing) {
  runtime runtime({.threads = 1});
  auto items = runtime.run(from(up_to(10)));
  take_some(items, 100);
  EXPECT_THAT(collect(runtime, from(up_to(10)), {.state = items.state()}), testing::IsEmpty());
}

TEST(State, BeforeTheFirstItemLeavesAll) {
  runtime runtime({.threads = 1});
  auto state = runtime.run(from(up_to(10))).state();
  EXPECT_EQ(collect(runtime, from(up_to(10)), {.state = state}), up_to(10));
}

// What a run of `what` says when it goes on from `from`.
template <class T>
static std::string refusal(const pipeline<T>& what, const state& from) {
  runtime runtime({.threads = 1});
  try {
    collect(runtime, what, {.state = from});
  } catch (const error& refused) {
    return refused.what();
  }
  return "none";
}

template <class T>
static state state_after(const pipeline<T>& what, int count) {
  runtime runtime({.threads = 1});
  auto items = runtime.run(what);
  for (int i = 0; i < count; ++i) items.wait_next();
  return items.state();
}

TEST(State, OfAnotherPipelineIsRefused) {
  auto doubled = map([](int i) { return i * 2; }, {.name = "double"});
  auto saved = state_after(from(up_to(10)) | doubled, 3);
  EXPECT_THAT(refusal(from(up_to(10)), saved),
              HasSubstr("it is of the stages source | double, these are source"));
  EXPECT_THAT(refusal(from(up_to(11)) | doubled, saved),
              HasSubstr("it is of 10 items, the source has 11"));
  EXPECT_EQ(refusal(from(up_to(10)) | doubled, saved), "none");
}

TEST(State, IsNotGoneOnFromWhereThatWouldNotBeExact) {
  auto saved = state_after(from(up_to(10)), 3);
  EXPECT_THAT(refusal(from(up_to(10)) | shard({}) | shuffle(), saved),
              HasSubstr("shard is not the last step of the source"));
}

TEST(State, OfAnotherRankIsRefused) {
  auto saved = state_after(from(up_to(10)) | shard({.rank = 1, .world = 2}), 3);
  EXPECT_THAT(
      refusal(from(up_to(10)) | shard({.rank = 0, .world = 2}), saved),
      HasSubstr("it is of rank 1 of 2, this is rank 0 of 2: merge the states of all ranks"));
}

TEST(State, IsRefusedWhereItWouldNotBeExact) {
  auto list = from(up_to(100));
  auto twice = flat_map([](int i) { return ints{i, i}; });
  auto identity = map([](int i) { return i; }, {.order = item_order::completion});
  auto of = [](auto what) { return [what] { state_after(what, 3); }; };
  auto says = [](const char* why) { return ThrowsMessage<error>(HasSubstr(why)); };
  EXPECT_THAT(of(list | identity | take(50)), says("take counts the items of a stage"));
  EXPECT_THAT(of(list | identity | skip(1)), says("skip counts the items of a stage"));
  EXPECT_THAT(of(list | identity | shard({})), says("shard counts the items of a stage"));
  EXPECT_THAT(of(list | identity | repeat(2)), says("repeat follows other stages"));
  EXPECT_THAT(of(list | twice | batch(3)),
              says("flat_map makes several items of one before batch"));
  EXPECT_THAT(of(list | twice | identity), says("gives items as they finish"));
  EXPECT_THAT(of(list | shard({.world = 2}) | shuffle()), says("shard is not the last step"));
  EXPECT_THAT(of(list | take(5) | repeat(3)), says("take or skip is followed by repeat"));
  auto from_nothing = through([](async_generator<int> in) -> async_generator<int> {
    while (auto item = co_await in.next()) {
      co_yield *item;
      co_yield *item;
    }
  });
  EXPECT_THAT(of(list | from_nothing), says("items come from no position"));
  std::vector<pipeline<int>> both{list, list | shard({.world = 2})};
  EXPECT_THAT(of(merge(both)), says("not dealt out alike"));
  EXPECT_THAT(of(merge(both, {.end = merge_end::first})), says("the first of its inputs"));
}

// A state with everything in it, of random numbers.
static state any_state(random& draw) {
  auto some_positions = [&] {
    lineage ranges;
    std::uint64_t next = 0;
    for (auto count = draw.below(5); count > 0; --count) {
      auto first = next + 2 + draw.below(1000);
      next = first + draw.below(1000);
      ranges.add({first, next});
    }
    return ranges;
  };
  state any{.epoch = draw(), .seed = draw(), .stages = {"source", "a \"b\" \\ \n"}};
  any.delivered = some_positions();
  any.open = some_positions();
  for (std::uint64_t begin = 0; draw.below(3) > 0; begin += 1 + draw.below(1000))
    any.sources.push_back({begin, draw(), draw(), some_positions()});
  any.world = 1 + draw.below(100);
  any.rank = draw.below(any.world);
  any.parts = draw();
  return any;
}

TEST(StateText, IsReadAsItWasWritten) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  for (int i = 0; i < 100; ++i) {
    auto saved = any_state(draw);
    auto read = state_from_json(to_json(saved));
    EXPECT_EQ(read.stages, saved.stages);
    EXPECT_EQ(read.delivered, saved.delivered);
    EXPECT_EQ(to_json(read), to_json(saved));
  }
}

TEST(StateText, MayHaveSpace) {
  auto read = state_from_json(" { \"lade_state\" : 1 ,\n \"delivered\" : [ [ 0 , 4 ] ] } ");
  EXPECT_EQ(read.delivered.size(), 5u);
}

TEST(StateText, ErrorsTellWhere) {
  auto says = [](const char* why) { return ThrowsMessage<error>(HasSubstr(why)); };
  auto reading = [](std::string text) { return [text] { state_from_json(text); }; };
  EXPECT_THAT(reading(""), says("read a state: expected { (at character 0)"));
  EXPECT_THAT(reading("{\"lade_state\":2}"), says("version 2 of states"));
  EXPECT_THAT(reading("{\"epoch\":1}"), says("version 0 of states"));
  EXPECT_THAT(reading("{\"lade_state\":1}}"), says("more text than a state"));
  EXPECT_THAT(reading("{\"seeds\":1}"), says("\"seeds\" is not part of a state"));
  EXPECT_THAT(reading("{\"seed\":x}"), says("expected a whole number (at character 8)"));
  EXPECT_THAT(reading("{\"seed\":99999999999999999999}"), says("expected a whole number"));
  EXPECT_THAT(reading("{\"open\":[[4,3]]}"), says("ranges that do not ascend"));
  EXPECT_THAT(reading("{\"open\":[[1,2],[2,3]]}"), says("ranges that do not ascend"));
  EXPECT_THAT(reading("{\"sources\":[{\"end\":1}]}"), says("\"end\" is not part of a source"));
  EXPECT_THAT(reading("{\"sources\":[{\"begin\":1},{\"begin\":1}]}"),
              says("sources that do not ascend"));
  EXPECT_THAT(reading("{\"stages\":[\"a]}"), says("a string without an end"));
  EXPECT_THAT(reading("{\"stages\":[\"\\n\"]}"), says("an escape that states do not have"));
  EXPECT_THAT(reading("{\"lade_state\":1,\"rank\":1}"), says("no rank of its world"));
}

TEST(MergeStates, NeedsAllRanksOfOneRun) {
  auto rank = [](std::uint64_t number) {
    return state{.rank = number, .world = 2, .sources = {{.items = 100, .first = number}}};
  };
  auto merging = [](std::vector<state> ranks) { return [ranks] { merge(ranks); }; };
  auto says = [](const char* why) { return ThrowsMessage<error>(HasSubstr(why)); };
  EXPECT_NO_THROW(merge(std::vector{rank(1), rank(0)}));
  EXPECT_THAT(merging({}), says("there are none"));
  EXPECT_THAT(merging({rank(0)}), says("2 ranks are needed, each once"));
  EXPECT_THAT(merging({rank(1), rank(1)}), says("rank 0 is missing"));
  EXPECT_THAT(merging({rank(0), rank(0)}), says("rank 1 is missing"));
  auto other = rank(1);
  other.seed = 7;
  EXPECT_THAT(merging({rank(0), other}), says("they differ in the seed"));
  other = rank(1);
  other.sources[0].since.add({0, std::uint64_t{1} << 62});
  EXPECT_THAT(merging({rank(0), other}), says("rank 1 has delivered more than there is"));
  other = rank(1);
  other.parts = 1;
  EXPECT_THAT(merging({rank(0), other}), says("rank 1 is amid the parts of an item"));
  auto far = [&](std::uint64_t number, std::uint64_t steps) {
    auto result = rank(number);
    result.sources[0].items = std::uint64_t{1} << 40;
    if (steps) result.sources[0].since.add({0, steps});
    return result;
  };
  EXPECT_THAT(merging({far(0, 0), far(1, std::uint64_t{1} << 30)}), says("they are too far apart"));
}

}  // namespace lade
