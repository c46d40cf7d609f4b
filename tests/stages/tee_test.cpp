#include <lade/batch.hpp>
#include <lade/chain.hpp>
#include <lade/channel.hpp>
#include <lade/cut.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/route.hpp>
#include <lade/route_batches.hpp>
#include <lade/run.hpp>
#include <lade/scope.hpp>
#include <lade/shuffle.hpp>
#include <lade/tee.hpp>
#include <lade/this_context.hpp>
#include <lade/through.hpp>

#include "../support/later.hpp"
#include "../support/pipelines.hpp"
#include "../support/resume.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace lade::tee_test {

using namespace test;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::ThrowsMessage;
using pair_of_ints = std::tuple<int, int>;
using ints = std::vector<int>;

static int itself(int i) { return i; }
static int negative(int i) { return -i; }
static std::string text(int i) { return std::to_string(i); }
static int refuse(int i) { throw std::runtime_error("bad " + std::to_string(i)); }
static bool never(int) { return false; }
static int parity(int i) { return i % 2; }

TEST(Tee, YieldsATupleOfOneResultOfEachPath) {
  for (unsigned threads : {1u, 3u})
    for (unsigned concurrency : {1u, 4u}) {
      runtime runtime({.threads = threads});
      auto all = from(numbers{100}) | tee(map(itself, {.concurrency = concurrency}), map(text),
                                          map(negative, {.concurrency = concurrency}));
      auto rows = collect(runtime, all);
      ASSERT_THAT(rows, SizeIs(100));
      for (int i = 0; i < 100; ++i)
        EXPECT_EQ(rows[static_cast<std::size_t>(i)], std::tuple(i, std::to_string(i), -i));
    }
}

TEST(Tee, OfOnePathAndOfNoItems) {
  runtime runtime({.threads = 2});
  EXPECT_THAT(collect(runtime, from(numbers{2}) | tee(map(negative))),
              ElementsAre(std::tuple(0), std::tuple(-1)));
  EXPECT_THAT(collect(runtime, from(numbers{0}) | tee(chain(), chain())), IsEmpty());
}

TEST(Tee, EveryPathHasASeparateCopy) {
  runtime runtime({.threads = 3});
  auto grow = map([](std::string s) { return std::move(s) + " and more"; });
  auto words = from(std::vector<std::string>{"one", "two"});
  EXPECT_THAT(collect(runtime, words | tee(grow, chain(), grow)),
              ElementsAre(std::tuple("one and more", "one", "one and more"),
                          std::tuple("two and more", "two", "two and more")));
}

TEST(Tee, PathsMayBeChainsRoutesAndTeesOfAnyDepth) {
  runtime runtime({.threads = 3});
  auto deep = chain(map(negative), chain(chain(), chain(map(negative), map(text))));
  auto inner = tee(chain(), tee(map(negative), route([](int) { return 0; }, map(itself))));
  using row = std::tuple<std::string, std::tuple<int, std::tuple<int, int>>>;
  auto rows = collect(runtime, from(numbers{200}) | tee(deep, inner));
  ASSERT_THAT(rows, SizeIs(200));
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(rows[static_cast<std::size_t>(i)], row(std::to_string(i), {i, {-i, i}}));
}

TEST(Tee, PathsWorkBesideEachOther) {
  runtime runtime({.threads = 2});
  gate both;
  auto meet = map(
      [&](int i) {
        both.pass();
        return i;
      },
      {.concurrency = 1});
  auto items = runtime.run(from(numbers{1}) | tee(meet, meet));
  both.wait_for(2);
  both.open();
  EXPECT_EQ(items.wait_next(), std::tuple(0, 0));
}

TEST(Tee, EndsWithThePathThatEndsFirst) {
  runtime runtime({.threads = 3});
  for (auto behind : {1u, 4u}) {
    auto three = chain(take(3), map(negative, {.concurrency = behind}));
    EXPECT_THAT(collect(runtime, from(numbers{-1}) | tee(map(itself), three)),
                ElementsAre(pair_of_ints(0, 0), pair_of_ints(1, -1), pair_of_ints(2, -2)));
    EXPECT_THAT(collect(runtime, from(numbers{-1}) | tee(three, map(itself))), SizeIs(3));
    EXPECT_THAT(collect(runtime, from(numbers{-1}) | tee(three, take(2), take(5))), SizeIs(2));
  }
  EXPECT_THAT(collect(runtime, from(numbers{-1}) | tee(chain(), repeat(0))), IsEmpty());
}

TEST(Tee, APathThatWouldTakeItsItemsTwiceIsRefused) {
  runtime runtime({.threads = 2});
  EXPECT_THAT([&] { collect(runtime, from(numbers{3}) | tee(repeat(2), chain())); },
              ThrowsMessage<stage_error>(HasSubstr("tee: open path 0: it takes its items twice")));
}

template <class Stage>
static std::string failure_of(runtime& where, const Stage& stage) {
  try {
    collect(where, from(numbers{-1}) | stage);
  } catch (const stage_error& failure) {
    return failure.what();
  }
  return "none";
}

// A path may drop so many items before its first result, and no more.
TEST(Tee, ItsBufferEvensOutWhatAPathDrops) {
  for (unsigned threads : {1u, 3u})
    for (unsigned concurrency : {1u, 2u, 5u})
      for (int buffer = 1; buffer <= 4; ++buffer) {
        runtime runtime({.threads = threads});
        auto work = map(itself, {.concurrency = concurrency});
        auto dropping = [&](int count) {
          return chain(work, filter([count](int i) { return i >= count; }), work);
        };
        tee_options options{.buffer = static_cast<std::size_t>(buffer)};
        for (int round = 0; round < 10; ++round) {
          auto rows = collect(
              runtime, from(numbers{50}) | tee(options, work, dropping(buffer - 1), prefetch(2)));
          ASSERT_THAT(rows, SizeIs(51 - buffer));
          EXPECT_EQ(rows.back(), std::tuple(50 - buffer, 49, 50 - buffer));
          ASSERT_THAT(failure_of(runtime, tee(options, work, dropping(buffer), prefetch(2))),
                      HasSubstr("take a result of path 1"));
        }
      }
}

TEST(Tee, APathThatDropsMoreThanItsBufferIsNamed) {
  for (unsigned threads : {1u, 3u}) {
    runtime runtime({.threads = threads});
    auto why = [](const char* waits, const char* full) {
      return std::string("tee: take a result of path ") + waits +
             ": the path needs another item, but the result queue of path " + full +
             "; raise tee_options::buffer";
    };
    EXPECT_EQ(failure_of(runtime, tee({.buffer = 4}, map(itself), filter(never))),
              why("1", "0 is full (buffer: 4)"));
    EXPECT_THAT(failure_of(runtime, tee({.buffer = 0}, filter(never), chain(), take(2))),
                AnyOf(why("0", "1 is full (buffer: 1)"), why("0", "2 is full (buffer: 1)")));
    EXPECT_THAT(failure_of(runtime, tee(chain(), batch(100))), HasSubstr("a result of path 1"));
  }
}

static async_generator<int> drop_all(async_generator<int> in) {
  while (auto* item = co_await in.next())
    if (*item < 0) co_yield *item;
}

// Whatever works beside the generators of a path, and however deep.
TEST(Tee, NoPathThatDropsMoreThanItsBufferHangs) {
  for (unsigned threads : {1u, 4u}) {
    runtime runtime({.threads = threads});
    auto fails = [&](auto dropping) {
      auto why = HasSubstr("raise tee_options::buffer");
      EXPECT_THAT(failure_of(runtime, tee({.buffer = 3}, dropping, chain())), why);
      EXPECT_THAT(failure_of(runtime, tee({.buffer = 3}, map(itself), prefetch(4), dropping)), why);
    };
    for (int round = 0; round < 20; ++round) {
      fails(chain(map(itself, {.concurrency = 4}), filter(never)));
      fails(chain(map(itself, {.concurrency = 4}), through(drop_all), prefetch(2)));
      fails(chain(prefetch(5), filter(never), map(itself), batch(2)));
      fails(map([](int i) { return i < 0 ? std::optional(i) : std::nullopt; }));
      fails(chain(route(parity, prefetch(2), map(itself)), filter(never), map(itself)));
      fails(route(parity, chain(map(itself), filter(never)), filter(never)));
      // An inner tee that would wait for more items than come, before its own buffer is full.
      fails(tee({.buffer = 100}, chain(map(itself), filter(never)), map(itself)));
      fails(tee({.buffer = 100}, prefetch(2), tee({.buffer = 50}, filter(never), map(itself))));
      fails(chain(map(itself), tee({.buffer = 1}, filter(never), map(itself)), prefetch(3)));
      fails(chain(batch(2), route_batches(parity, {.buffer = 100}, chain(), chain()),
                  filter([](const ints&) { return false; })));
    }
  }
}

// The queue of the other path's results has been full and taken from before.
TEST(Tee, APathThatDropsEverythingFromSomeItemOnIsNamed) {
  for (unsigned threads : {1u, 2u}) {
    runtime runtime({.threads = threads});
    for (std::size_t buffer : {7u, 16u, 100u})
      for (int last = 40; last < 60; ++last) {
        auto dropping = filter([last](int i) { return i < last; });
        EXPECT_THAT(failure_of(runtime, tee({.buffer = buffer}, map(itself), dropping)),
                    HasSubstr("raise tee_options::buffer"));
      }
  }
}

// In completion order all items share a branch, which stays in the stage until its end.
TEST(Tee, SeesThatAFlatMapInItsPathHasNothingInFlight) {
  runtime runtime({.threads = 2});
  for (auto order : {item_order::input, item_order::completion}) {
    auto few = flat_map([](int i) { return i % 10 == 0 ? ints{i} : ints(); },
                        {.concurrency = 3, .order = order});
    EXPECT_THAT(failure_of(runtime, tee({.buffer = 2}, few, map(itself))),
                HasSubstr("raise tee_options::buffer"));
  }
}

// Drops the first items, so many as the buffer evens out.
TEST(Tee, DoesNotMistakeABusyPathForAnIdleOne) {
  auto seed = new_seed();
  for (std::uint64_t i = 0; i < 300; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    runtime runtime({.threads = static_cast<unsigned>(1 + draw.below(4))});
    auto concurrency = [&] { return static_cast<unsigned>(1 + draw.below(6)); };
    auto buffer = 1 + draw.below(5);
    auto lead = static_cast<int>(buffer) - 1;
    auto slow = map(
        [](int item) {
          pause(item % 7);
          return item;
        },
        {.concurrency = concurrency()});
    auto late = chain(slow, filter([lead](int item) { return item >= lead; }), slow);
    auto inner = route(parity, slow, map(itself, {.concurrency = concurrency()}));
    auto plain = chain(slow, tee({.buffer = buffer}, late, prefetch(concurrency())));
    auto rows =
        collect(runtime, from(numbers{60}) | tee({.buffer = 2 * buffer}, late, inner, plain, slow));
    ASSERT_THAT(rows, SizeIs(60 - lead));
  }
}

static task<int> pass_when_set(event& opened, int i) {
  co_await opened;
  co_return i;
}

// A coroutine that has its items taken by a child.
static task<> take_ahead(async_generator<int>& in, channel<int>& ahead, std::atomic<int>& taken) {
  while (auto* item = co_await in.next()) {
    ++taken;
    co_await ahead.push(*item);
  }
  ahead.close();
}
static async_generator<int> work_ahead(async_generator<int> in,
                                       std::reference_wrapper<event> opened,
                                       std::reference_wrapper<std::atomic<int>> taken) {
  channel<int> ahead(100);
  scope children(co_await this_context());
  children.start(take_ahead(in, ahead, taken));
  while (auto item = co_await ahead.pop()) {
    co_await opened.get();
    co_yield *item;
  }
  co_await children.join();
}

TEST(Tee, WaitsForAPathThatIsOnlySlow) {
  for (unsigned threads : {1u, 3u}) {
    runtime runtime({.threads = threads});
    auto check = [&](auto make_slow) {
      event opened;
      std::atomic<int> taken = 0;
      auto items =
          runtime.run(from(numbers{200}) | tee({.buffer = 4}, make_slow(opened, taken), chain()));
      wait_until([&] { return taken >= 4; });
      pause(1000);
      opened.set();
      EXPECT_THAT(collect(items), SizeIs(200));
    };
    check([](event& opened, std::atomic<int>& taken) {
      return map([&](int i) {
        ++taken;
        return pass_when_set(opened, i);
      });
    });
    check([](event& opened, std::atomic<int>& taken) {
      return chain(map([&](int i) { return ++taken, i; }), prefetch(20),
                   map([&](int i) { return pass_when_set(opened, i); }, {.concurrency = 2}));
    });
    check([](event& opened, std::atomic<int>& taken) {
      return through(work_ahead, {}, std::ref(opened), std::ref(taken));
    });
  }
}

TEST(Tee, HoldsNoMoreItemsThanItsBuffers) {
  runtime runtime({.threads = 3});
  std::atomic<int> pulled = 0;
  auto counted = map([&](int i) { return ++pulled, i; }, {.concurrency = 1});
  auto items = runtime.run(from(numbers{-1}) | counted | tee({.buffer = 3}, chain(), chain()));
  for (int i = 1; i <= 100; ++i) {
    items.wait_next();
    pause(10);
    EXPECT_LE(pulled, i + 3 + 1 + 3 + 1 + 4);  // before a path, in it, behind it, and ready
  }
}

TEST(Tee, AFailureInAPathIsReportedAfterEarlierTuples) {
  runtime runtime({.threads = 3});
  auto bad = map([](int i) { return i == 7 ? refuse(i) : i; }, {.name = "refuse"});
  for (int round = 0; round < 50; ++round) {
    auto items = runtime.run(from(numbers{-1}) | tee(chain(), bad));
    for (int i = 0; i < 7; ++i) EXPECT_EQ(items.wait_next(), pair_of_ints(i, i));
    EXPECT_THAT([&] { items.wait_next(); }, ThrowsMessage<stage_error>("refuse (7): bad 7"));
  }
}

TEST(Tee, AFailureInAPathMayBeSkipped) {
  runtime runtime({.threads = 3});
  auto bad = map([](int i) { return i == 1 ? refuse(i) : i; });
  auto rows = collect(runtime, from(numbers{3}) | tee(chain(), bad), {.on_error = on_error::skip});
  EXPECT_THAT(rows, ElementsAre(pair_of_ints(0, 0), pair_of_ints(1, 2)));
}

TEST(Tee, DeliversItemsBeforeAFailureOfTheSource) {
  runtime runtime({.threads = 3});
  auto failing = from(numbers{-1}) | map([](int i) { return i < 50 ? i : refuse(i); },
                                         {.concurrency = 1, .name = "refuse"});
  for (int round = 0; round < 50; ++round) {
    auto items = runtime.run(failing | tee(map(itself), prefetch(3)));
    for (int i = 0; i < 50; ++i) EXPECT_EQ(items.wait_next(), pair_of_ints(i, i));
    EXPECT_THAT([&] { items.wait_next(); }, ThrowsMessage<stage_error>("refuse (50): bad 50"));
    EXPECT_THAT(items.failures(), SizeIs(1));
  }
}

struct stubborn {
  explicit stubborn(int number) : i(number) {}
  stubborn(const stubborn& other) : i(other.i) {
    if (i == 3) throw std::runtime_error("no copy of 3");
  }
  stubborn(stubborn&&) = default;
  stubborn& operator=(stubborn&&) = default;
  int i;
};

TEST(Tee, AnItemThatCannotBeCopiedAfterAllFailsTheRun) {
  runtime runtime({.threads = 2});
  auto all = from(numbers{9}) | map([](int i) { return stubborn(i); }) | tee(chain(), chain());
  EXPECT_THAT([&] { collect(runtime, all); }, ThrowsMessage<stage_error>("tee: no copy of 3"));
}

TEST(Tee, CanBeLeftAndStoppedAtAnyTime) {
  runtime runtime({.threads = 3});
  auto all = from(numbers{-1}) | tee({.buffer = 2}, map(itself, {.concurrency = 2}), chain(),
                                     tee(prefetch(2), chain()));
  for (int count = 0; count < 100; ++count) {
    auto items = runtime.run(all);
    for (int i = 0; i < count; ++i) EXPECT_TRUE(items.wait_next());
    if (count % 2) continue;
    items.stop();
    EXPECT_THAT(
        [&] {
          while (items.wait_next()) {}
        },
        ThrowsMessage<error>("run: stopped"));
  }
}

TEST(Tee, SupportsConcurrentRuns) {
  runtime runtime({.threads = 3});
  auto all = from(numbers{500}) | tee(map(itself), map(negative));
  auto one = runtime.run(all);
  auto other = runtime.run(all);
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(one.wait_next(), pair_of_ints(i, -i));
    EXPECT_EQ(other.wait_next(), pair_of_ints(i, -i));
  }
}

TEST(Tee, StatisticsNameItAndThenItsPaths) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(numbers{10}) |
                           tee({.name = "both"}, map(itself, {.name = "a"}),
                               chain(map(itself, {.name = "b"}), map(itself, {.name = "c"}))));
  collect(items);
  auto stages = items.statistics().stages;
  std::vector<std::string> names;
  for (auto& stage : stages) names.push_back(stage.name);
  EXPECT_THAT(names, ElementsAre("source", "both", "a", "b", "c"));
  EXPECT_EQ(stages[1].in, 10u);
  EXPECT_EQ(stages[1].out, 10u);
}

TEST(Tee, PathsDrawDifferentRandomNumbers) {
  runtime runtime({.threads = 2});
  auto draw = map([](int, random numbers) { return static_cast<int>(numbers.below(1 << 30)); });
  auto rows = collect(runtime, from(numbers{20}) | tee(draw, draw));
  for (auto& [one, other] : rows) EXPECT_NE(one, other);
  EXPECT_EQ(collect(runtime, from(numbers{20}) | tee(draw, draw)), rows);
}

static async_generator<std::string> origins(async_generator<pair_of_ints> in) {
  while (co_await in.next()) {
    auto positions = to_string(in.origin());
    co_yield positions;
  }
}

TEST(Tee, TuplesHaveTheLineageOfAllTheirParts) {
  runtime runtime({.threads = 3});
  auto odd = filter([](int i) { return i % 2 == 1; });
  auto all = from(numbers{8}) | tee(chain(), odd) | through(origins);
  EXPECT_THAT(collect(runtime, all), ElementsAre("0-1", "1-3", "2, 4-5", "3, 6-7"));
}

TEST(Tee, ARunThatIsInterruptedDeliversEverythingOnce) {
  auto seed = new_seed();
  for (std::uint64_t i = 0; i < 60; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    runtime runtime({.threads = static_cast<unsigned>(1 + draw.below(4))});
    auto size = static_cast<int>(draw.below(150));
    auto make = [&] {
      auto concurrency = static_cast<unsigned>(1 + draw.below(5));
      auto step = map(same_later<int>, {.concurrency = concurrency});
      auto no_fives = filter([](int item) { return item % 5 != 0; });
      return from(up_to(size)) | shuffle({.seed = seed}) |
             tee({.buffer = 1 + draw.below(5)}, chain(step, no_fives), chain(no_fives, step));
    };
    auto whole = collect(runtime, make());
    ASSERT_EQ(with_interruptions(runtime, make, 1 + draw.below(30)), whole);
  }
}

TEST(Tee, HasNoStateOncePathsMakeResultsOfUnlikeParts) {
  runtime runtime({.threads = 2});
  auto parts = from(up_to(2)) | flat_map([](int i) { return ints{3 * i, 3 * i + 1, 3 * i + 2}; });
  auto items = runtime.run(parts | tee(chain(), filter([](int i) { return i != 1; })));
  for (int i = 0; i < 4; ++i) items.wait_next();
  EXPECT_THAT([&] { items.state(); },
              ThrowsMessage<error>(HasSubstr("the paths of tee make results of unlike items")));
}

TEST(Tee, HasNoStateOncePathsMakeResultsOfUnlikeItems) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(up_to(10)) | tee(chain(), filter([](int i) { return i != 3; })));
  for (int i = 0; i < 10; ++i) items.wait_next();
  EXPECT_THAT([&] { items.state(); },
              ThrowsMessage<error>(HasSubstr("the paths of tee make results of unlike items")));
}

}  // namespace lade::tee_test
