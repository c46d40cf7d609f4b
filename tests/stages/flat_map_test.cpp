#include <lade/batch.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/event.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/random.hpp>
#include <lade/shuffle.hpp>
#include <lade/sleep.hpp>
#include <lade/state.hpp>
#include <lade/tee.hpp>
#include <lade/thread_pool.hpp>
#include <lade/through.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace lade::flat_map_test {

using test::collect;
using test::count_to;
using test::gate;
using test::numbers;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::ThrowsMessage;
using ints = std::vector<int>;

TEST(FlatMap, OfGeneratorsInGenerators) {
  runtime runtime({.threads = 2});
  auto nested = from(numbers{4}) | flat_map(count_to) | flat_map(count_to);
  EXPECT_THAT(collect(runtime, nested), ElementsAre(0, 0, 0, 1));
}

TEST(FlatMap, CopiesOutOfAViewAndMovesOutOfAContainer) {
  runtime runtime({.threads = 2});
  using words = std::vector<std::string>;
  words table{"one that is too long to be kept in place", "another that is as long as that one"};
  auto viewed = [&table](int) { return std::span(table); };
  for (int run = 0; run < 2; ++run)
    EXPECT_EQ(collect(runtime, from(numbers{1}) | flat_map(viewed)), table);
  auto copied = [&table](int) { return words(table); };
  EXPECT_EQ(collect(runtime, from(numbers{1}) | flat_map(copied)), table);
  static_assert(detail::owns_elements<words> && !detail::owns_elements<std::span<std::string>>);
}

static async_generator<int> then_fail(int i) {
  co_yield int(i);
  if (i == 1) throw std::runtime_error("one");
}

TEST(FlatMap, KeepsWhatWasYieldedBeforeAFailure) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(numbers{3}) | flat_map(then_fail, {.on_error = on_error::skip}));
  EXPECT_THAT(collect(items), ElementsAre(0, 1, 2));
  EXPECT_EQ(items.failures().size(), 1u);
}

static async_generator<int> then_sleep(int i) {
  co_yield int(i);
  if (i == 1) co_await sleep(std::chrono::hours(10));
}

TEST(FlatMap, IsStoppedWhileItsGeneratorSleeps) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(numbers{-1}) | flat_map(then_sleep, {.on_error = on_error::skip}));
  EXPECT_EQ(items.wait_next(), 0);
  EXPECT_EQ(items.wait_next(), 1);
  items.stop();
  EXPECT_THROW(items.wait_next(), error);
  EXPECT_TRUE(items.failures().empty());
}

static ints twice(int i) { return {i, i}; }
static async_generator<int> forever(int) { return count_to(-1); }

// The number of an item determines its parts; some items have none.
static ints some_of(int i) { return ints(static_cast<std::size_t>(i % 4), i); }

static async_generator<int> some_slowly(int i) {
  for (int left = i % 4; left > 0; --left) {
    test::pause(i % 5);
    int part = i;
    co_yield part;
  }
}

TEST(FlatMap, SplitsSeveralItemsConcurrentlyInOrder) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime runtime({.threads = 3});
  for (int round = 0; round < 60; ++round) {
    auto source = from(numbers{static_cast<int>(draw.below(60))});
    flat_map_options wide{.concurrency = 1 + static_cast<unsigned>(draw.below(6)),
                          .buffer = draw.below(4)};
    auto expected = collect(runtime, source | flat_map(some_of));
    ASSERT_EQ(collect(runtime, source | flat_map(some_of, wide)), expected);
    ASSERT_EQ(collect(runtime, source | flat_map(some_slowly, wide)), expected);
    wide.order = item_order::completion;
    auto mixed = collect(runtime, source | flat_map(some_slowly, wide));
    std::ranges::sort(mixed);
    ASSERT_EQ(mixed, expected);
  }
}

// Yields its first part at once; the second waits at the gate.
struct half_blocked {
  test::gate& gate;
  async_generator<int> operator()(int i) const { return give(gate, i); }
  static async_generator<int> give(test::gate& gate, int i) {
    int first = i;
    co_yield first;
    gate.pass();
    int second = -i;
    co_yield second;
  }
};

TEST(FlatMap, ARunningGeneratorOccupiesOneSlot) {
  runtime runtime({.threads = 4});
  test::gate gate;
  std::atomic<int> taken = 0;
  auto count = [&](int i) {
    ++taken;
    return i;
  };
  auto items = runtime.run(from(numbers{-1}) | map(count, {.concurrency = 1}) |
                           flat_map(half_blocked{gate}, {.concurrency = 3}));
  gate.wait_for(3);
  EXPECT_EQ(items.wait_next(), 0);  // before its generator has ended
  EXPECT_EQ(taken, 3);
  gate.open();
  EXPECT_EQ(items.wait_next(), 0);
  EXPECT_EQ(items.wait_next(), 1);
  EXPECT_EQ(items.wait_next(), -1);
}

TEST(FlatMap, InCompletionOrderTheFastOvertakeTheSlow) {
  runtime runtime({.threads = 2});
  test::gate gate;
  auto slow_first = [&](int i) {
    if (i == 0) gate.pass();
    return ints{i, i};
  };
  auto items = runtime.run(
      from(numbers{3}) | flat_map(slow_first, {.concurrency = 2, .order = item_order::completion}));
  ints first;
  for (int i = 0; i < 4; ++i) first.push_back(items.wait_next().value());
  EXPECT_THAT(first, ElementsAre(1, 1, 2, 2));
  gate.open();
  EXPECT_THAT(collect(items), ElementsAre(0, 0));
}

TEST(FlatMap, AFailureIsReportedAfterTheEarlierParts) {
  runtime runtime({.threads = 3});
  flat_map_options wide{.concurrency = 3};
  for (int round = 0; round < 50; ++round) {
    auto items = runtime.run(from(numbers{9}) | flat_map(then_fail, wide));
    EXPECT_EQ(items.wait_next(), 0);
    EXPECT_EQ(items.wait_next(), 1);
    EXPECT_THAT([&] { items.wait_next(); }, ThrowsMessage<stage_error>(HasSubstr("(1): one")));
  }
  wide.on_error = on_error::skip;
  auto items = runtime.run(from(numbers{3}) | flat_map(then_fail, wide));
  EXPECT_THAT(collect(items), ElementsAre(0, 1, 2));
  EXPECT_EQ(items.failures().size(), 1u);
  wide.order = item_order::completion;
  wide.on_error = {};
  EXPECT_THROW(collect(runtime, from(numbers{9}) | flat_map(then_fail, wide)), stage_error);
}

static ints refuse_odd(int i) {
  if (i % 2 == 1) throw std::runtime_error("odd");
  return {i, i};
}

TEST(FlatMap, EndsWithMoreFailuresThanItsBudget) {
  runtime runtime({.threads = 1});
  for (unsigned concurrency : {1u, 3u}) {
    flat_map_options bounded{.concurrency = concurrency, .on_error = on_error::skip};
    bounded.error_budget = {.count = 2};
    bounded.name = "even";
    EXPECT_THAT(collect(runtime, from(numbers{5}) | flat_map(refuse_odd, bounded)),
                ElementsAre(0, 0, 2, 2, 4, 4));
    EXPECT_THAT(
        [&] { collect(runtime, from(numbers{6}) | flat_map(refuse_odd, bounded)); },
        ThrowsMessage<stage_error>(HasSubstr("odd (more failures than the budget allows)")));
  }
}

static async_generator<int> fail_after(int items) {
  for (int i = 0; i < items; ++i) {
    int item = i;
    co_yield item;
  }
  throw std::runtime_error("no more");
}

TEST(FlatMap, DeliversItemsBeforeAFailureOfTheSource) {
  runtime runtime({.threads = 3});
  auto source = from([] { return fail_after(5); });
  for (auto order : {item_order::input, item_order::completion}) {
    auto items = runtime.run(source | flat_map(twice, {.concurrency = 3, .order = order}));
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(items.wait_next());
    EXPECT_THAT([&] { items.wait_next(); }, ThrowsMessage<error>(HasSubstr("no more")));
  }
}

TEST(FlatMap, IsStoppedWithFullBuffersAndWhileItsGeneratorsSleep) {
  runtime runtime({.threads = 3});
  for (auto order : {item_order::input, item_order::completion})
    for (std::size_t buffer : {0u, 1u, 8u}) {
      flat_map_options wide{.concurrency = 4, .buffer = buffer, .order = order};
      auto endless = runtime.run(from(numbers{-1}) | flat_map(forever, wide));
      EXPECT_TRUE(endless.wait_next());
      auto sleeping = runtime.run(from(numbers{-1}) | flat_map(then_sleep, wide));
      EXPECT_TRUE(sleeping.wait_next());
      sleeping.stop();
      (void)runtime.run(from(numbers{-1}) | flat_map(count_to, wide));  // never asked for an item
    }
}

TEST(FlatMap, SplitsItemsOnADedicatedPool) {
  runtime runtime({.threads = 1});
  thread_pool own({.threads = 2, .name = "parts"});
  auto where = [&](int) { return ints{detail::this_executor == &own}; };
  for (unsigned concurrency : {1u, 2u})
    EXPECT_THAT(collect(runtime, from(numbers{3}) |
                                     flat_map(where, {.concurrency = concurrency, .pool = &own})),
                ElementsAre(1, 1, 1));
}

TEST(FlatMap, ResumesFromAStateWithSeveralItemsAtATime) {
  runtime runtime({.threads = 3});
  auto pipeline = from(numbers{40}) | flat_map(some_slowly, {.concurrency = 4, .buffer = 2}) |
                  map([](int i) { return i; }, {.concurrency = 3});
  auto whole = collect(runtime, pipeline);
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    auto first = runtime.run(pipeline);
    ints all;
    for (std::size_t i = 0; i < cut; ++i) all.push_back(first.wait_next().value());
    auto rest = collect(runtime, pipeline, {.state = state_from_json(to_json(first.state()))});
    all.insert(all.end(), rest.begin(), rest.end());
    ASSERT_EQ(all, whole) << "cut after " << cut;
  }
}

TEST(FlatMap, RefusesAStateOfPartsThatAreMixed) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(
      from(numbers{9}) |
      flat_map(some_of, {.concurrency = 2, .order = item_order::completion, .name = "split"}));
  items.wait_next();
  EXPECT_THAT(
      [&] { items.state(); },
      ThrowsMessage<error>(HasSubstr("split yields parts of several items in completion order")));
}

TEST(FlatMap, PartsDrawDifferentRandomNumbersInLaterStages) {
  runtime runtime({.threads = 2});
  auto draw = map([](int, random numbers) { return numbers(); });
  auto parts = [](flat_map_options options = {}) {
    return from(numbers{8}) | flat_map([](int) { return ints(50); }, options);
  };
  auto different = [&](const pipeline<int>& made) {
    auto all = collect(runtime, made | draw);
    return std::set(all.begin(), all.end()).size();
  };
  EXPECT_EQ(different(parts() | shuffle({.window = 300})), 400u);
  EXPECT_EQ(different(merge(std::vector<pipeline<int>>{parts(), parts()})), 800u);
  EXPECT_EQ(different(parts() | batch(7) | unbatch() | shuffle({.window = 100})), 400u);
  EXPECT_EQ(different(parts({.concurrency = 4, .order = item_order::completion})), 400u);
}

// Like a file: what its size is has to be found out.
struct measured {
  int value;
  std::size_t size() const { throw std::runtime_error("it is gone"); }
};

TEST(FlatMap, ItemsWithoutASizeHaveNoMembers) {
  EXPECT_EQ(detail::members_of(ints{1, 2}), 2u);
  EXPECT_EQ(detail::members_of(sample_batch(tensor(), {sample("a"), sample("b")})), 2u);
  EXPECT_EQ(detail::members_of(std::string("text")), 0u);
  EXPECT_EQ(detail::members_of(buffer(8)), 0u);
  EXPECT_EQ(detail::members_of(measured{1}), 0u);
  runtime runtime({.threads = 2});
  auto measure = map([](int i) { return measured{i}; });
  for (unsigned concurrency : {1u, 2u}) {
    auto value =
        flat_map([](measured item) { return ints{item.value}; }, {.concurrency = concurrency});
    EXPECT_THAT(collect(runtime, from(numbers{3}) | measure | value), ElementsAre(0, 1, 2));
  }
}

TEST(FlatMap, AStallReportNamesTheItemsThatAreSplit) {
  runtime runtime({.threads = 2});
  std::promise<std::string> report;
  stall_options stall{.after = std::chrono::milliseconds(20),
                      .to = [&](const std::string& text) { report.set_value(text); }};
  run_options options;
  options.stall = stall;
  auto items = runtime.run(from(numbers{-1}) | flat_map(then_sleep, {.concurrency = 2}), options);
  EXPECT_EQ(items.wait_next(), 0);
  EXPECT_EQ(items.wait_next(), 1);
  std::thread consumer([&] { EXPECT_THROW(items.wait_next(), error); });
  EXPECT_THAT(report.get_future().get(), HasSubstr("  item 1 (1) has been worked on for"));
  items.stop();
  consumer.join();
}

// Of two items at a time. Item 0 never ends, so that item 1 has a third one behind it only if it
// has ended itself.
TEST(FlatMap, AStallReportNamesTheItemsThatWaitForAnEarlierOne) {
  runtime runtime({.threads = 2});
  event never;
  auto hang = [&never](int i) -> async_generator<int> {
    if (i == 0) co_await never;
    co_yield i;
  };
  std::promise<std::string> report;
  auto items =
      runtime.run(from(numbers{-1}) | flat_map(hang, {.concurrency = 2, .name = "expand"}),
                  {.stall = {.after = std::chrono::milliseconds(4),
                             .to = [&](const std::string& text) { report.set_value(text); }}});
  auto is_full = [&] {
    auto stages = items.statistics().stages;
    return stages.size() == 2 && stages[1].in == 3 && stages[1].output_wait.count() > 0;
  };
  test::wait_until(is_full);
  EXPECT_EQ(items.statistics().stages[1].depth, 3u);
  std::thread consumer([&] { EXPECT_THROW(items.wait_next(), error); });
  auto text = report.get_future().get();
  EXPECT_THAT(text, HasSubstr("expand: 0 of 3 slots free"));
  EXPECT_THAT(text, HasSubstr("its feeder is blocked"));
  EXPECT_THAT(text, HasSubstr("item 0 (0) has been worked on"));
  EXPECT_THAT(text, HasSubstr("item 1 (1) is done and waits for earlier ones"));
  items.stop();
  consumer.join();
}

// A stop closes the branch of item 0 while that item is still being split. The upstream, which
// cannot be stopped in a call either, may then bring item 2.
TEST(FlatMap, AnItemThatIsSplitDuringAStopKeepsItsRecord) {
  runtime runtime({.threads = 4});
  gate split, come;
  std::promise<void> reads, read;
  auto map_two = [&](int i) {
    if (i == 2) come.pass();
    return i;
  };
  auto split_none = [&](int i) {
    if (i == 0) split.pass();
    return ints();
  };
  auto until_end = [&reads, &read](async_generator<int> parts) -> async_generator<int> {
    std::shared_ptr<void> tells(nullptr, [&](void*) { read.set_value(); });
    reads.set_value();
    while (auto* part = co_await parts.next()) co_yield *part;
  };
  auto items = runtime.run(from(test::up_to(4)) | map(map_two, {.concurrency = 1}) |
                           flat_map(split_none, {.concurrency = 4}) | through(until_end));
  auto now = [&] { return items.statistics().stages.at(2); };
  split.wait_for(1);
  come.wait_for(1);
  reads.get_future().wait();
  items.stop();
  read.get_future().wait();
  come.open();
  test::pause(1000);
  split.open();
  test::wait_until([&] { return !now().slowest.empty() && now().depth == 0; });
  EXPECT_EQ(now().slowest.front().positions, lineage(0));
  EXPECT_THROW(collect(items), error);
}

TEST(FlatMap, InAPathOfATeeIsWaitedFor) {
  runtime runtime({.threads = 3});
  auto halved = chain(flat_map(some_slowly, {.concurrency = 3, .buffer = 1}),
                      filter([](int i) { return i % 2 > 0; }));
  for (int round = 0; round < 20; ++round) {
    auto rows = collect(runtime, from(numbers{40}) | tee({.buffer = 4}, halved, chain()));
    EXPECT_THAT(rows, SizeIs(40));
    EXPECT_EQ(rows.front(), std::tuple(1, 0));
  }
}

TEST(FlatMap, RefusesAConcurrencyOfZero) {
  EXPECT_THAT([&] { flat_map(some_of, {.concurrency = 0}); },
              ThrowsMessage<error>(HasSubstr("concurrency is 0; it must be from 1 to ")));
}

// Of four threads, the run may use two for its automatic stages.
TEST(FlatMap, WithAutomaticConcurrencySharesTheCpusOfAutomaticStages) {
  runtime runtime({.threads = 4});
  gate both;
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  auto busy = [&](int i) {
    most = std::max(most.load(), ++inside);
    both.pass();
    --inside;
    return std::vector<int>{i, i};
  };
  auto stage = flat_map(busy, {.concurrency = automatic, .buffer = 5, .name = "busy"});
  auto items = runtime.run(
      from(numbers{40}) | stage | map([](int i) { return i; }, {.concurrency = automatic}),
      {.tune = {.cpus = 2}});
  both.wait_for(2);
  test::pause(1000);
  EXPECT_EQ(most, 2);
  EXPECT_EQ(items.settings().at(0), (stage_setting{"busy", 2, 5}));
  both.open();
  EXPECT_EQ(
      collect(items),
      collect(runtime, from(numbers{40}) | flat_map([](int i) { return std::vector<int>{i, i}; })));
}

// In completion order all items share the buffer.
TEST(FlatMap, WithAutomaticConcurrencyHoldsAsManyPartsAsItsSettingSays) {
  runtime runtime({.threads = 2});
  std::atomic<int> made = 0;
  auto endless = [&made](int i) -> async_generator<int> {
    while (true) {
      ++made;
      co_yield int(i);
    }
  };
  auto parts =
      flat_map(endless, {.concurrency = automatic, .buffer = 1, .order = item_order::completion});
  auto items = runtime.run(from(numbers{-1}) | parts, {.ready = 1});
  items.wait_next();
  constexpr int in_flight = 16, queued = 1, delivered = 1 + 2;  // two in the queue of the run
  test::wait_until([&] { return made >= in_flight; });
  test::pause(1000);
  EXPECT_LE(made, in_flight + queued + delivered);
}

TEST(FlatMap, WithAutomaticConcurrencyHasNoMoreCallsThanCpus) {
  runtime runtime({.threads = 4});
  std::atomic<int> inside = 0;
  std::atomic<bool> both = false;
  auto busy = [&](int i) {
    if (++inside > 1) both = true;
    test::pause(3);
    --inside;
    return i;
  };
  auto parts =
      flat_map([&](int i) { return std::vector<int>{busy(i)}; }, {.concurrency = automatic});
  auto items = from(numbers{100}) | parts | parts | map(busy, {.concurrency = automatic});
  EXPECT_THAT(collect(runtime, items, {.tune = {.cpus = 1}}), SizeIs(100));
  EXPECT_FALSE(both);
}

TEST(FlatMap, WhatTheEndOfALaterStageInterruptsIsNoFailure) {
  for (auto order : {item_order::input, item_order::completion}) {
    runtime runtime({.threads = 2});
    event never;
    auto parts = [&](int i) -> async_generator<int> {
      if (i >= 2) co_await never;
      co_yield i;
    };
    auto some = from(test::up_to(10)) |
                flat_map(parts, {.concurrency = 4, .order = order, .on_error = on_error::skip}) |
                take(2);
    auto items = runtime.run(some);
    EXPECT_THAT(test::collect(items), testing::UnorderedElementsAre(0, 1));
    EXPECT_THAT(items.failures(), testing::IsEmpty());
    for (auto& stage : items.statistics().stages) EXPECT_EQ(stage.failed, 0u) << stage.name;
  }
}

}  // namespace lade::flat_map_test
