#include <lade/batch.hpp>
#include <lade/cut.hpp>
#include <lade/epochs.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>

#include "support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace lade {

using namespace test;
using testing::ElementsAre;

static auto shuffled(int size) {
  std::vector<int> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return from(all) | shuffle({.seed = 3}) | map([](int i) { return i; });
}

TEST(Epochs, AreTheRunsOfThePipelineOneAfterTheOther) {
  runtime runtime({.threads = 2});
  auto pipeline = shuffled(50) | batch(8);
  std::uint64_t number = 5;
  for (auto& epoch : epochs(runtime, pipeline, 4, {.epoch = 5})) {
    EXPECT_EQ(epoch.epoch(), number);
    EXPECT_EQ(collect(epoch), collect(runtime, pipeline, {.epoch = number}));
    EXPECT_EQ(epoch.statistics().delivered, 7u);
    ++number;
  }
  EXPECT_EQ(number, 9u);
}

TEST(Epochs, OfWhichThereAreNoneAreNone) {
  runtime runtime({.threads = 1});
  epochs none(runtime, shuffled(3), 0);
  EXPECT_EQ(none.next(), nullptr);
  EXPECT_EQ(none.next(), nullptr);
}

TEST(Epochs, HaveTheNextReadyBeforeTheLastIsOver) {
  runtime runtime({.threads = 2});
  std::atomic<int> calls = 0;
  auto counted = from(numbers{6}) | map([&](int i) {
                   ++calls;
                   return i;
                 });
  epochs all(runtime, counted, 3, {.ready = 6});
  auto* first = all.next();
  wait_until([&] { return calls == 12; });  // nobody has asked for an item
  EXPECT_EQ(collect(*first).size(), 6u);
  auto* second = all.next();
  wait_until([&] { return calls == 18; });
  EXPECT_EQ(collect(*second).size(), 6u);
}

TEST(Epochs, DoNotBeginBeforeTheSourceOfTheLastIsOver) {
  runtime runtime({.threads = 2});
  std::atomic<int> calls = 0;
  auto counted = from(numbers{1000}) | map([&](int i) {
                   ++calls;
                   return i;
                 });
  epochs all(runtime, counted, 2);
  auto* first = all.next();
  first->wait_next();
  pause(50);
  EXPECT_LT(calls, 1000);
  EXPECT_EQ(collect(*first).size(), 999u);
}

TEST(Epochs, ThatAreLeftMakeWayForTheNext) {
  runtime runtime({.threads = 2});
  std::vector<int> lengths;
  auto endless = from(numbers{-1}) | map([](int i) { return i; });
  for (auto& epoch : epochs(runtime, endless, 3)) {
    int taken = 0;
    for (auto& item : epoch) {
      EXPECT_EQ(item, taken);
      if (++taken == 10) break;
    }
    lengths.push_back(taken);
  }
  EXPECT_THAT(lengths, ElementsAre(10, 10, 10));
}

TEST(Epochs, ThatAreAllLeftCallNothingAfterwards) {
  runtime runtime({.threads = 2});
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> gone = false;
    std::atomic<bool> late = false;
    {
      auto watched = from(numbers{7}) | map([&](int i) {
                       if (gone) late = true;
                       return i;
                     });
      epochs all(runtime, watched, 1000);
      for (int i = 0; i < round % 4; ++i) all.next();
      pause(round);
    }
    gone = true;
    pause(5);
    EXPECT_FALSE(late);
  }
}

TEST(Epochs, GoOnAfterOneThatFails) {
  runtime runtime({.threads = 2});
  auto failing = from(numbers{4}) | map([](int i, random draw) {
                   if (i == 2 && draw.below(2)) throw std::runtime_error("no");
                   return i;
                 });
  int failed = 0;
  int whole = 0;
  for (auto& epoch : epochs(runtime, failing, 40)) {
    try {
      EXPECT_EQ(collect(epoch).size(), 4u);
      ++whole;
    } catch (const stage_error&) {
      ++failed;
    }
  }
  EXPECT_EQ(failed + whole, 40);
  EXPECT_GT(failed, 0);
  EXPECT_GT(whole, 0);
}

TEST(Epochs, GoOnFromAState) {
  runtime runtime({.threads = 2});
  auto pipeline = shuffled(20);
  state saved;
  std::vector<int> before;
  for (auto& epoch : epochs(runtime, pipeline, 2, {.epoch = 3})) {
    if (epoch.epoch() == 3) continue;
    for (int i = 0; i < 7; ++i) before.push_back(*epoch.wait_next());
    saved = epoch.state();
  }
  std::vector<std::vector<int>> rest;
  for (auto& epoch : epochs(runtime, pipeline, 2, {.state = saved})) rest.push_back(collect(epoch));
  before.insert(before.end(), rest[0].begin(), rest[0].end());
  EXPECT_EQ(before, collect(runtime, pipeline, {.epoch = 4}));
  EXPECT_EQ(rest[1], collect(runtime, pipeline, {.epoch = 5}));
}

}  // namespace lade
