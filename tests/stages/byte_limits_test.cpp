// Limits in bytes of the items that wait: of prefetch, map, flat_map, merge, route, tee and the
// output queue of a run.

#include <lade/async_generator.hpp>
#include <lade/batch.hpp>
#include <lade/cache.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/detail/data/item_bytes.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/route.hpp>
#include <lade/route_batches.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/task.hpp>
#include <lade/tee.hpp>

#include "../support/pipelines.hpp"
#include "../support/seed.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace lade::byte_limits_test {

using test::numbers;
using test::up_to;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Fits four items into the limit.
static constexpr std::uint64_t limit = 4'500;
static std::string thousand_bytes(int) { return std::string(1'000, 'x'); }

// A plain function that counts its calls.
struct counted {
  std::atomic<int>& calls;
  std::string operator()(int i) const { return ++calls, thousand_bytes(i); }
};

// The items of a run with ready = 1: one is ready, and its feeder holds one.
constexpr int held_by_run = 2;

// Takes items one by one. Before each, exactly `ahead` more have been made than were taken.
static void expect_ahead(run<std::string>& items, const std::atomic<int>& made, int ahead) {
  for (int taken = 0; taken < 20; ++taken) {
    test::wait_until([&] { return made >= taken + ahead; });
    EXPECT_EQ(made, taken + ahead);
    ASSERT_TRUE(items.wait_next());
  }
}

// The same of a queue without capacity behind several inputs: each input may hold one item.
static void expect_one_ahead_of_each(run<std::string>& items, const std::atomic<int>& made,
                                     int inputs) {
  for (int taken = 0; taken < 20; ++taken) {
    test::wait_until([&] { return made >= taken + held_by_run + 1; });
    EXPECT_LE(made, taken + held_by_run + inputs);
    ASSERT_TRUE(items.wait_next());
  }
}

TEST(ByteLimits, OfPrefetchBoundItsItems) {
  runtime runtime({.threads = 2});
  std::atomic<int> made = 0;
  auto ahead =
      from(numbers{-1}) | map(counted{made}, {.concurrency = 1}) | prefetch(100, {.bytes = limit});
  auto items = runtime.run(ahead, {.ready = 1});
  expect_ahead(items, made, 4 + held_by_run);
}

TEST(ByteLimits, OfTheOutputQueueBoundWhatIsReady) {
  runtime runtime({.threads = 2});
  std::atomic<int> made = 0;
  auto items = runtime.run(from(numbers{-1}) | map(counted{made}, {.concurrency = 1}),
                           {.ready = 100, .ready_bytes = limit});
  expect_ahead(items, made, 4);
}

TEST(ByteLimits, OfAMapBoundItsResultsWithTheItemsInFlight) {
  runtime runtime({.threads = 2});
  for (auto order : {item_order::input, item_order::completion}) {
    std::atomic<int> made = 0;
    auto mapped =
        from(numbers{-1}) |
        map(counted{made}, {.concurrency = 2, .buffer = 50, .buffer_bytes = limit, .order = order});
    auto items = runtime.run(mapped, {.ready = 1});
    expect_ahead(items, made, 4 + held_by_run);
  }
}

TEST(ByteLimits, OfAMapBoundTheResultsOfTasks) {
  runtime runtime({.threads = 2});
  std::atomic<int> made = 0;
  auto later = [&](int i) -> task<std::string> {
    ++made;
    co_return thousand_bytes(i);
  };
  auto mapped = from(numbers{-1}) | map(later, {.concurrency = 3, .buffer_bytes = limit});
  auto items = runtime.run(mapped, {.ready = 1});
  expect_ahead(items, made, 4 + held_by_run);
}

TEST(ByteLimits, OfAFlatMapBoundThePartsOfEachItem) {
  runtime runtime({.threads = 2});
  std::atomic<int> made = 0;
  auto hundred_parts = [&](int) -> async_generator<std::string> {
    for (int part = 0; part < 100; ++part) {
      ++made;
      co_yield thousand_bytes(part);
    }
  };
  auto parts = from(up_to(2)) |
               flat_map(hundred_parts, {.concurrency = 2, .buffer = 50, .buffer_bytes = limit});
  auto items = runtime.run(parts, {.ready = 1});
  expect_ahead(items, made, 4 + 4 + held_by_run);
}

// Each input may exceed the limit by one item.
TEST(ByteLimits, OfAMergeByArrivalBoundItsItems) {
  runtime runtime({.threads = 2});
  std::atomic<int> made = 0;
  std::vector<pipeline<std::string>> inputs;
  for (int i = 0; i < 5; ++i)
    inputs.push_back(from(numbers{-1}) | map(counted{made}, {.concurrency = 1}));
  auto merged = merge(inputs, {.order = merge_order::arrival, .buffer_bytes = 0});
  auto items = runtime.run(merged, {.ready = 1});
  expect_one_ahead_of_each(items, made, 5);
}

// The path holds one item, and the route another, which it took to learn its path.
TEST(ByteLimits, OfARouteBoundTheItemsBeforeAPath) {
  runtime runtime({.threads = 3});
  std::atomic<int> made = 0;
  event held;
  auto wait = [&](std::string item) -> task<std::string> {
    co_await held;
    co_return item;
  };
  auto routed = from(numbers{-1}) | map(counted{made}, {.concurrency = 1}) |
                route([](const std::string&) { return 0; }, {.buffer = 50, .buffer_bytes = limit},
                      map(wait, {.concurrency = 1, .buffer = 0}), map(wait, {.concurrency = 1}));
  auto items = runtime.run(routed, {.ready = 1});
  test::wait_until([&] { return made >= 4 + 2; });
  EXPECT_EQ(made, 4 + 2);
  held.set();
  for (int taken = 0; taken < 50; ++taken) ASSERT_TRUE(items.wait_next());
}

TEST(ByteLimits, OfARouteBoundTheResultsOfItsPaths) {
  runtime runtime({.threads = 3});
  std::atomic<int> made = 0;
  auto routed =
      from(numbers{-1}) |
      route([](int i) { return i % 5; }, {.buffer_bytes = 0},
            map(counted{made}, {.concurrency = 1}), map(counted{made}, {.concurrency = 1}),
            map(counted{made}, {.concurrency = 1}), map(counted{made}, {.concurrency = 1}),
            map(counted{made}, {.concurrency = 1}));
  auto items = runtime.run(routed, {.ready = 1});
  expect_one_ahead_of_each(items, made, 5);
}

// The first path waits. The second one holds four results; the item behind them is not asked for.
TEST(ByteLimits, OfATeeBoundItsResults) {
  runtime runtime({.threads = 3});
  std::atomic<int> made = 0;
  event held;
  auto wait = [&](int i) -> task<int> {
    co_await held;
    co_return i;
  };
  auto both =
      from(numbers{-1}) | tee({.buffer = 50, .buffer_bytes = limit}, map(wait, {.concurrency = 1}),
                              map(counted{made}, {.concurrency = 1}));
  auto items = runtime.run(both, {.ready = 1});
  test::wait_until([&] { return made >= 4; });
  EXPECT_EQ(made, 4);
  held.set();
  for (int taken = 0; taken < 50; ++taken) {
    auto row = items.wait_next();
    ASSERT_TRUE(row);
    EXPECT_EQ(std::get<0>(*row), taken);
  }
}

// The first path needs 100 items for a result. 16 may wait before the other path, and four results
// behind it.
TEST(ByteLimits, OfATeeWhosePathNeedsMoreItemsThanFitEndTheRun) {
  runtime runtime({.threads = 2});
  auto last = filter([](int i) { return i == 99; });
  auto rows = from(up_to(100)) | tee({.buffer = 16, .buffer_bytes = limit}, last,
                                     map(thousand_bytes, {.concurrency = 1}));
  EXPECT_THAT([&] { test::collect(runtime, rows); },
              ThrowsMessage<error>(HasSubstr(
                  "the result queue of path 1 is full (buffer: 16, buffer_bytes: 4500); raise "
                  "tee_options::buffer or buffer_bytes")));
}

// An image whose copies release their encoded bytes when one of them is decoded.
struct encoded {
  int number = 0;
  std::shared_ptr<std::atomic<std::size_t>> held =
      std::make_shared<std::atomic<std::size_t>>(1'000);
  std::size_t bytes() const { return *held; }
};

// The bytes of results change while they wait. For item 100 a path needs two items for a result.
TEST(ByteLimits, OfATeeHoldAlsoIfTheBytesOfAResultChangeWhileItWaits) {
  runtime runtime({.threads = 2});
  auto make = [](int i) { return encoded{i}; };
  auto decode = [](encoded image) {
    *image.held = 10;
    return image;
  };
  auto not_100 = [](const encoded& image) { return image.number != 100; };
  auto rows = from(up_to(200)) | map(make, {.concurrency = 1}) |
              tee({.buffer = 100, .buffer_bytes = 20'000},
                  chain(filter(not_100), map(decode, {.concurrency = 2})), prefetch(1));
  EXPECT_EQ(test::collect(runtime, rows).size(), 199u);
}

// The limit has room for 100 small items. The path waits for its first item, which is large and
// goes past the queue.
TEST(ByteLimits, KnowTheSizeOfItemsThatGoPastAQueue) {
  runtime runtime({.threads = 3});
  std::atomic<int> made = 0;
  event held;
  auto sized = [&](int i) { return ++made, std::string(i == 0 ? 1'000 : 10, 'x'); };
  auto hold = [&](std::string item) -> task<std::string> {
    co_await held;
    co_return item;
  };
  auto routed = from(numbers{-1}) | map(sized, {.concurrency = 1}) |
                route([](const std::string&) { return 0; }, {.buffer = 50, .buffer_bytes = 1'000},
                      map(hold, {.concurrency = 1, .buffer = 0}));
  auto items = runtime.run(routed, {.ready = 1});
  test::wait_until([&] { return made >= 3; });
  held.set();
  for (int taken = 0; taken < 20; ++taken) ASSERT_TRUE(items.wait_next());
  EXPECT_LE(made, 20 + 10);  // not as many as fit by their own size
}

// A trivially copyable handle of what has a thousand bytes.
struct handle {
  std::size_t bytes() const { return 1'000; }
};
struct in_debt {
  int bytes() const { return -1; }
};
struct broken {
  std::size_t bytes() const { throw std::runtime_error("no bytes"); }
};

TEST(ByteLimits, CountTheElementsOfRangesByTheirOwnBytes) {
  EXPECT_EQ(detail::bytes_of(std::vector<handle>(3)), 3'000u);
  EXPECT_EQ(detail::bytes_of(std::vector<std::string_view>{"abc", "de"}), 5u);
  EXPECT_EQ(detail::bytes_of(std::vector<int>(3)), 3 * sizeof(int));
  EXPECT_EQ(detail::bytes_of(in_debt()), 0u);
}

TEST(ByteLimits, OfACacheAreTheOnlyReasonToAskForBytes) {
  runtime runtime({.threads = 1});
  auto items = from(up_to(5)) | map([](int) { return broken(); }, {.concurrency = 1});
  EXPECT_EQ(test::collect(runtime, items | cache()).size(), 5u);
  EXPECT_EQ(test::collect(runtime, items | cache({.bytes = 10})).size(), 5u);
}

TEST(ByteLimits, OfPathsLoseNoItemAndEndNoRun) {
  runtime runtime({.threads = 3});
  auto seed = test::new_seed();
  std::mt19937_64 draw(seed);
  auto of_size = [](int i) { return std::string(static_cast<std::size_t>(i * 7 % 50) * 20, 'x'); };
  auto size_of = [](const std::string& item) { return item.size(); };
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t bytes = draw() % 3'000;
    const std::size_t buffer = draw() % 8;
    SCOPED_TRACE(fmt::format("seed {}, round {}, {} bytes, buffer {}", seed, round, bytes, buffer));
    auto source = from(up_to(300)) | map(of_size, {.concurrency = 2});
    auto twice = [](std::string item) { return item + item; };
    auto routed = source | route([](const std::string& item) { return item.size() / 20 % 3; },
                                 {.buffer = buffer, .buffer_bytes = bytes}, map(twice),
                                 map(twice, {.concurrency = 1}), prefetch(3));
    EXPECT_EQ(test::collect(runtime, routed).size(), 300u);
    auto rows = source | tee({.buffer = buffer, .buffer_bytes = bytes}, map(twice),
                             map(size_of, {.concurrency = 1}), prefetch(3));
    std::size_t wrong = 0;
    auto all = test::collect(runtime, rows);
    for (auto& [two, one, same] : all) wrong += two.size() != 2 * one || same.size() != one;
    EXPECT_EQ(all.size(), 300u);
    EXPECT_EQ(wrong, 0u);
    auto merged = merge<std::string>({source, source, source},
                                     {.order = merge_order::arrival, .buffer_bytes = bytes});
    EXPECT_EQ(test::collect(runtime, merged).size(), 900u);
  }
}

// The first item waits for the second.
TEST(ByteLimits, OfAFlatMapLetNoItemBlockAnother) {
  runtime runtime({.threads = 2});
  for (std::uint64_t bytes : {std::uint64_t{0}, limit, detail::unlimited_bytes - 1}) {
    event second;
    auto part = [&](int i) -> async_generator<std::string> {
      if (i == 0) co_await second;
      if (i == 1) second.set();
      co_yield thousand_bytes(i);
    };
    auto parts =
        from(up_to(3)) |
        flat_map(part, {.concurrency = 3, .buffer_bytes = bytes, .order = item_order::completion});
    EXPECT_EQ(test::collect(runtime, parts).size(), 3u);
  }
}

// Every item exceeds the limit.
TEST(ByteLimits, OfLessThanAnItemLetOneItemWait) {
  runtime runtime({.threads = 2});
  std::atomic<int> made = 0;
  auto ahead =
      from(numbers{-1}) | map(counted{made}, {.concurrency = 1}) | prefetch(100, {.bytes = 0});
  auto items = runtime.run(ahead, {.ready = 1});
  expect_ahead(items, made, 1 + held_by_run);
}

TEST(ByteLimits, LoseNoItemWhereResultsFailOrAreDropped) {
  runtime runtime({.threads = 3});
  auto some = [](int i) -> std::optional<std::string> {
    if (i % 7 == 0) throw error(errc::failed, "seven");
    if (i % 3 == 0) return std::nullopt;
    return std::string(static_cast<std::size_t>(i % 50) * 20, 'x');
  };
  for (auto order : {item_order::input, item_order::completion}) {
    auto items =
        from(up_to(2'000)) |
        map(some,
            {.concurrency = 3, .buffer_bytes = 1'000, .order = order, .on_error = on_error::skip});
    std::size_t count = 0;
    for ([[maybe_unused]] auto& each : runtime.run(items, {.ready = 8, .ready_bytes = 900}))
      ++count;
    std::size_t expected = 0;
    for (int i = 0; i < 2'000; ++i) expected += i % 7 != 0 && i % 3 != 0;
    EXPECT_EQ(count, expected);
  }
}

// Ranges of elements whose bytes are unknown: one that has bytes(), and one whose elements are
// of the same type.
struct measured : std::vector<std::shared_ptr<int>> {
  std::size_t bytes() const { return 7; }
};
struct tree {
  std::vector<tree> children = {};
  auto begin() const { return children.begin(); }
  auto end() const { return children.end(); }
  std::size_t size() const { return children.size(); }
};

TEST(ByteLimits, AreAcceptedForRangesWithBytesAndRefusedForTrees) {
  runtime runtime({.threads = 1});
  auto some = from(up_to(5)) | map([](int) { return measured(); });
  EXPECT_EQ(test::collect(runtime, some | prefetch(2, {.bytes = 10})).size(), 5u);
  auto trees = from(up_to(5)) | map([](int) { return tree(); });
  EXPECT_EQ(test::collect(runtime, trees | prefetch(2)).size(), 5u);
  EXPECT_THAT([&] { trees | prefetch(2, {.bytes = 10}); },
              ThrowsMessage<error>(HasSubstr("a member bytes()")));
}

struct inexact {
  double bytes() const { return 1e3; }
};

TEST(ByteLimits, AreRefusedForBytesThatAreNoInteger) {
  auto items = from(up_to(3)) | map([](int) { return inexact(); });
  EXPECT_THAT([&] { items | prefetch(2, {.bytes = 10}); },
              ThrowsMessage<error>(HasSubstr("a member bytes(), which returns an integer")));
}

// Has no member bytes().
struct nameless {
  std::string name = {};
};

TEST(ByteLimits, AreRefusedForItemsWithoutBytes) {
  auto unknown = from(up_to(3)) | map([](int) { return nameless(); });
  auto refused = [](const char* stage_and_option) {
    return ThrowsMessage<error>(
        testing::AllOf(HasSubstr(stage_and_option), HasSubstr("a member bytes()")));
  };
  EXPECT_NO_THROW(unknown | prefetch(2));
  EXPECT_THAT([&] { unknown | prefetch(2, {.bytes = 10}); }, refused("prefetch: bytes"));
  auto same = [](const nameless& item) { return item; };
  EXPECT_THAT([&] { unknown | map(same, {.buffer_bytes = 10, .name = "same"}); },
              refused("same: buffer_bytes"));
  auto twice = [](const nameless& item) { return std::vector{item, item}; };
  EXPECT_THAT([&] { unknown | flat_map(twice, {.concurrency = 2, .buffer_bytes = 10}); },
              refused("flat_map: buffer_bytes"));
  EXPECT_THAT(
      [&] { merge<nameless>({unknown}, {.order = merge_order::arrival, .buffer_bytes = 10}); },
      refused("merge: buffer_bytes"));
  auto first = [](const nameless&) { return 0; };
  EXPECT_THAT([&] { unknown | route(first, {.buffer_bytes = 10}, map(same)); },
              refused("route: buffer_bytes"));
  auto make = [](int) { return nameless(); };
  EXPECT_THAT([&] { from(up_to(3)) | tee({.buffer_bytes = 10}, map(make)); },
              refused("tee: buffer_bytes"));
  runtime runtime({.threads = 1});
  EXPECT_THAT([&] { std::ignore = runtime.run(unknown, {.ready_bytes = 10}); },
              refused("run: ready_bytes"));
}

TEST(ByteLimits, AreRefusedWhereTheyHaveNoEffect) {
  auto source = from(up_to(3));
  EXPECT_THAT([&] { merge<int>({source}, {.buffer_bytes = 10}); },
              ThrowsMessage<error>(HasSubstr("buffer_bytes needs .order")));
  auto router = [](int) { return 0; };
  auto same = [](std::vector<int> part) { return part; };
  EXPECT_THAT([&] { source | batch(2) | route_batches(router, {.buffer_bytes = 10}, map(same)); },
              ThrowsMessage<error>(HasSubstr("route_batches has no buffer_bytes")));
}

}  // namespace lade::byte_limits_test
