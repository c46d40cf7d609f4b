#include <lade/async_generator.hpp>
#include <lade/batch.hpp>
#include <lade/cache.hpp>
#include <lade/cut.hpp>
#include <lade/epochs.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/route.hpp>
#include <lade/run.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace lade::epochs_test {

using namespace test;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::ThrowsMessage;

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

TEST(Epochs, DropTheLastBatchOfEach) {
  runtime runtime({.threads = 2});
  int number = 0;
  for (auto& epoch : epochs(runtime, shuffled(50) | batch({.size = 8, .drop_last = true}), 3)) {
    for (auto& batch : epoch) EXPECT_EQ(batch.size(), 8u);
    EXPECT_EQ(epoch.statistics().delivered, 6u);
    ++number;
  }
  EXPECT_EQ(number, 3);
}

TEST(Epochs, MayMergeWithOtherWeightsInEach) {
  runtime runtime({.threads = 2});
  merge_options options{.order = merge_order::weighted};
  options.weights_of = [](std::uint64_t epoch) {
    return epoch % 2 == 0 ? std::vector<double>{1, 0} : std::vector<double>{0, 1};
  };
  std::vector<pipeline<int>> inputs{from(std::vector{1, 2}), from(std::vector{10, 20})};
  std::vector<std::vector<int>> seen;
  for (auto& epoch : epochs(runtime, merge(inputs, options), 3)) seen.push_back(collect(epoch));
  EXPECT_EQ(seen, (std::vector<std::vector<int>>{{1, 2}, {10, 20}, {1, 2}}));
}

TEST(Epochs, ACountOfZeroYieldsNoEpoch) {
  runtime runtime({.threads = 1});
  epochs none(runtime, shuffled(3), 0);
  EXPECT_EQ(none.next(), nullptr);
  EXPECT_EQ(none.next(), nullptr);
}

// As many items as the epoch's size says; those of epoch 3 are 300, 301, ...
static async_generator<int> next_of(const std::vector<int>& sizes, std::atomic<int>& opened) {
  int epoch = opened++;
  for (int i = 0; i < sizes[static_cast<std::size_t>(epoch)]; ++i) {
    int item = 100 * epoch + i;
    co_yield item;
  }
}

TEST(Epochs, MayHaveNoItemsOrOne) {
  runtime runtime({.threads = 2});
  const std::vector<int> sizes{0, 1, 0, 0, 1, 3, 0};
  for (unsigned concurrency : {1u, 4u}) {
    std::atomic<int> opened = 0;
    auto pairs = from([&] { return next_of(sizes, opened); }) |
                 map([](int i) { return i; }, {.concurrency = concurrency}) | batch(2);
    std::vector<std::vector<std::vector<int>>> seen;
    for (auto& epoch : epochs(runtime, pairs, sizes.size())) {
      seen.push_back(collect(epoch));
      EXPECT_FALSE(epoch.wait_next());
    }
    EXPECT_THAT(seen, ElementsAre(IsEmpty(), ElementsAre(ElementsAre(100)), IsEmpty(), IsEmpty(),
                                  ElementsAre(ElementsAre(400)),
                                  ElementsAre(ElementsAre(500, 501), ElementsAre(502)), IsEmpty()));
  }
}

TEST(Epochs, OfAListMayHaveNoItemsOrOne) {
  runtime runtime({.threads = 2});
  for (int size : {0, 1}) {
    int number = 0;
    for (auto& epoch : epochs(runtime, shuffled(size), 4)) {
      EXPECT_EQ(collect(epoch), up_to(size));
      ++number;
    }
    EXPECT_EQ(number, 4);
  }
}

static async_generator<int> count_from(int first, int count, event& started) {
  started.set();
  for (int i = first; i < first + count; ++i) {
    int item = i;
    co_yield item;
  }
}

static task<int> pass_when_set(event& opened, int i) {
  co_await opened;
  co_return i;
}

// The slow path of an epoch waits for the source of the next.
TEST(Epochs, BehindARouteHaveTheItemsOfASlowPathAsWell) {
  constexpr int count = 5;
  constexpr int size = 8;  // so that all have room before the slow path
  runtime runtime({.threads = 2});
  std::vector<event> started(count + 1);
  started[count].set();
  int opened = 0;  // one after the other
  auto source = from([&] {
    auto epoch = static_cast<std::size_t>(opened++);
    return count_from(size * static_cast<int>(epoch), size, started[epoch]);
  });
  auto wait = [&](int i) {
    return pass_when_set(started[static_cast<std::size_t>(i / size) + 1], i);
  };
  auto routed =
      source | route([](int i) { return i % 2; }, map(wait), map([](int i) { return i; }));
  int first = 0;
  for (auto& epoch : epochs(runtime, routed | batch(3), count)) {
    std::vector<int> items;
    std::vector<std::size_t> sizes;
    for (auto& batch : epoch) {
      items.insert(items.end(), batch.begin(), batch.end());
      sizes.push_back(batch.size());
    }
    for (auto& item : items) item -= first;
    EXPECT_EQ(sorted(items), up_to(size));
    EXPECT_THAT(sizes, ElementsAre(3, 3, 2));
    first += size;
  }
  EXPECT_EQ(first, count * size);
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

TEST(Epochs, DoNotStartBeforeTheSourceOfTheLastEnds) {
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

TEST(Epochs, FindWhatTheFirstHasCached) {
  runtime runtime({.threads = 2});
  std::atomic<int> calls = 0;
  auto cached = from(numbers{50}) | map([&](int i) {
                  ++calls;
                  return i;
                }) |
                cache() | map([](int i) { return 2 * i; });
  for (auto& epoch : epochs(runtime, cached, 4, {.ready = 3}))
    EXPECT_EQ(collect(epoch).size(), 50u);
  EXPECT_EQ(calls, 50);
}

TEST(Epochs, AreReadyBehindACacheBeforeTheLastIsOver) {
  runtime runtime({.threads = 2});
  std::atomic<int> calls = 0;
  auto counted = from(numbers{6}) | cache() | map([&](int i) {
                   ++calls;
                   return i;
                 });
  epochs all(runtime, counted, 3, {.ready = 6});
  all.next();
  wait_until([&] { return calls == 12; });
  all.next();
  wait_until([&] { return calls == 18; });
}

TEST(Epochs, StartWhenAllSourcesOfTheLastHaveEnded) {
  runtime runtime({.threads = 3});
  gate slow;
  std::atomic<bool> over = false;
  std::atomic<int> early = 0;
  auto wait = [&](int i) {
    slow.pass();
    return i;
  };
  auto look = [&](int i) {
    if (!over) ++early;
    return i;
  };
  std::vector<pipeline<int>> inputs{from(numbers{4}) | map(look, {.concurrency = 1}),
                                    from(numbers{3}) | map(wait, {.concurrency = 1})};
  auto both = merge(inputs, {.order = merge_order::arrival});
  epochs all(runtime, both, 2, {.ready = 20});
  all.next();
  slow.wait_for(1);
  wait_until([&] { return early == 4; });
  pause(3000);
  over = true;
  slow.open();
  EXPECT_EQ(collect(*all.next()).size(), 7u);
  EXPECT_EQ(early, 4);
}

static async_generator<int> count_opened(std::atomic<int>& opened) {
  int round = ++opened;
  for (int i = 0; i < 500; ++i) co_yield round;
}

TEST(Epochs, StartAfterTheLastRoundOfARepeat) {
  runtime runtime({.threads = 2});
  std::atomic<int> opened = 0;
  auto rounds = from([&] { return count_opened(opened); }) | repeat(3);
  int epoch = 0;
  for (auto& items : epochs(runtime, rounds, 4, {.ready = 2000})) {
    std::vector<int> expected;
    for (int round = 1; round <= 3; ++round)
      expected.insert(expected.end(), 500, 3 * epoch + round);
    EXPECT_EQ(collect(items), expected);
    ++epoch;
  }
}

TEST(Epochs, AnEpochThatIsLeftEarlyIsFollowedByTheNext) {
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

TEST(Epochs, ContinueAfterOneThatFails) {
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

// Five items, or as many as come before a failure.
static async_generator<int> five_or_fail(int before_failure) {
  for (int i = 0; i < 5; ++i) {
    if (i == before_failure) throw std::runtime_error("no disk");
    int item = i;
    co_yield item;
  }
}

TEST(Epochs, ContinueAfterOneWhoseSourceFails) {
  runtime runtime({.threads = 2});
  const std::vector<int> before_failure{5, 3, 5, 0, 4, 5};
  for (unsigned concurrency : {1u, 4u}) {
    std::size_t opened = 0;  // one after the other
    auto failing = from([&] { return five_or_fail(before_failure[opened++]); }) |
                   map([](int i) { return i; }, {.concurrency = concurrency});
    for (auto& epoch : epochs(runtime, failing, before_failure.size())) {
      auto expected = before_failure[epoch.epoch()];
      std::vector<int> given;
      std::string failure;
      try {
        while (auto item = epoch.wait_next()) given.push_back(*item);
      } catch (const stage_error& e) {
        failure = e.what();
      }
      EXPECT_EQ(given, up_to(expected));
      EXPECT_EQ(failure, expected < 5 ? "source: no disk" : "");
      EXPECT_FALSE(epoch.wait_next());
    }
    EXPECT_EQ(opened, before_failure.size());
  }
}

TEST(Epochs, AStopEndsOneEpochOnly) {
  constexpr int size = 1000;  // more than are ever ready
  runtime runtime({.threads = 2});
  auto items = from(numbers{size}) | map([](int i) { return i; });
  auto stop = [](run<int>& epoch) {
    epoch.stop();
    EXPECT_THAT([&] { collect(epoch); }, ThrowsMessage<error>("run: stopped"));
    EXPECT_FALSE(epoch.wait_next());
  };
  epochs all(runtime, items, 5);
  stop(*all.next());
  auto* whole = all.next();
  EXPECT_EQ(collect(*whole), up_to(size));
  whole->stop();
  auto* started = all.next();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(started->wait_next(), i);
  stop(*started);
  EXPECT_EQ(collect(*all.next()), up_to(size));
  EXPECT_EQ(collect(*all.next()), up_to(size));
  EXPECT_EQ(all.next(), nullptr);
}

TEST(Epochs, HaveTheSeedOfTheStateThatTheyResumeFrom) {
  runtime where({.threads = 2});
  state saved;
  {
    auto before = where.run(from(test::up_to(6)), {.epoch = 2, .seed = 77});
    before.wait_next();
    saved = before.state();
  }
  std::vector<std::uint64_t> seeds;
  for (auto& epoch : epochs(where, from(test::up_to(6)), 3, {.state = saved})) {
    collect(epoch);
    seeds.push_back(epoch.state().seed);
  }
  EXPECT_THAT(seeds, ElementsAre(77, 77, 77));
}

TEST(Epochs, ResumeFromAState) {
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

}  // namespace lade::epochs_test
