#include <lade/batch.hpp>
#include <lade/cut.hpp>
#include <lade/error.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/hooks.hpp>
#include <lade/map.hpp>
#include <lade/pad.hpp>
#include <lade/run.hpp>
#include <lade/sample.hpp>
#include <lade/tensor.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace lade {

using namespace test;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

static std::string text_of(const std::exception_ptr& failure) {
  if (!failure) return "";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return std::string(" ") + e.what();
  }
}

// Notes what it is told of, a line each.
class noting : public run_hooks {
 public:
  std::vector<std::string> stages() const { return copy(stages_); }
  std::vector<std::string> items() const { return copy(items_); }

 private:
  using lines = std::vector<std::string>;

  void enter_stage(std::string_view stage) override { note(stages_, "+" + std::string(stage)); }
  void leave_stage(std::string_view stage, const std::exception_ptr& failure) override {
    note(stages_, "-" + std::string(stage) + text_of(failure));
  }
  void enter_item(const item_call& call) override { note(items_, "+" + name(call)); }
  void leave_item(const item_call& call, const std::exception_ptr& failure) override {
    note(items_, "-" + name(call) + text_of(failure));
  }

  static std::string name(const item_call& call) {
    return std::string(call.stage) + " " + std::string(call.item) + " @" +
           to_string(call.positions) + " #" + std::to_string(call.attempt);
  }
  void note(lines& to, std::string line) {
    std::lock_guard lock(mutex_);
    to.push_back(std::move(line));
  }
  lines copy(const lines& from) const {
    std::lock_guard lock(mutex_);
    return from;
  }

  mutable std::mutex mutex_;
  lines stages_;
  lines items_;
};

static int refuse_two(int i) {
  if (i == 2) throw std::runtime_error("two");
  return 10 + i;
}

TEST(Hooks, AreCalledAroundEveryItem) {
  runtime runtime({.threads = 2});
  noting hooks;
  auto kept = from(numbers{2}) | map([](int i) { return 10 + i; }, {.name = "add"}) |
              filter([](int i) { return i > 10; }, {.name = "big"}) |
              flat_map([](int i) { return std::vector<int>{i, i}; }, {.name = "twice"});
  EXPECT_THAT(collect(runtime, kept, {.hooks = &hooks}), ElementsAre(11, 11));
  EXPECT_THAT(hooks.items(),
              UnorderedElementsAre("+add 0 @0 #1", "-add 0 @0 #1", "+add 1 @1 #1", "-add 1 @1 #1",
                                   "+big 10 @0 #1", "-big 10 @0 #1", "+big 11 @1 #1",
                                   "-big 11 @1 #1", "+twice 11 @0-1 #1", "-twice 11 @0-1 #1"));
}

TEST(Hooks, SeeFailuresWhateverBecomesOfThem) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 3u}) {
    noting hooks;
    map_options options{
        .concurrency = concurrency, .retry = {.attempts = concurrency, .pause = {}}, .name = "add"};
    options.on_error = on_error::skip;
    collect(runtime, from(numbers{3}) | map(refuse_two, options), {.hooks = &hooks});
    for (unsigned attempt = 1; attempt <= concurrency; ++attempt)
      EXPECT_THAT(hooks.items(), Contains("-add 2 @2 #" + std::to_string(attempt) + " two"));
    EXPECT_THAT(hooks.items(), SizeIs(4 + 2 * concurrency));
  }
}

// Writes the number that a sample's key is.
struct key_writer {
  tensor_spec spec() const { return {element_type::i32, {1}}; }
  void operator()(const sample& in, const tensor& slot) const {
    *slot.data<std::int32_t>() = refuse_two(std::stoi(in.key()));
  }
};

TEST(Hooks, AreCalledAroundEveryItemOfABatch) {
  runtime runtime({.threads = 2});
  noting hooks;
  auto samples = from(numbers{3}) | map([](int i) { return sample(std::to_string(i), i); },
                                        {.concurrency = 2, .name = "name"});
  collect(runtime, samples | batch_into(key_writer(), {.size = 2, .name = "write"}),
          {.on_error = on_error::skip, .hooks = &hooks});
  EXPECT_THAT(hooks.items(),
              IsSupersetOf({"+write 0 @0 #1", "-write 0 @0 #1", "+write 1 @1 #1", "-write 1 @1 #1",
                            "+write 2 @2 #1", "-write 2 @2 #1 two"}));
  EXPECT_THAT(hooks.items(), SizeIs(12));
}

TEST(Hooks, AreCalledAroundEveryBatchThatBecomesATensor) {
  runtime runtime({.threads = 2});
  auto sequences = from(std::vector<std::vector<int>>{{1}, {2, 3}, {4}}) | batch(2);
  auto calls_of = [&](const auto& what) {
    noting hooks;
    collect(runtime, what, {.hooks = &hooks});
    return hooks.items();
  };
  EXPECT_THAT(calls_of(sequences | pad()),
              UnorderedElementsAre("+pad  @0-1 #1", "-pad  @0-1 #1", "+pad  @2 #1", "-pad  @2 #1"));
  EXPECT_THAT(calls_of(sequences | pack()), UnorderedElementsAre("+pack  @0-1 #1", "-pack  @0-1 #1",
                                                                 "+pack  @2 #1", "-pack  @2 #1"));
}

TEST(Hooks, SeeThatAnItemIsLeftOfWhichNotAllPartsAreWanted) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 2u}) {
    noting hooks;
    auto endless = flat_map([](int) { return count_to(-1); },
                            {.concurrency = concurrency, .buffer = 2, .name = "endless"});
    EXPECT_THAT(collect(runtime, from(numbers{2}) | endless | take(3), {.hooks = &hooks}),
                ElementsAre(0, 1, 2));
    {
      auto items = runtime.run(from(numbers{2}) | endless, {.hooks = &hooks});
      EXPECT_EQ(items.wait_next(), 0);
    }
    auto told = hooks.items();
    EXPECT_THAT(told, Contains("-endless 0 @0 #1").Times(2));
    EXPECT_EQ(std::ranges::count(told, '+', [](auto& line) { return line[0]; }),
              std::ranges::count(told, '-', [](auto& line) { return line[0]; }));
  }
}

TEST(Hooks, AreCalledAroundEveryStage) {
  runtime runtime({.threads = 2});
  noting hooks;
  auto doubled = from(std::vector<int>{1, 2}) |
                 map([](int i) { return 2 * i; }, {.name = "double"}) | prefetch(2);
  collect(runtime, doubled, {.hooks = &hooks});
  EXPECT_THAT(hooks.stages(), UnorderedElementsAre("+source", "-source", "+double", "-double",
                                                   "+prefetch", "-prefetch"));
}

TEST(Hooks, SeeAStageThatFailsAndOneThatIsLeft) {
  runtime runtime({.threads = 2});
  noting hooks;
  auto failing =
      from(numbers{5}) | map(refuse_two, {.concurrency = 1, .name = "add"}) | prefetch(1);
  EXPECT_THROW(collect(runtime, failing, {.hooks = &hooks}), stage_error);
  EXPECT_THAT(hooks.stages(), IsSupersetOf({"-source", "-add add (2): two"}));
  noting others;
  {
    auto items = runtime.run(from(numbers{-1}) | filter([](int) { return true; }, {.name = "all"}),
                             {.hooks = &others});
    items.wait_next();
  }
  // Whether a stage is stopped or no longer asked is a matter of time.
  for (auto stage : {"source", "all"}) {
    EXPECT_THAT(others.stages(), Contains("+" + std::string(stage)));
    EXPECT_THAT(others.stages(), Contains(StartsWith("-" + std::string(stage))));
  }
}

// Throws in one of its functions.
class throwing : public run_hooks {
 public:
  enum function { enters_stage, leaves_stage, enters_item, leaves_item };
  explicit throwing(function where) : where_(where) {}

 private:
  void enter_stage(std::string_view) override { throw_in(enters_stage); }
  void leave_stage(std::string_view, const std::exception_ptr&) override { throw_in(leaves_stage); }
  void enter_item(const item_call&) override { throw_in(enters_item); }
  void leave_item(const item_call&, const std::exception_ptr&) override { throw_in(leaves_item); }
  void throw_in(function here) const {
    if (here == where_) throw std::domain_error("hook");
  }

  function where_;
};

TEST(Hooks, WhatOneThrowsEndsTheRunAndReachesTheConsumer) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 4u})
    for (auto where : {throwing::enters_stage, throwing::leaves_stage, throwing::enters_item,
                       throwing::leaves_item}) {
      throwing hooks(where);
      auto doubled = from(numbers{where == throwing::leaves_stage ? 10 : -1}) |
                     map([](int i) { return 2 * i; }, {.concurrency = concurrency}) | prefetch(2);
      EXPECT_THAT([&] { collect(runtime, doubled, {.hooks = &hooks}); },
                  ThrowsMessage<std::domain_error>("hook"))
          << where;
    }
}

TEST(Hooks, ThatThrowDoNotHoldUpARunThatIsLeft) {
  runtime runtime({.threads = 2});
  for (int round = 0; round < 50; ++round)
    for (auto where : {throwing::enters_stage, throwing::leaves_stage, throwing::enters_item,
                       throwing::leaves_item}) {
      throwing hooks(where);
      auto items = runtime.run(from(numbers{-1}) | map([](int i) { return i; }) | prefetch(2),
                               {.hooks = &hooks});
      test::pause(round);
    }
}

}  // namespace lade
