#include <lade/batch.hpp>
#include <lade/bucket.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/draw.hpp>
#include <lade/error.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/io/directory.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/pad.hpp>
#include <lade/route_batches.hpp>
#include <lade/run.hpp>
#include <lade/sample.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>
#include <lade/tee.hpp>
#include <lade/tensor.hpp>
#include <lade/through.hpp>
#include <lade/window.hpp>

#include "../support/json.hpp"
#include "../support/pipelines.hpp"
#include "../support/resume.hpp"
#include "../support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace lade::state_test {

using namespace test;
using testing::HasSubstr;
using testing::ThrowsMessage;
using ints = std::vector<int>;

constexpr through_options consumed{.lineage = lineage_rule::consumed};

// A random pipeline of numbers, every time with other threads in it.
class random_pipeline {
 public:
  explicit random_pipeline(random draw) : draw_(draw), shape_(draw_()) {}

  pipeline<int> operator()() {
    random draw(shape_);
    in_order_ = true;
    auto made = sources(draw);
    for (auto stages = draw.below(4); stages > 0; --stages) made = with_stage(made, draw);
    return made;
  }

  bool in_order() const { return in_order_; }

 private:
  pipeline<int> sources(random& draw) {
    bool sharded = draw.below(3) == 0;
    auto first = source(draw, sharded);
    switch (draw.below(6)) {
      case 0: return zip(first, source(draw, sharded)) | map(sum_of_both, {.concurrency = 1});
      case 1: {
        const auto how = test::merged_in(static_cast<merge_order>(draw.below(3)), {1, 3, 2});
        in_order_ = how.order != merge_order::arrival;
        return merge(std::vector{first, source(draw, sharded), source(draw, sharded)}, how);
      }
      case 2: return combine(every_second, consumed, first, source(draw, sharded));
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
      case 3: return in_order_ ? in | batch(1 + draw.below(7)) | map(digest_of) : in;
      case 4: return in | prefetch(1 + draw_.below(5));
      case 5:
        in_order_ = false;
        return in | map([](int i) { return 2 * i; },
                        {.concurrency = any_concurrency(), .order = item_order::completion});
      case 6:
        return in | map([](int i) { return i; }) |
               shuffle({.seed = draw(), .window = 1 + draw.below(20)});
      case 7: return in | map(add_random, {.concurrency = any_concurrency()});
      default: return in | map(even_only, {.concurrency = any_concurrency()});
    }
  }

  // Of all members, in their order.
  static int digest_of(const ints& batch) {
    std::uint64_t digest = batch.size();
    for (int each : batch) digest = scramble(digest ^ static_cast<std::uint64_t>(each));
    return static_cast<int>(digest % 1'000'000);
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
};

TEST(State, ARunThatIsInterruptedDeliversWhatAnUninterruptedOneDoes) {
  auto seed = new_seed();
  runtime first({.threads = 3});
  for (std::uint64_t i = 0; i < 300; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    run_options options{.epoch = draw.below(5), .seed = draw()};
    random_pipeline make(draw);
    auto whole = collect(first, make(), options);
    auto parts = with_restarts(draw, std::ref(make), 1 + draw.below(60), options);
    if (!make.in_order()) {
      std::ranges::sort(parts);
      std::ranges::sort(whole);
    }
    ASSERT_EQ(parts, whole);
  }
}

TEST(State, AMixtureAndAWindowResumeWithTheSameBatches) {
  runtime runtime({.threads = 3});
  for (auto order : {merge_order::turns, merge_order::weighted})
    for (std::size_t cut : {1u, 3u, 10u}) {
      auto make = [order] {
        auto made = [](int from) { return [from](int i) { return from + i; }; };
        auto books = from(up_to(40)) | map(made(0), {.concurrency = 3}) |
                     filter([](int i) { return i % 7 != 2; });
        auto pages = from(numbers{90}) | map(made(1000), {.concurrency = 2});
        auto code = from(up_to(25)) | shuffle({.seed = 2}) | map(made(2000));
        const auto how = test::merged_in(order, {1, 4, 2}, 3);
        return merge(std::vector<pipeline<int>>{books, pages, code}, how) |
               shuffle({.seed = 5, .window = 20}) | map(made(0), {.concurrency = 4}) | batch(4);
      };
      auto whole = collect(runtime, make(), {.epoch = 2});
      EXPECT_EQ(with_interruptions(runtime, make, cut, {.epoch = 2}), whole);
    }
}

TEST(State, OfALongMixtureIsSmallAndResumesAtOnce) {
  runtime runtime({.threads = 2});
  auto list = from_index(1'000'000'000, [](std::uint64_t i) { return static_cast<int>(i); });
  auto mixed = merge(std::vector{list, list | shuffle()},
                     {.order = merge_order::weighted, .weights = {1, 2}});
  auto items = runtime.run(mixed);
  take_some(items, 100);
  auto saved = items.state();
  EXPECT_LT(to_json(saved).size(), 512u);
  lineage far;
  far.add({0, 300'000'000});
  saved.delivered = far;
  far.add({saved.sources[1].begin, saved.sources[1].begin + 600'000'000});
  saved.delivered = far;
  saved.chosen[0].delivered = {};
  saved.chosen[0].delivered.add({0, 900'000'001});
  auto rest = runtime.run(mixed, {.state = saved});
  take_some(rest, 10);
  EXPECT_EQ(rest.state().chosen[0].delivered.ranges().back().last, 900'000'011u);
}

TEST(State, OfOtherChoicesRestartsThem) {
  runtime runtime({.threads = 1});
  auto shuffled = [](std::uint64_t seed) {
    return from(numbers{50}) | shuffle({.seed = seed, .window = 10});
  };
  auto items = runtime.run(shuffled(1));
  auto all = take_some(items, 20);
  auto rest = collect(runtime, shuffled(2), {.state = items.state()});
  all.insert(all.end(), rest.begin(), rest.end());
  EXPECT_EQ(sorted(all), up_to(50));
  auto saved = items.state();
  saved.chosen[0].delivered.add({20, std::uint64_t{1} << 50});
  EXPECT_THROW(collect(runtime, shuffled(1), {.state = saved}), error);
}

TEST(State, OutOfOrderEveryItemIsDeliveredOnce) {
  runtime runtime({.threads = 3});
  auto make = [] {
    return from(up_to(500)) | shuffle({.seed = 1}) |
           map([](int i) { return i; }, {.concurrency = 8, .order = item_order::completion}) |
           shuffle({.window = 16});
  };
  EXPECT_EQ(sorted(with_interruptions(runtime, make, 37)), up_to(500));
}

TEST(State, PartsOfAnItemAreDeliveredOnce) {
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

TEST(State, IsSmallHoweverManyItemsThereAre) {
  runtime runtime({.threads = 8});
  gate held;
  std::atomic<int> calls = 0;
  auto hold_some = [&](int i) {
    if (int call = calls++; call % 300 == 0 && call < 2100) held.pass();
    return i;
  };
  auto numbers = from_index(100'000'000, [](std::uint64_t i) { return static_cast<int>(i); }) |
                 shuffle() | skip(10) | shard({.rank = 3, .world = 8});
  auto items =
      runtime.run(numbers | map(hold_some, {.concurrency = 8, .order = item_order::completion}));
  for (int i = 0; i < 5000; ++i) EXPECT_TRUE(items.wait_next());
  auto saved = items.state();
  EXPECT_GE(saved.sources[0].since.ranges().size(), 7u);  // one behind each that is held
  EXPECT_LT(to_json(saved).size(), 4096u);
  held.open();
}

TEST(State, OfTheEndResumesWithNoItem) {
  runtime runtime({.threads = 1});
  auto items = runtime.run(from(up_to(10)));
  take_some(items, 100);
  EXPECT_THAT(collect(runtime, from(up_to(10)), {.state = items.state()}), testing::IsEmpty());
}

TEST(State, BeforeTheFirstItemResumesWithAllItems) {
  runtime runtime({.threads = 1});
  auto state = runtime.run(from(up_to(10))).state();
  EXPECT_EQ(collect(runtime, from(up_to(10)), {.state = state}), up_to(10));
}

// The message of a run of `what` that resumes from `from`.
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

TEST(State, NamesStagesAsStatisticsDo) {
  runtime runtime({.threads = 2});
  auto same = [](int i) { return i; };
  auto items = runtime.run(from(up_to(3)) | map(same) | map(same) | prefetch(2));
  items.wait_next();
  std::vector<std::string> names;
  for (auto& each : items.statistics().stages) names.push_back(each.name);
  EXPECT_EQ(items.state().stages, names);
  EXPECT_THAT(names, testing::ElementsAre("source", "map", "map (2)", "prefetch"));
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

TEST(State, OfAnotherOrderIsRefused) {
  auto list = from(up_to(10));
  auto shuffled = list | shuffle({.seed = 7});
  auto cut = shuffled | skip(1) | take(8);
  auto refuses = [](const pipeline<int>& before, const pipeline<int>& now, const char* why) {
    EXPECT_THAT(refusal(now, state_after(before, 3)), HasSubstr(why));
  };
  refuses(shuffled, list | shuffle({.seed = 8}),
          "it has items in the order shuffle 7, this source has them in the order shuffle 8: "
          "steps, counts and seeds must be the same");
  refuses(list, shuffled,
          "it has items in the order of the source, this source has them in the order shuffle 7");
  refuses(shuffled, list,
          "in the order shuffle 7, this source has them in the order of the source");
  refuses(cut, shuffled | skip(1) | take(9),
          "shuffle 7 | skip 1 | take 8, this source has them in the order "
          "shuffle 7 | skip 1 | take 9");
  refuses(cut, shuffled | skip(2) | take(8),
          "this source has them in the order shuffle 7 | skip 2 | take 8");
  refuses(shuffled | repeat(2), shuffled | repeat(3),
          "this source has them in the order shuffle 7 | repeat 3");
  refuses(shuffled, shuffled | shard({.world = 2}), "none");
}

TEST(State, OfOtherDrawsIsRefused) {
  auto drawn = [](std::vector<double> weights, std::uint64_t count, std::uint64_t seed) {
    return from(up_to(3)) | draw({.weights = weights, .count = count, .seed = seed});
  };
  auto saved = state_after(drawn({1, 2, 3}, 100, 7), 3);
  EXPECT_EQ(refusal(drawn({1, 2, 3}, 100, 7), saved), "none");
  EXPECT_EQ(refusal(drawn({2, 4, 6}, 100, 7), saved), "none");
  EXPECT_THAT(refusal(drawn({1, 2, 4}, 100, 7), saved), HasSubstr("the order draw 100 by weights"));
  EXPECT_THAT(refusal(drawn({1, 2, 3}, 99, 7), saved), HasSubstr("the order draw 99 by weights"));
  EXPECT_THAT(refusal(drawn({1, 2, 3}, 100, 8), saved), HasSubstr("with seed 8"));
}

TEST(State, OfAListingIncludesItsOrder) {
  testing_support::temp_dir data;
  for (auto* name : {"a", "b", "c"}) data.write(name, "content");
  auto files = from(io::files(data.path()));
  auto saved = state_after(files | take(2), 1);
  EXPECT_EQ(refusal(files | take(2), saved), "none");
  EXPECT_THAT(refusal(files | take(3), saved),
              HasSubstr("take 2, this source has them in the order take 3"));
  EXPECT_THAT(refusal(files | shuffle(), saved),
              HasSubstr("this source has them in the order shuffle 0"));
  EXPECT_THAT(refusal(from(up_to(3)), state_after(files, 1)),
              HasSubstr("it is of an unknown number of items, the source has 3 items"));
}

TEST(State, OfAnotherDataSetIsRefusedByName) {
  auto list = [](const char* identity) { return from(up_to(10), {.identity = identity}); };
  auto index = [](const char* identity) {
    return from_index(10, [](std::uint64_t i) { return static_cast<int>(i); },
                      {.identity = identity});
  };
  auto stream = [](const char* identity) { return from(numbers{10}, {.identity = identity}); };
  EXPECT_THAT(refusal(list("June"), state_after(list("May"), 3)),
              HasSubstr("it is of the data set \"May\", the source is of the data set \"June\"; "
                        "to resume nevertheless, set run_options::other_data"));
  EXPECT_THAT(refusal(list(""), state_after(list("May"), 3)),
              HasSubstr("the source is of a data set without a name"));
  EXPECT_THAT(refusal(index("June") | shuffle(), state_after(index("May") | shuffle(), 3)),
              HasSubstr("it is of the data set \"May\""));
  EXPECT_THAT(refusal(stream("June"), state_after(stream("May"), 3)),
              HasSubstr("it is of the data set \"May\""));
  EXPECT_EQ(refusal(list("May"), state_after(list("May"), 3)), "none");
  runtime runtime({.threads = 1});
  auto all_the_same =
      collect(runtime, list("June"), {.state = state_after(list("May"), 3), .other_data = true});
  EXPECT_EQ(all_the_same.size(), 7u);
}

TEST(State, OfAGeneratorThatHasFewerItemsThanWereDeliveredIsRefusedAtItsEnd) {
  auto stream = [](int items) { return from(numbers{items}); };
  auto saved = state_after(stream(10), 7);
  EXPECT_THAT(refusal(stream(5), saved),
              HasSubstr("the source has ended after 5 items, but later ones had been delivered; to "
                        "resume nevertheless, set run_options::other_data"));
  EXPECT_EQ(refusal(stream(7), saved), "none");
  auto in_turn = [&](int items) {
    return merge(std::vector<pipeline<int>>{stream(10), stream(items)});
  };
  EXPECT_THAT(refusal(in_turn(2), state_after(in_turn(10), 8)),
              HasSubstr("the source has ended after 2 items"));
  EXPECT_EQ(refusal(in_turn(10), state_after(in_turn(10), 20)), "none");
  runtime runtime({.threads = 1});
  auto rest = collect(runtime, stream(5), {.state = saved, .other_data = true});
  EXPECT_TRUE(rest.empty());
}

TEST(State, OfAListingIsOfItsNames) {
  auto files_in = [](testing_support::temp_dir& data, std::vector<std::string> names) {
    for (auto& name : names) data.write(name, "content");
    return from(io::files(data.path()));
  };
  testing_support::temp_dir some;
  testing_support::temp_dir same;
  testing_support::temp_dir others;
  auto files = files_in(some, {"a", "b", "c", "d"});
  auto moved = files_in(same, {"a", "b", "c", "d"});
  auto other = files_in(others, {"a", "b", "b2", "d"});
  EXPECT_EQ(refusal(moved, state_after(files, 3)), "none");
  EXPECT_EQ(refusal(moved | shuffle(), state_after(files | shuffle(), 2)), "none");
  EXPECT_THAT(refusal(other | shuffle(), state_after(files | shuffle(), 2)),
              HasSubstr("it is of the data set \"names "));
  EXPECT_THAT(
      refusal(other, state_after(files, 4)),
      HasSubstr("items of the listing have changed: the state is of the data set \"names "));
  runtime runtime({.threads = 1});
  auto rest = collect(runtime, other, {.state = state_after(files, 3), .other_data = true});
  EXPECT_EQ(rest.size(), 1u);
  auto first = collect(runtime, other | take(2), {.state = state_after(files | take(2), 1)});
  EXPECT_EQ(first.size(), 1u);
}

TEST(State, OfAListingThatHasBecomeShorterIsRefused) {
  testing_support::temp_dir data;
  for (auto* name : {"a", "b", "c", "d"}) data.write(name, "content");
  auto files = from(io::files(data.path()));
  auto saved = state_after(files, 4);
  std::filesystem::remove(data / "d");
  EXPECT_THAT(refusal(files, saved), HasSubstr("it had listed 4 items, now there are 3"));
}

TEST(State, OfAListingIncludesSizesOnRequest) {
  testing_support::temp_dir data;
  for (auto* name : {"a", "b", "c"}) data.write(name, "content");
  for (bool sizes : {false, true}) {
    data.write("b", "content");
    auto files = from(io::labelled_files(data.path(), "**", {.compare_sizes = sizes})) | shuffle();
    auto saved = state_after(files, 1);
    data.write("b", "more content");
    EXPECT_EQ(refusal(files, saved) == "none", !sizes);
  }
}

TEST(State, OfLabelledFilesIsOfTheirLabels) {
  testing_support::temp_dir data;
  for (auto* name : {"cat/1", "cat/2", "dog/1", "dog/2"}) data.write(name, "content");
  auto labelled = from(io::labelled_files(data.path()));
  auto files = from(io::files(data.path()));
  auto saved = state_after(labelled, 4);
  auto shuffled = state_after(labelled | shuffle(), 1);
  EXPECT_THAT(refusal(files, saved), HasSubstr("of the data set \"names "));
  EXPECT_THAT(refusal(labelled, state_after(files, 4)), HasSubstr("of the data set \"names "));
  std::filesystem::create_directory(data / "emu");  // behind all others
  EXPECT_EQ(refusal(labelled, saved), "none");
  std::filesystem::create_directory(data / "bird");  // the labels of all others move
  EXPECT_THAT(refusal(labelled, saved), HasSubstr("of the data set \"names "));
  EXPECT_THAT(refusal(labelled | shuffle(), shuffled), HasSubstr("of the data set \"names "));
}

TEST(State, IsOfBatchesOfAnySize) {
  auto batches = [](std::size_t size) { return from(up_to(20)) | shuffle() | batch(size); };
  runtime runtime({.threads = 1});
  auto items = runtime.run(batches(4));
  ints all;
  auto add = [&](const std::vector<ints>& some) {
    for (auto& each : some) all.insert(all.end(), each.begin(), each.end());
  };
  add(take_some(items, 2));
  add(collect(runtime, batches(5), {.state = items.state()}));
  EXPECT_EQ(all, collect(runtime, from(up_to(20)) | shuffle()));
}

TEST(State, AmidABatchThatIsSplitNeedsBatchesOfThatSize) {
  auto apart = [](std::size_t size) { return from(up_to(20)) | batch(size) | unbatch(); };
  auto saved = state_after(apart(4), 6);
  EXPECT_EQ(refusal(apart(4), saved), "none");
  EXPECT_THAT(refusal(apart(8), saved),
              HasSubstr("it is of the stages source | batch of 4, these are source | batch of 8"));
  auto windows = [](std::size_t step) {
    return from(up_to(20)) | window(3, {.step = step}) | unbatch();
  };
  EXPECT_THAT(refusal(windows(4), state_after(windows(3), 2)),
              HasSubstr("window of 3, these are source | window of 3 in steps of 4"));
}

TEST(State, AmidThePartsOfAnItemIsForTheSameParts) {
  auto twice = [](int i) { return ints{i, i}; };
  auto pairs = from(up_to(20)) | map(twice);
  auto saved = state_after(pairs | unbatch(), 5);
  EXPECT_EQ(refusal(pairs | unbatch(), saved), "none");
  EXPECT_THAT(
      refusal(pairs, saved),
      HasSubstr(
          "it has an item that was delivered in part, and no stage of this pipeline splits items"));
}

// Takes turns, so what it yields depends on how many items came before.
static async_generator<int> take_turns(async_generator<int> a, async_generator<int> b) {
  while (true) {
    auto* of_a = co_await a.next();
    if (of_a) co_yield *of_a;
    auto* of_b = co_await b.next();
    if (of_b) co_yield *of_b;
    if (!of_a && !of_b) co_return;
  }
}

TEST(State, AmidABatchThatIsMadeOfOtherItemsNowEndsTheRun) {
  auto both = combine(take_turns, consumed, from(up_to(20)), from(up_to(30)));
  auto parts = both | batch(3) | unbatch();
  EXPECT_THAT(refusal(parts, state_after(parts, 4)),
              testing::AllOf(HasSubstr("1 part of the item at positions 2"),
                             HasSubstr("combine does not follow lineage_rule::consumed"),
                             HasSubstr("clear state::open and state::parts")));
  runtime runtime({.threads = 1});
  auto whole = collect(runtime, parts);
  for (std::size_t cut = 1; cut < whole.size(); ++cut) {
    auto items = runtime.run(parts);
    auto all = take_some(items, cut);
    try {
      auto rest = collect(runtime, parts, {.state = items.state()});
      all.insert(all.end(), rest.begin(), rest.end());
    } catch (const error&) {
      continue;
    }
    EXPECT_EQ(sorted(all), sorted(whole)) << "after " << cut;
  }
}

// What comes of the numbers from 0 to 8 but for some that fail, three parts of each.
static pipeline<int> parts_without(std::set<int> failing) {
  auto pass = [failing = std::move(failing)](int i) {
    if (failing.contains(i)) throw std::runtime_error("broken");
    return i;
  };
  return from(up_to(9)) | map(pass, {.on_error = on_error::skip}) |
         flat_map([](int i) { return ints(3, i); });
}

TEST(State, AmidThePartsOfAnItemThatFailsNowResumesWithTheNext) {
  runtime runtime({.threads = 1});
  auto saved = state_after(parts_without({1}), 4);  // amid the parts of 2
  EXPECT_THAT(collect(runtime, parts_without({1, 2, 4, 6, 7, 8}), {.state = saved}),
              testing::ElementsAre(3, 3, 3, 5, 5, 5));
  EXPECT_THAT(collect(runtime, parts_without({1, 2, 3, 4, 5, 6, 7, 8}), {.state = saved}),
              testing::IsEmpty());
}

TEST(State, AnItemThatWasDroppedBeforeThoseThatWereTakenIsNotTriedAgain) {
  runtime runtime({.threads = 1});
  auto items = runtime.run(parts_without({1, 4}));
  auto all = take_some(items, 5);
  auto rest = runtime.run(parts_without({4}), {.state = items.state()});
  for (int each : take_some(rest, 3)) all.push_back(each);
  for (int each : collect(runtime, parts_without({4}), {.state = rest.state()}))
    all.push_back(each);
  EXPECT_EQ(all, collect(runtime, parts_without({1, 4})));
}

TEST(State, AmidABatchWithAFailedMemberNeedsTheSameMembers) {
  auto batches = [](bool fails) {
    auto pass = [fails](int i) {
      if (fails && i == 4) throw std::runtime_error("broken");
      return i;
    };
    return from(up_to(9)) | map(pass, {.on_error = on_error::skip}) | batch(3) | unbatch();
  };
  auto saved = state_after(batches(true), 4);
  EXPECT_EQ(refusal(batches(true), saved), "none");
  EXPECT_THAT(refusal(batches(false), saved),
              HasSubstr("but this run has an item at positions 3-5 instead"));
}

// A group of the user's, whose size() is not noexcept.
struct bundle {
  ints members;
  std::size_t size() const { return members.size(); }
};

TEST(State, AmidALastBatchWithAFailedMemberNeedsTheSameMembers) {
  auto batched = [](int failing) {
    auto pass = [failing](int i) {
      if (i == failing) throw std::runtime_error("broken");
      return i;
    };
    return from(up_to(9)) | map(pass, {.on_error = on_error::skip}) | batch(6);
  };
  auto batches = [&](int failing) { return batched(failing) | unbatch(); };
  auto bundles = [&](int failing) {
    return batched(failing) | map([](ints members) { return bundle{std::move(members)}; }) |
           flat_map([](bundle all) { return std::move(all.members); });
  };
  auto needs_the_same = [](auto groups) {
    auto saved = state_after(groups(7), 7);  // the last group is of 6 and 8
    EXPECT_EQ(refusal(groups(7), saved), "none");
    EXPECT_THAT(refusal(groups(-1), saved), HasSubstr("but it has other members now"));
  };
  needs_the_same(batches);
  needs_the_same(bundles);
}

TEST(State, AmidABatchNeedsTheSameMembersEvenIfAsManyHaveFailed) {
  auto batches = [](int failing) {
    auto pass = [failing](int i) {
      if (i == failing) throw std::runtime_error("broken");
      return i;
    };
    return from(up_to(8)) | map(pass, {.on_error = on_error::skip}) | batch(4) | unbatch();
  };
  for (int failing = 0; failing < 4; ++failing) {
    auto saved = state_after(batches(failing), 2);
    EXPECT_EQ(refusal(batches(failing), saved), "none");
    for (int now = 0; now < 4; ++now) {
      if (now == failing) continue;
      EXPECT_THAT(refusal(batches(now), saved), HasSubstr("but it has other members now"))
          << failing << " failed before, " << now << " now";
    }
  }
}

static int first_of_both(std::tuple<int, int> both) { return std::get<0>(both); }

TEST(State, OfBatchesThatPathsSplitNeedsTheSameMembers) {
  auto batches = [](std::size_t size, int failing) {
    auto pass = [failing](int i) {
      if (i == failing) throw std::runtime_error("broken");
      return i;
    };
    return from(up_to(12)) | map(pass, {.on_error = on_error::skip}) | batch(size) |
           tee(unbatch(), unbatch()) | map(first_of_both);
  };
  EXPECT_THAT(refusal(batches(3, -1), state_after(batches(4, -1), 2)), HasSubstr("batch of 4"));
  auto saved = state_after(batches(4, 1), 2);
  EXPECT_EQ(refusal(batches(4, 1), saved), "none");
  EXPECT_THAT(refusal(batches(4, -1), saved),
              HasSubstr("but this run has an item at positions 0-3 instead"));
}

TEST(State, OfPartsThatPathsBatchIsRefused) {
  auto twice = [](int i) { return ints{i, i}; };
  auto parts = from(up_to(12)) | flat_map(twice);
  runtime runtime({.threads = 2});
  auto refused = [&](auto stage, const char* why) {
    auto items = runtime.run(parts | stage);
    items.wait_next();
    EXPECT_THAT([&] { items.state(); }, ThrowsMessage<error>(HasSubstr(why)));
  };
  auto window = [] { return shuffle({.seed = 1, .window = 4}); };
  refused(tee(batch(2), batch(2)), "flat_map makes several items of one before batch");
  refused(tee(chain(), batch(1)), "flat_map makes several items of one before batch");
  refused(tee(window(), window()), "flat_map makes several items of one before");
  refused(tee(tee(chain(), batch(1)), chain()), "flat_map makes several items of one before batch");
  auto items = runtime.run(parts | tee(chain(), chain()));
  items.wait_next();
  EXPECT_EQ(items.state().parts, 1u);
}

TEST(State, OfBatchesWhosePathsMakeSeveralOfOneIsRefused) {
  auto alone = flat_map([](ints batch) { return std::vector<ints>{std::move(batch)}; });
  auto parity = [](int i) { return i % 2; };
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(up_to(12)) | batch(2) | route_batches(parity, alone, alone));
  items.wait_next();
  EXPECT_THAT(
      [&] { items.state(); },
      ThrowsMessage<error>(HasSubstr("flat_map makes several items of one before route_batches")));
}

// Fails at `number` while `fails` is set.
static auto fails_at(int number, const bool& fails) {
  return [number, &fails](int i) {
    if (fails && i == number) throw std::runtime_error("broken");
    return i;
  };
}

// What is delivered by a run that fails, and by one that resumes when nothing fails any more.
template <class T>
static std::vector<T> delivered_in_two(const pipeline<T>& what, bool& fails) {
  runtime runtime({.threads = 2});
  std::vector<T> all;
  fails = true;
  auto items = runtime.run(what);
  try {
    while (auto item = items.wait_next()) all.push_back(std::move(*item));
    ADD_FAILURE() << "it did not fail";
  } catch (const stage_error&) {}
  fails = false;
  auto rest = collect(runtime, what, {.state = items.state()});
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

TEST(State, AfterAFailureHasWholeBatchesIfTheyArePairedOrSplit) {
  bool fails = false;
  runtime runtime({.threads = 2});
  for (int i = 0; i < 24; ++i) {
    auto some = from(up_to(24)) | map(fails_at(i, fails), {.concurrency = 3});
    auto all = from(up_to(24));
    auto expect_same = [&](const auto& what) {
      fails = false;
      EXPECT_EQ(delivered_in_two(what, fails), collect(runtime, what)) << "fails at " << i;
    };
    expect_same(zip(some | batch(4), all | batch(4)));
    expect_same(zip(all | batch(4), some | batch(4)));
    auto same_length = [](int) { return 1; };
    expect_same(zip(some | bucket(same_length, {.size = 4}), all | batch(4)));
    expect_same(all | tee(chain(map(fails_at(i, fails)), batch(4)), batch(4)));
    expect_same(some | batch(4) | unbatch());
    expect_same(some | batch(4) | tee(unbatch(), unbatch()));
    expect_same(some | window(2, {.step = 4}));
    expect_same(some | window(3, {.step = 3}));
  }
}

TEST(State, OfASourceInAPathIsRefused) {
  auto zipped = test::any_stage<int>{[](const pipeline<int>& in) {
    return zip(in, from(numbers{100})) |
           map([](std::tuple<int, int> both) { return std::get<0>(both) + std::get<1>(both); });
  }};
  auto parity = [](int i) { return i % 2; };
  runtime runtime({.threads = 2});
  auto refused = [&](auto stage) {
    auto items = runtime.run(from(up_to(12)) | stage);
    items.wait_next();
    EXPECT_THAT([&] { items.state(); },
                ThrowsMessage<error>(HasSubstr("a source is in a path of tee, route or")));
  };
  refused(route(parity, zipped, zipped));
  refused(tee(zipped, chain()));
}

TEST(State, OfSplitItemsWithoutASizeIsRefusedBehindABatch) {
  struct row {
    ints members;
  };
  auto pack = [](ints members) { return row{std::move(members)}; };
  auto unpack = [](row all) { return std::move(all.members); };
  runtime runtime({.threads = 1});
  auto items = runtime.run(from(up_to(12)) | batch(3) | map(pack) | flat_map(unpack));
  items.wait_next();
  EXPECT_THAT([&] { items.state(); },
              ThrowsMessage<error>(HasSubstr("has no size() that counts members")));
}

// What comes of the numbers from 0 to 8, six parts of each, but for the parts that fail.
static pipeline<int> parts_but(std::set<int> failing, unsigned concurrency) {
  auto pass = [failing = std::move(failing)](int part) {
    if (failing.contains(part)) throw std::runtime_error("broken");
    return part;
  };
  auto parts_of = [](int i) {
    ints parts(6);
    std::iota(parts.begin(), parts.end(), 6 * i);
    return parts;
  };
  return from(up_to(9)) | flat_map(parts_of, {.concurrency = concurrency}) |
         map(pass, {.concurrency = concurrency, .on_error = on_error::skip});
}

TEST(State, PartsThatFailInOneOfTheRunsAreNeitherRepeatedNorLost) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime runtime({.threads = 2});
  for (int round = 0; round < 200; ++round) {
    auto concurrency = 1 + static_cast<unsigned>(draw.below(3));
    ints all;
    std::set<int> failed;  // before the last part that was delivered, in the run that delivered it
    run_options next;
    for (bool more = true; more;) {
      std::set<int> failing;
      for (int i = 0; i < 48; ++i)  // at the end, nobody knows what becomes of the rest
        if (draw.below(3) == 0) failing.insert(i);
      auto before = all.empty() ? -1 : all.back();
      more = take_part(runtime, parts_but(failing, concurrency), 1 + draw.below(8), next, all);
      auto last = more ? all.back() : 53;
      for (int each : failing)
        if (before < each && each <= last) failed.insert(each);
    }
    ints expected;
    for (int i = 0; i < 54; ++i)
      if (!failed.contains(i)) expected.push_back(i);
    ASSERT_EQ(all, expected) << "in round " << round;
  }
}

TEST(State, PartsOfPartsThatFailInOneOfTheRunsAreNeitherRepeatedNorLost) {
  auto nested = [](int failing) {
    auto pass = [failing](int i) {
      if (i == failing) throw std::runtime_error("broken");
      return i;
    };
    return from(up_to(3)) | flat_map([](int i) { return ints{3 * i, 3 * i + 1, 3 * i + 2}; }) |
           map(pass, {.on_error = on_error::skip}) | flat_map([](int i) { return ints{i, i}; });
  };
  runtime runtime({.threads = 1});
  auto ends = testing::ElementsAre(4, 5, 5, 6, 6, 7, 7, 8, 8);
  EXPECT_THAT(collect(runtime, nested(3), {.state = state_after(nested(-1), 9)}), ends);
  EXPECT_THAT(collect(runtime, nested(-1), {.state = state_after(nested(3), 7)}), ends);
}

TEST(State, AmidPartsOfTheMembersOfABatchIsExact) {
  const std::vector<ints> groups{{1, 2}, {3, 4, 5}, {}, {6}, {7, 8, 9, 10}};
  auto same = [](const ints& group) { return group; };
  auto batches = from(groups) | batch(2) | unbatch();
  runtime runtime({.threads = 1});
  for (auto& parts : {batches | unbatch(), batches | flat_map(same)})
    for (int cut = 0; cut <= 10; ++cut) {
      ints expected;
      for (int i = cut; i < 10; ++i) expected.push_back(i + 1);
      EXPECT_EQ(collect(runtime, parts, {.state = state_after(parts, cut)}), expected);
    }
}

TEST(State, AmidPartsOfABatchWithAFailedMemberNeedsTheSameMembers) {
  auto parts = [](int failing) {
    auto pass = [failing](int i) {
      if (i == failing) throw std::runtime_error("broken");
      return i;
    };
    return from(up_to(9)) | map(pass, {.on_error = on_error::skip}) | batch(6) | unbatch() |
           flat_map([](int i) { return ints{i, i}; });
  };
  auto saved = state_after(parts(7), 13);  // the last batch is of 6 and 8
  EXPECT_EQ(refusal(parts(7), saved), "none");
  EXPECT_THAT(
      refusal(parts(-1), saved),
      HasSubstr(
          "part 1.1 of the item at positions 6-8 had been delivered, but it has other members "
          "now"));
}

TEST(State, IsRefusedForPartsThatCannotBeNumbered) {
  auto twice = [](int i) { return ints{i, i}; };
  runtime runtime({.threads = 1});
  auto items = runtime.run(from(up_to(3)) | flat_map(twice) | flat_map(twice) | flat_map(twice));
  items.wait_next();
  EXPECT_THAT([&] { items.state(); },
              ThrowsMessage<error>(HasSubstr("parts of parts are too many to be numbered")));
}

TEST(State, AmidMorePartsThanTheItemHasNowEndsTheRun) {
  auto parts = [](std::size_t count) {
    return from(up_to(2)) | flat_map([count](int i) { return ints(count, i); });
  };
  for (int taken : {3, 6})  // of the first item, of the last
    EXPECT_THAT(refusal(parts(2), state_after(parts(3), taken)),
                HasSubstr("3 parts of the item at positions " + std::to_string(taken / 3 - 1) +
                          " had been delivered, but it has fewer parts now"));
}

TEST(State, AmidPartsBehindSomeThatAreDroppedIsExact) {
  runtime runtime({.threads = 2});
  auto make = [] {
    return from(up_to(40)) | batch(2) |
           flat_map([](const ints& pair) { return ints{pair[0], pair[1], -pair[0], -pair[1]}; }) |
           filter([](int i) { return i > 0 && i % 8 > 3; });
  };
  EXPECT_EQ(with_interruptions(runtime, make, 1), collect(runtime, make()));
}

TEST(State, IsNotResumedFromWhereThatWouldNotBeExact) {
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

static async_generator<int> pass_on(async_generator<int> in) {
  while (auto* item = co_await in.next()) co_yield *item;
}
static sample as_sample(int i) { return sample(std::to_string(i), i); }
static ints as_tokens(int i) { return {i, i}; }
static int as_length(int) { return 1; }
static ints whole(ints batch) { return batch; }
static ints its_spans(const packed_batch&) { return {1}; }

struct key_length {
  tensor_spec spec() const { return {element_type::i32, {1}}; }
  void operator()(const sample& in, const tensor& slot) const {
    *slot.data<std::int32_t>() = static_cast<std::int32_t>(in.key().size());
  }
};

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
  EXPECT_THAT(of(list | twice | identity), says("yields items in completion order"));
  // One at a time too, since a state is good for any concurrency.
  auto one = map([](int i) { return i; }, {.concurrency = 1, .order = item_order::completion});
  EXPECT_THAT(of(list | twice | one), says("yields items in completion order"));
  EXPECT_THAT(of(list | flat_map(as_tokens, {.order = item_order::completion})),
              says("yields parts of several items in completion order"));
  EXPECT_THAT(of(list | twice | window(4, {.step = 4})), says("before window"));
  EXPECT_THAT(of(list | twice | through(pass_on, consumed)), says("before through"));
  EXPECT_THAT(of(zip(list | twice, list)), says("before zip"));
  EXPECT_THAT(of(combine(pass_on, consumed, list | twice)), says("before combine"));
  EXPECT_THAT(of(list | twice | map(as_sample) | batch_into(key_length(), {})),
              says("before batch_into"));
  EXPECT_THAT(of(list | twice | map(as_tokens) | pack_rows({.length = 8})),
              says("before pack_rows"));
  EXPECT_THAT(of(list | bucket(as_length, {.size = 4}) | flat_map(whole)),
              says("bucket is before a stage that makes several items of one"));
  EXPECT_THAT(of(list | map(as_tokens) | pack_rows({.length = 8}) | flat_map(its_spans)),
              says("pack_rows is before a stage that makes several items of one"));
  EXPECT_THAT(of(list | shard({.world = 2}) | shuffle()), says("shard is not the last step"));
  EXPECT_THAT(of(list | take(5) | repeat(3)), says("take or skip is followed by repeat"));
  std::vector<pipeline<int>> both{list, list | shard({.world = 2})};
  EXPECT_THAT(of(merge(both)), says("not sharded in the same way"));
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
    any.sources.push_back({begin,
                           draw(),
                           "May",
                           draw(),
                           {"shuffle 7", "take 9"},
                           draw.below(1000),
                           some_positions()});
  any.world = 1 + draw.below(100);
  any.rank = draw.below(any.world);
  if (!any.open.empty()) any.parts = draw.below(1000);
  any.open_members = draw.below(1000);
  any.steps = draw.below(3);
  any.steps_taken = draw.below(any.steps + 1);
  any.steps_repeated = draw.below(any.steps_taken + 1);
  for (auto count = draw.below(3); count > 0; --count)
    any.chosen.push_back({"shuffle \"7\"", some_positions(), draw()});
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

// Up to eight bytes, many of them parts of UTF-8.
static std::string any_bytes(random& draw) {
  const std::string_view often = "a\xc3\xa9\xe9\xed\xb2\x80\xf0\"\\u";
  std::string text(draw.below(9), '\0');
  for (auto& byte : text)
    byte = draw.below(2) ? often[draw.below(often.size())] : static_cast<char>(draw.below(256));
  return text;
}

TEST(StateText, OfAnyBytesIsJsonAndReadAsItWasWritten) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  for (int i = 0; i < 1000; ++i) {
    state saved{.stages = {any_bytes(draw), any_bytes(draw)}};
    saved.sources.push_back({.identity = any_bytes(draw), .order = {any_bytes(draw)}});
    saved.chosen.push_back({.of = any_bytes(draw)});
    auto text = to_json(saved);
    ASSERT_TRUE(is_json(text)) << text;
    auto read = state_from_json(text);
    ASSERT_EQ(read.stages, saved.stages) << text;
    ASSERT_EQ(read.sources[0].identity, saved.sources[0].identity) << text;
    ASSERT_EQ(read.sources[0].order, saved.sources[0].order) << text;
    ASSERT_EQ(read.chosen[0].of, saved.chosen[0].of) << text;
  }
}

TEST(StateText, OfNamesThatAreNotUtf8ResumesTheRun) {
  auto pipeline = from(up_to(4), {.identity = "/r\xe9ponses"}) |
                  map([](int i) { return i; }, {.name = "r\xe9pond"});
  auto text = to_json(state_after(pipeline, 1));
  EXPECT_THAT(text, HasSubstr("/r\\udce9ponses"));
  runtime runtime({.threads = 1});
  EXPECT_EQ(collect(runtime, pipeline, {.state = state_from_json(text)}), (ints{1, 2, 3}));
}

// What no run can have delivered: everything in it is the number `far`.
static std::vector<std::string> impossible_states(const std::string& far) {
  auto with = [](const std::string& members) { return "{\"lade_state\":5," + members + "}"; };
  auto range = [&](const char* first) { return std::string("[[") + first + "," + far + "]]"; };
  return {
      with("\"delivered\":" + range("0")),
      with("\"delivered\":" + range(far.c_str())),
      with("\"delivered\":[[0,2],[5," + far + "]]"),
      with("\"own\":" + range("0")),
      with("\"open\":" + range("3") + ",\"parts\":1"),
      with("\"parts\":" + far),
      with("\"sources\":[{\"begin\":" + far + "}]"),
      with("\"sources\":[{\"begin\":0,\"first\":" + far + "}]"),
      with("\"sources\":[{\"begin\":0,\"since\":" + range("0") + "}]"),
      with("\"chosen\":[{\"delivered\":" + range("0") + "}]"),
      with("\"world\":" + far),
  };
}

TEST(StateText, OfPositionsThatNoSourceHasIsRefused) {
  for (auto far : {"18446744073709551615", "18446744073709551614", "4611686018427387904"})
    for (auto& text : impossible_states(far))
      EXPECT_THAT([&] { state_from_json(text); }, ThrowsMessage<error>(HasSubstr(far))) << text;
  EXPECT_EQ(state_from_json("{\"lade_state\":5,\"delivered\":[[0,4611686018427387903]]}").rank, 0u);
}

TEST(State, OfPositionsThatNoSourceHasIsRefusedWhenTheRunBegins) {
  state saved;
  saved.delivered.add({5, ~std::uint64_t{0}});
  EXPECT_THAT(refusal(from(up_to(10)), saved),
              HasSubstr("18446744073709551615 is beyond all positions"));
  EXPECT_THROW(merge(std::vector{saved}), error);
  state of_no_rank{.rank = 2, .world = 2};
  EXPECT_THAT(refusal(from(up_to(10)) | shard({.rank = 1, .world = 2}), of_no_rank),
              HasSubstr("it is of rank 2 of 2"));
  EXPECT_NE(refusal(from(up_to(10)), state{.world = 0}), "none");
}

TEST(StateText, MayHaveSpace) {
  auto read = state_from_json(" { \"lade_state\" : 5 ,\n \"delivered\" : [ [ 0 , 4 ] ] } ");
  EXPECT_EQ(read.delivered.size(), 5u);
}

TEST(StateText, ErrorsStateThePosition) {
  auto says = [](const char* why) { return ThrowsMessage<error>(HasSubstr(why)); };
  auto reading = [](std::string text) { return [text] { state_from_json(text); }; };
  EXPECT_THAT(reading(""), says("read a state: expected { (at character 0)"));
  EXPECT_THAT(reading("{\"lade_state\":1}"), says("version 1 of states, not 5"));
  EXPECT_THAT(reading("{\"lade_state\":1,\"old\":9}"), says("version 1 of states, not 5"));
  EXPECT_THAT(reading("{\"lade_state\":3,\"parts\":1}"), says("version 3 of states, not 5"));
  EXPECT_THAT(reading("{\"lade_state\":6,\"new\":[]}"), says("version 6 of states, not 5"));
  EXPECT_THAT(reading("{\"epoch\":1}"), says("version 0 of states, not 5"));
  EXPECT_THAT(reading("{\"lade_state\":5}}"), says("more text than a state"));
  EXPECT_THAT(reading("{\"seeds\":1}"), says("\"seeds\" is not part of a state"));
  EXPECT_THAT(reading("{\"seed\":x}"), says("expected a whole number (at character 8)"));
  EXPECT_THAT(reading("{\"seed\":99999999999999999999}"), says("expected a whole number"));
  EXPECT_THAT(reading("{\"open\":" + std::string(100'000, '[')), says("expected a whole number"));
  EXPECT_THAT(reading("{\"a\":" + std::string(100'000, '[')), says("\"a\" is not part of a state"));
  EXPECT_THAT(reading("{\"open\":[[4,3]]}"), says("ranges that do not ascend"));
  EXPECT_THAT(reading("{\"open\":[[1,2],[2,3]]}"), says("ranges that do not ascend"));
  EXPECT_THAT(reading("{\"sources\":[{\"end\":1}]}"), says("\"end\" is not part of a source"));
  EXPECT_THAT(reading("{\"sources\":[{\"begin\":1},{\"begin\":1}]}"),
              says("sources that do not ascend"));
  EXPECT_THAT(reading("{\"epoch\":0,\"epoch\":3}"), says("\"epoch\" appears twice"));
  EXPECT_THAT(reading("{\"lade_state\":5,\"parts\":2}"),
              says("it has delivered parts of an item without positions"));
  EXPECT_THAT(reading("{\"stages\":[\"a]}"), says("a string without an end"));
  EXPECT_THAT(reading("{\"stages\":[\"\\n\"]}"), says("an escape that states do not have"));
  EXPECT_THAT(reading("{\"stages\":[\"\\ufffd\"]}"), says("an escape that states do not have"));
  EXPECT_THAT(reading("{\"stages\":[\"\\udc7f\"]}"), says("an escape that states do not have"));
  EXPECT_THAT(reading("{\"lade_state\":5,\"rank\":1}"), says("it is of rank 1 of 1"));
  EXPECT_THAT(reading("{\"lade_state\":5,\"steps\":3,\"steps_taken\":4}"),
              says("it has taken more steps than there are"));
  EXPECT_THAT(reading("{\"lade_state\":5,\"steps\":3,\"steps_taken\":2,\"steps_repeated\":3}"),
              says("it has taken more steps than there are"));
}

}  // namespace lade::state_test
