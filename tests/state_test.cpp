#include <lade/batch.hpp>
#include <lade/bucket.hpp>
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
#include <lade/run.hpp>
#include <lade/sample.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>
#include <lade/tensor.hpp>
#include <lade/through.hpp>
#include <lade/window.hpp>

#include "support/pipelines.hpp"
#include "support/resume.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
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
        merge_options how{.order = static_cast<merge_order>(draw.below(3)), .weights = {1, 3, 2}};
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

TEST(State, AMixtureAndAWindowGoOnWithTheSameBatches) {
  runtime runtime({.threads = 3});
  for (auto order : {merge_order::turns, merge_order::weighted})
    for (std::size_t cut : {1u, 3u, 10u}) {
      auto make = [order] {
        auto made = [](int from) { return [from](int i) { return from + i; }; };
        auto books = from(up_to(40)) | map(made(0), {.concurrency = 3}) |
                     filter([](int i) { return i % 7 != 2; });
        auto pages = from(numbers{90}) | map(made(1000), {.concurrency = 2});
        auto code = from(up_to(25)) | shuffle({.seed = 2}) | map(made(2000));
        merge_options how{.order = order, .weights = {1, 4, 2}, .seed = 3};
        return merge(std::vector<pipeline<int>>{books, pages, code}, how) |
               shuffle({.seed = 5, .window = 20}) | map(made(0), {.concurrency = 4}) | batch(4);
      };
      auto whole = collect(runtime, make(), {.epoch = 2});
      EXPECT_EQ(with_interruptions(runtime, make, cut, {.epoch = 2}), whole);
    }
}

TEST(State, OfALongMixtureIsSmallAndGoesOnAtOnce) {
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

TEST(State, OfOtherChoicesBeginsThemAnew) {
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

TEST(State, OfAnotherOrderIsRefused) {
  auto list = from(up_to(10));
  auto shuffled = list | shuffle({.seed = 7});
  auto cut = shuffled | skip(1) | take(8);
  auto refuses = [](const pipeline<int>& before, const pipeline<int>& now, const char* why) {
    EXPECT_THAT(refusal(now, state_after(before, 3)), HasSubstr(why));
  };
  refuses(shuffled, list | shuffle({.seed = 8}),
          "its items are in the order shuffle 7, these are in the order shuffle 8");
  refuses(list, shuffled,
          "its items are in the order of the source, these are in the order shuffle 7");
  refuses(shuffled, list, "in the order shuffle 7, these are in the order of the source");
  refuses(cut, shuffled | skip(1) | take(9),
          "shuffle 7 | skip 1 | take 8, these are in the order "
          "shuffle 7 | skip 1 | take 9");
  refuses(cut, shuffled | skip(2) | take(8), "these are in the order shuffle 7 | skip 2 | take 8");
  refuses(shuffled | repeat(2), shuffled | repeat(3),
          "these are in the order shuffle 7 | repeat 3");
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

TEST(State, OfAListingTellsItsOrderToo) {
  testing_support::temp_dir data;
  for (auto* name : {"a", "b", "c"}) data.write(name, "content");
  auto files = from(io::files(data.path()));
  auto saved = state_after(files | take(2), 1);
  EXPECT_EQ(refusal(files | take(2), saved), "none");
  EXPECT_THAT(refusal(files | take(3), saved), HasSubstr("take 2, these are in the order take 3"));
  EXPECT_THAT(refusal(files | shuffle(), saved), HasSubstr("these are in the order shuffle 0"));
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
                        "run_options::other_data goes on all the same"));
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
  EXPECT_THAT(refusal(other, state_after(files, 4)),
              HasSubstr("items of the listing are of the data set \"names "));
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

TEST(State, OfAListingTellsSizesOnRequest) {
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

TEST(State, AmidABatchThatIsTakenApartIsOfBatchesOfThatSize) {
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
  EXPECT_THAT(refusal(pairs, saved),
              HasSubstr("it is amid the parts of an item, and these stages make none"));
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
  EXPECT_THAT(of(list | twice | identity), says("gives items as they finish"));
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
    any.sources.push_back(
        {begin, draw(), "May", draw(), {"shuffle 7", "take 9"}, draw(), some_positions()});
  any.world = 1 + draw.below(100);
  any.rank = draw.below(any.world);
  any.parts = draw();
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

TEST(StateText, MayHaveSpace) {
  auto read = state_from_json(" { \"lade_state\" : 3 ,\n \"delivered\" : [ [ 0 , 4 ] ] } ");
  EXPECT_EQ(read.delivered.size(), 5u);
}

TEST(StateText, ErrorsTellWhere) {
  auto says = [](const char* why) { return ThrowsMessage<error>(HasSubstr(why)); };
  auto reading = [](std::string text) { return [text] { state_from_json(text); }; };
  EXPECT_THAT(reading(""), says("read a state: expected { (at character 0)"));
  EXPECT_THAT(reading("{\"lade_state\":1}"), says("version 1 of states, not 3"));
  EXPECT_THAT(reading("{\"lade_state\":4,\"new\":[]}"), says("version 4 of states, not 3"));
  EXPECT_THAT(reading("{\"epoch\":1}"), says("version 0 of states, not 3"));
  EXPECT_THAT(reading("{\"lade_state\":3}}"), says("more text than a state"));
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
  EXPECT_THAT(reading("{\"lade_state\":3,\"rank\":1}"), says("no rank of its world"));
}

}  // namespace lade
