#include <lade/batch.hpp>
#include <lade/cache.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/draw.hpp>
#include <lade/error.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/route.hpp>
#include <lade/run.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/tee.hpp>
#include <lade/through.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace lade::cache_test {

using namespace test;
using testing::HasSubstr;
using testing::ThrowsMessage;
using ints = std::vector<int>;

// A map that changes nothing and counts how often it is called.
static auto counting(std::atomic<int>& calls, const map_options& options = {}) {
  return map(
      [&calls](int i) {
        ++calls;
        return i;
      },
      options);
}

TEST(Cache, LaterRunsReplayCachedItems) {
  runtime runtime({.threads = 2});
  std::atomic<int> calls = 0;
  auto cached = from(up_to(25)) | counting(calls) | cache();
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
    EXPECT_EQ(collect(runtime, cached, {.epoch = epoch}), up_to(25));
  EXPECT_EQ(calls, 25);
}

TEST(Cache, KeepsAsManyItemsAsItsLimit) {
  runtime runtime({.threads = 2});
  for (int most : {0, 1, 10, 24, 25, 26}) {
    std::atomic<int> calls = 0;
    auto cached =
        from(up_to(25)) | counting(calls) | cache({.items = static_cast<std::uint64_t>(most)});
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
      EXPECT_EQ(collect(runtime, cached, {.epoch = epoch}), up_to(25));
    EXPECT_EQ(calls, 25 + 2 * std::max(0, 25 - most)) << most;
  }
}

TEST(Cache, KeepsAsManyBytesAsItsLimit) {
  runtime runtime({.threads = 1});
  std::atomic<int> calls = 0;
  auto thousand = map([](int i) { return std::string(1000, static_cast<char>('a' + i)); });
  auto cached = from(up_to(10)) | counting(calls) | thousand | cache({.bytes = 3999});
  auto first = collect(runtime, cached);
  EXPECT_EQ(calls, 10);
  EXPECT_EQ(collect(runtime, cached), first);
  EXPECT_EQ(calls, 17);
}

// A type that has bytes(), and one that does not.
struct heavy {
  std::size_t bytes() const { return 7; }
  std::string name = {};
};
struct nameless {
  std::string name = {};
};

TEST(Cache, CountsTheBytesThatItemsHold) {
  using detail::bytes_of;
  EXPECT_EQ(bytes_of(3), sizeof(int));
  EXPECT_EQ(bytes_of(heavy()), 7u);
  EXPECT_EQ(bytes_of(std::string("abc")), 3u);
  EXPECT_EQ(bytes_of(std::vector<ints>{{1, 2}, {3}}), 3 * sizeof(int));
  EXPECT_EQ(bytes_of(buffer(5)), 5u);
  EXPECT_EQ(bytes_of(tensor(element_type::i32, {2, 3})), 24u);
  EXPECT_EQ(bytes_of(sample("key").with_data(buffer(5))), 8u);
  EXPECT_EQ(bytes_of(sample_batch(tensor(element_type::u8, {1, 9}), {sample("key")})), 12u);
  auto unknown = from(std::vector{nameless()});
  EXPECT_NO_THROW(unknown | cache());
  EXPECT_THAT([&] { unknown | cache({.bytes = 10}); },
              ThrowsMessage<error>(HasSubstr("the size of its items or results is unknown")));
}

// Stages before a cache, of random numbers.
static pipeline<int> any_pipeline(random draw) {
  auto size = draw.below(60);
  auto list = from(up_to(static_cast<int>(size)));
  if (size > 0 && draw.below(4) == 0)
    list = list | lade::draw({.weights = std::vector(size, 1.0), .count = draw.below(90)});
  if (draw.below(2)) list = list | shuffle({.seed = draw()});
  if (draw.below(3) == 0) list = list | repeat(2) | skip(draw.below(10)) | take(draw.below(80));
  if (draw.below(3) == 0)
    list =
        list | shard({.rank = 1, .world = 3, .remainder = static_cast<remainder>(draw.below(3))});
  pipeline<int> made = list;
  if (draw.below(4) == 0) made = from(numbers{static_cast<int>(draw.below(60))});
  made = made |
         map([](int i) { return i; }, {.concurrency = static_cast<unsigned>(1 + draw.below(4))});
  bool in_order = true;
  for (auto stages = draw.below(4); stages > 0; --stages) {
    switch (draw.below(8)) {
      case 0: made = made | filter([](int i) { return i % 3 != 0; }); break;
      case 1:
        return made | map([](int i) { return i + 1; },
                          {.concurrency = 4, .order = item_order::completion});
      case 2:
        in_order = false;
        made = made | map([](int i) { return i; }) | shuffle({.seed = draw(), .window = 5});
        break;
      case 3:
        made = made | flat_map([](int i) { return ints(static_cast<std::size_t>(i % 4), i); });
        break;
      case 4:
        if (in_order) made = made | batch(1 + draw.below(5)) | unbatch();
        break;
      case 5: made = made | map([](int i) { return i; }) | take(draw.below(50)); break;
      case 6: made = merge(std::vector{made, from(up_to(5)) | prefetch(2)}); break;
      default:
        if (in_order)
          made = made | map([](int i, random r) { return i + static_cast<int>(r.below(9)); });
    }
  }
  return made;
}

TEST(Cache, EveryRunHasEveryItemOnce) {
  auto seed = new_seed();
  runtime runtime({.threads = 3});
  int kept = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    auto most = draw.below(60);
    auto cached = any_pipeline(random(draw())) | cache({.items = most});
    auto options = run_options{.epoch = draw.below(5), .seed = draw()};
    auto first = sorted(collect(runtime, cached, options));
    auto items = runtime.run(cached, options);
    ASSERT_EQ(sorted(collect(items)), first) << "limit of " << most;
    auto stage = items.statistics().stages.back();
    if (stage.in == stage.out) continue;  // nothing was kept
    ++kept;
    run_options later{.epoch = draw.below(5), .seed = draw()};
    ASSERT_EQ(sorted(collect(runtime, cached, later)), first) << "limit of " << most;
  }
  EXPECT_GT(kept, 100);
}

TEST(Cache, PartsOfAnItemAreNotDivided) {
  runtime runtime({.threads = 2});
  std::atomic<int> calls = 0;
  auto thrice = flat_map([](int i) { return ints(3, i); });
  auto cached = from(up_to(10)) | counting(calls) | thrice | cache({.items = 11});
  auto first = collect(runtime, cached);
  EXPECT_EQ(collect(runtime, cached), first);
  EXPECT_EQ(calls, 10 + 7);
}

TEST(Cache, KeepsTheWholeOrNothingWhereAPartIsNotExact) {
  runtime runtime({.threads = 2});
  std::atomic<int> calls = 0;
  auto counted = from(up_to(20)) | counting(calls);
  auto expect_calls = [&](pipeline<int> what, int later) {
    calls = 0;
    auto first = sorted(collect(runtime, what));
    auto once = calls.load();
    EXPECT_EQ(sorted(collect(runtime, what)), first);
    EXPECT_EQ(calls - once, later);
  };
  expect_calls(counted | skip(5) | cache({.items = 10}), 20);
  expect_calls(counted | skip(5) | cache({.items = 15}), 0);
  auto twice = flat_map([](int i) { return ints{i, i}; });
  expect_calls(counted | twice | shuffle() | cache({.items = 10}), 20);
  expect_calls(counted | twice | cache({.items = 10}) | batch(3) | unbatch(), 15);
  auto both = merge(std::vector<pipeline<int>>{counted, from(up_to(5))});
  expect_calls(both | cache({.items = 10}), 20);
  expect_calls(merge(std::vector<pipeline<int>>{counted, counted}, {.end = merge_end::first}) |
                   cache({.items = 10}),
               40);
  expect_calls(both | cache(), 0);
  expect_calls(counted | cache({.items = 10}) | map([](int i) { return i; }) | cache({.items = 15}),
               10);
  auto from_nothing = through([](async_generator<int> in) -> async_generator<int> {
    while (auto* item = co_await in.next()) {
      co_yield *item;
      co_yield *item;
    }
  });
  expect_calls(counted | from_nothing | cache({.items = 11}), 20);
}

TEST(Cache, InAPathIsRefused) {
  runtime runtime({.threads = 2});
  auto refused =
      ThrowsMessage<error>(HasSubstr("a cache in a path would mix the items of several runs"));
  auto even = [](int i) { return i % 2; };
  EXPECT_THAT([&] { collect(runtime, from(up_to(9)) | tee(cache(), chain())); }, refused);
  EXPECT_THAT([&] { collect(runtime, from(up_to(9)) | route(even, chain(), cache())); }, refused);
  EXPECT_EQ(collect(runtime, from(up_to(9)) | cache() | tee(chain(), chain())).size(), 9u);
  EXPECT_EQ(collect(runtime, from(up_to(9)) | tee(chain(), chain()) | cache()).size(), 9u);
  auto others = from(up_to(9)) | cache();
  auto beside = test::any_stage<int>{[others](const pipeline<int>& in) {
    return zip(in, others) | map([](std::tuple<int, int> both) { return std::get<1>(both); });
  }};
  for (int run = 0; run < 2; ++run)
    EXPECT_EQ(collect(runtime, from(up_to(9)) | tee(beside, chain())).size(), 9u);
}

TEST(Cache, FreezesRandomChoicesBeforeItOnly) {
  runtime runtime({.threads = 2});
  auto noise =
      map([](int i, random draw) { return 1000 * i + static_cast<int>(draw.below(1000)); });
  for (std::uint64_t most : {0u, 20u, 100u}) {
    auto before = from(up_to(50)) | shuffle() | noise | cache({.items = most});
    auto behind = before | noise;
    run_options first{.epoch = 3, .seed = 7};
    run_options second{.epoch = 4, .seed = 7};
    auto items = collect(runtime, before, first);
    if (most > 0) {
      EXPECT_EQ(collect(runtime, before, second), items);
    }
    auto noisy = collect(runtime, behind, first);
    EXPECT_EQ(collect(runtime, behind, first), noisy);
    EXPECT_NE(collect(runtime, behind, second), noisy);
  }
}

TEST(Cache, ServesTheRoundsOfARepeatBehindIt) {
  runtime runtime({.threads = 2});
  for (std::uint64_t most : {4u, 10u}) {
    std::atomic<int> calls = 0;
    auto noise = map([](int, random draw) { return static_cast<int>(draw.below(1'000'000)); });
    auto rounds = from(up_to(10)) | counting(calls) | cache({.items = most}) | repeat(5) | noise;
    auto items = collect(runtime, rounds);
    EXPECT_EQ(calls, 10 + 4 * (10 - static_cast<int>(most)));
    EXPECT_EQ(std::set(items.begin(), items.end()).size(), 50u);
  }
}

TEST(Cache, ReplayedPartsDrawDifferentRandomNumbers) {
  runtime runtime({.threads = 2});
  auto parts = from(up_to(8)) | flat_map([](int) { return ints(50); });
  auto draw = map([](int, random numbers) { return numbers(); });
  for (std::uint64_t most : {200u, 400u}) {
    auto rounds = parts | cache({.items = most}) | repeat(2) | shuffle({.window = 300}) | draw;
    auto drawn = collect(runtime, rounds);
    EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), 800u);
  }
}

TEST(Cache, ThatCannotKeepAllItemsOfStagesThatChooseTheirOrderKeepsNone) {
  runtime runtime({.threads = 2});
  auto list = from_index(12, [](std::uint64_t i) { return static_cast<int>(i); });
  auto others = from_index(5, [](std::uint64_t i) { return 100 + static_cast<int>(i); });
  const std::vector both{list, others};
  const merge_options weighted{.order = merge_order::weighted, .weights = {1, 2}};
  auto stream = list | map([](int i) { return i; });
  for (auto& chosen : {merge(both), merge(both, weighted), stream | shuffle({.window = 4})}) {
    auto cached = chosen | cache({.items = 7});
    auto first = collect(runtime, cached, {.epoch = 3});
    EXPECT_EQ(collect(runtime, cached, {.epoch = 3}), first);
    auto whole = chosen | cache();
    first = collect(runtime, whole, {.epoch = 3});
    EXPECT_EQ(collect(runtime, whole, {.epoch = 4}), first) << "all items are kept";
  }
}

TEST(Cache, KeepsTheLineageOfItsItemsInLaterRounds) {
  lineage batch(7);
  batch.add(3);
  const lineage part = detail::part_lineage(batch, 2).next();
  auto later = detail::moved(part, 2, 12);
  EXPECT_EQ(to_string(later), "13, 17");
  EXPECT_EQ(later.latest(), 13u);
  EXPECT_EQ(later.part(), 1u);
  EXPECT_EQ(detail::part_lineage::members_of_whole(later),
            detail::part_lineage::members_of_whole(part));
  EXPECT_TRUE(detail::moved(lineage(), 2, 12).empty());
  EXPECT_EQ(to_string(detail::moved(lineage(12), 10, 0)), "2");
}

TEST(Cache, IsSharedByCopiesOfAPipeline) {
  runtime runtime({.threads = 1});
  std::atomic<int> calls = 0;
  auto counted = from(up_to(10)) | counting(calls);
  auto keep = cache();
  auto cached = counted | keep;
  auto copy = cached;
  collect(runtime, cached);
  collect(runtime, copy);
  EXPECT_EQ(calls, 10);
  collect(runtime, counted | keep);  // another pipeline
  EXPECT_EQ(calls, 20);
  auto twice = merge(std::vector{cached, copy});
  EXPECT_EQ(sorted(collect(runtime, twice)), sorted(collect(runtime, cached | repeat(2))));
  EXPECT_EQ(calls, 20);
}

TEST(Cache, OneOfSeveralConcurrentRunsFillsIt) {
  runtime runtime({.threads = 3});
  std::atomic<int> calls = 0;
  auto cached = from(up_to(100)) | counting(calls, {.concurrency = 1}) | cache();
  {
    auto one = runtime.run(cached);
    auto other = runtime.run(cached);
    EXPECT_EQ(collect(other), up_to(100));
    EXPECT_EQ(collect(one), up_to(100));
  }
  EXPECT_EQ(calls, 200);
  EXPECT_EQ(collect(runtime, cached), up_to(100));
  EXPECT_EQ(calls, 200);
}

TEST(Cache, APassThatIsLeftKeepsNothing) {
  runtime runtime({.threads = 2});
  std::atomic<int> calls = 0;
  auto cached = from(up_to(100)) | counting(calls, {.concurrency = 1}) | cache({.items = 90});
  { EXPECT_EQ(runtime.run(cached).wait_next(), 0); }
  calls = 0;
  EXPECT_EQ(collect(runtime, cached), up_to(100));
  EXPECT_EQ(calls, 100);
  EXPECT_EQ(collect(runtime, cached), up_to(100));
  EXPECT_EQ(calls, 110);
}

TEST(Cache, APassThatFailsKeepsNothing) {
  runtime runtime({.threads = 2});
  std::atomic<int> calls = 0;
  auto cached = from(up_to(10)) | map([&](int i) {
                  if (++calls == 10) throw std::runtime_error("once");
                  return i;
                }) |
                cache();
  EXPECT_THROW(collect(runtime, cached), stage_error);
  EXPECT_EQ(collect(runtime, cached), up_to(10));
  EXPECT_EQ(collect(runtime, cached), up_to(10));
  EXPECT_EQ(calls, 20);
}

TEST(Cache, WhatFailsOnceBeforeItIsMissingInAllRunsUnlessItIsRetried) {
  runtime runtime({.threads = 1});
  for (unsigned attempts : {1u, 2u}) {
    std::atomic<int> calls = 0;
    auto fail_once = [&](int i) {
      if (++calls == 3) throw std::runtime_error("once");
      return i;
    };
    map_options options{.concurrency = 1, .on_error = on_error::skip};
    options.retry.attempts = attempts;
    auto cached = from(up_to(4)) | map(fail_once, options) | cache();
    auto kept = attempts == 1 ? ints{0, 1, 3} : up_to(4);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
      EXPECT_EQ(collect(runtime, cached, {.epoch = epoch}), kept);
  }
}

TEST(Cache, IsFilledBeforeThePassEnds) {
  runtime runtime({.threads = 1});
  std::atomic<int> calls = 0;
  auto cached = from(numbers{-1}) | counting(calls, {.concurrency = 1}) | cache({.items = 5});
  auto begin = [&] {
    auto items = runtime.run(cached);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(items.wait_next(), i);
  };
  begin();
  calls = 0;
  auto items = runtime.run(cached | take(5));
  EXPECT_EQ(collect(items), up_to(5));
  EXPECT_EQ(calls, 0);
  begin();
}

TEST(Cache, CanBeStoppedWhileItReplays) {
  runtime runtime({.threads = 1});
  auto cached = from(up_to(10)) | cache();
  collect(runtime, cached);
  auto items = runtime.run(cached | repeat(~std::uint64_t{0}) | filter([](int) { return false; }));
  items.stop();
  EXPECT_THAT([&] { items.wait_next(); }, ThrowsMessage<error>("run: stopped"));
}

TEST(Cache, HasNoState) {
  runtime runtime({.threads = 1});
  auto items = runtime.run(from(up_to(10)) | cache());
  items.wait_next();
  EXPECT_THAT(
      [&] { items.state(); },
      ThrowsMessage<error>("state of a run: cache yields the kept items before the others"));
}

TEST(Cache, CountsItsInputAndOutput) {
  runtime runtime({.threads = 1});
  auto cached = from(up_to(10)) | cache({.items = 4});
  collect(runtime, cached);
  auto items = runtime.run(cached);
  collect(items);
  auto stage = items.statistics().stages.back();
  EXPECT_EQ(stage.name, "cache");
  EXPECT_EQ(stage.in, 6u);
  EXPECT_EQ(stage.out, 10u);
}

TEST(Cache, ACopyThatThrowsNamesStageAndItem) {
  runtime runtime({.threads = 1});
  auto items = from(up_to(5)) | map(make_fragile) | cache();
  EXPECT_EQ(only_failure(runtime, items), "cache (f0): no copy");
}

}  // namespace lade::cache_test
