// Limits in bytes of the items that wait: of prefetch, map, flat_map and the output queue of a run.

#include <lade/async_generator.hpp>
#include <lade/cut.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/task.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
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
  runtime runtime({.threads = 1});
  EXPECT_THAT([&] { std::ignore = runtime.run(unknown, {.ready_bytes = 10}); },
              refused("run: ready_bytes"));
}

}  // namespace lade::byte_limits_test
