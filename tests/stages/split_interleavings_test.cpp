// Every order in which the input of a split, its paths and a stop meet: see
// coroutines/interleavings_test.cpp.

#include <lade/async_generator.hpp>
#include <lade/detail/pipeline/open_context.hpp>
#include <lade/detail/pipeline/plan.hpp>
#include <lade/detail/stages/split.hpp>
#include <lade/error.hpp>
#include <lade/task.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "../support/coroutines.hpp"
#include "../support/interleavings.hpp"
#include "../support/started.hpp"

namespace lade {

// The splits of these tests belong to no run.
detail::open_context::open_context(std::shared_ptr<run_state> of_run, std::stop_token until)
    : run(std::move(of_run)), at(nullptr), stop(std::move(until)) {}

using detail::split_base;
using test::in_all_orders;
using test::interleaving;
using test::started;
using testing_support::counted;

using counted_split = detail::split<counted>;

// A split before two paths. The input and the consumers of the paths are coroutines of the test.
struct two_paths {
  // `bytes`: a limit in bytes. An item has 400.
  explicit two_paths(std::size_t buffer = 1, std::uint64_t bytes = detail::unlimited_bytes)
      : opening(nullptr, stop.get_token()) {
    opening.at = &place;
    auto measure = [](const void*) noexcept -> std::uint64_t { return 400; };
    split = std::make_shared<counted_split>(opening, 2, buffer, bytes, measure);
  }

  // The context of the input.
  context inside() const {
    context execution;
    execution.stop = split->stop_token();
    return execution;
  }

  async_generator<counted> path(std::size_t number) {
    auto inside = opening;
    inside.path = split_base::path(split, number);
    return counted_split::branch(inside, number);
  }

  std::stop_source stop;
  detail::planned_node place;
  detail::open_context opening;
  std::shared_ptr<counted_split> split;
  int refused = 0;  // items for a path that has ended
};

static task<> give(two_paths& to, std::size_t path, int value) {
  co_await to.split->capacity(path);
  if (!to.split->give(path, counted(value), {})) ++to.refused;
}

// Gives item 1 to path 0, item 2 to path 1.
static task<> give_each(two_paths& to) {
  co_await give(to, 0, 1);
  co_await give(to, 1, 2);
}

static task<> give_two(two_paths& to, std::size_t path) {
  co_await give(to, path, 1);
  co_await give(to, path, 2);
}

static task<> give_both(two_paths& to) {
  co_await to.split->capacity(split_base::all_paths);
  for (std::size_t path : {0u, 1u})
    if (!to.split->give(path, counted(1), {})) ++to.refused;
}

static task<> take_all(async_generator<counted> from, std::vector<int>& values) {
  while (auto* value = co_await from.next()) values.push_back(value->value());
}

// Takes one item and ends the path.
static task<> take_one(async_generator<counted> from, std::vector<int>& values) {
  if (auto* value = co_await from.next()) values.push_back(value->value());
}

TEST(SplitInterleavings, EachPathTakesTheItemsThatAreSentToIt) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    two_paths paths;
    std::vector<int> first, second;
    started input(give_each(paths), context{});
    started left(take_one(paths.path(0), first), context{}),
        right(take_one(paths.path(1), second), context{});
    right.start();
    order.run({[&] { input.start(); }, [&] { left.start(); }});
    EXPECT_TRUE(input.finished() && left.finished() && right.finished());
    EXPECT_EQ(first, std::vector{1});
    EXPECT_EQ(second, std::vector{2});
  });
}

TEST(SplitInterleavings, TheEndOfTheInputEndsAllPathsBehindTheirItems) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    two_paths paths;
    std::vector<int> first, second;
    started input(give(paths, 0, 1), context{});
    started left(take_all(paths.path(0), first), context{}),
        right(take_all(paths.path(1), second), context{});
    input.start();
    order.run(
        {[&] { paths.split->end_input(nullptr); }, [&] { left.start(); }, [&] { right.start(); }});
    EXPECT_TRUE(left.finished() && right.finished());
    EXPECT_EQ(first, std::vector{1});
    EXPECT_EQ(second, std::vector<int>());
  });
}

TEST(SplitInterleavings, AFailureOfTheInputReachesThePathsBehindTheirItems) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    two_paths paths;
    std::vector<int> values;
    started input(give(paths, 0, 1), context{});
    started path(take_all(paths.path(0), values), context{});
    order.run({[&] {
                 input.start();
                 paths.split->end_input(std::make_exception_ptr(error(errc::failed, "fail")));
               },
               [&] { path.start(); }});
    EXPECT_TRUE(path.ended());
    EXPECT_EQ(testing_support::code_of([&] { path.finished(); }), errc::failed);
    EXPECT_EQ(values, std::vector{1});
  });
}

TEST(SplitInterleavings, AnInputBlockedByAPathResumesWhenAnItemIsTaken) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    two_paths paths;
    std::vector<int> values;
    started input(give_two(paths, 0), context{});
    // With an item in the other path, path 0 has capacity for one.
    started other(give(paths, 1, 3), context{});
    other.start();
    started path(take_all(paths.path(0), values), context{});
    order.run({[&] { input.start(); }, [&] { path.start(); }});
    EXPECT_TRUE(input.finished());
    EXPECT_EQ(values, (std::vector{1, 2}));
    paths.split->end_input(nullptr);
    EXPECT_TRUE(path.finished());
  });
}

static task<> give_three(two_paths& to, std::size_t path) {
  for (int value = 1; value <= 3; ++value) co_await give(to, path, value);
}

TEST(SplitInterleavings, AnInputBlockedByALimitInBytesResumesWhenAnItemIsTaken) {
  counted::check check;
  for (std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1000}})
    in_all_orders([bytes](interleaving& order) {
      two_paths paths(8, bytes);
      std::vector<int> values;
      started input(give_three(paths, 0), context{});
      started path(take_all(paths.path(0), values), context{});
      order.run({[&] { input.start(); }, [&] { path.start(); }});
      EXPECT_TRUE(input.finished());
      EXPECT_EQ(values, (std::vector{1, 2, 3}));
      paths.split->end_input(nullptr);
      EXPECT_TRUE(path.finished());
    });
}

TEST(SplitInterleavings, ALimitInBytesLeavesOneItemToEachPath) {
  counted::check check;
  two_paths paths(8, 0);
  started input(give_each(paths), context{});
  input.start();
  EXPECT_TRUE(input.finished());
  started another(give(paths, 0, 3), context{});
  another.start();
  EXPECT_FALSE(another.finished());
  paths.split->end_input(nullptr);
  EXPECT_TRUE(another.finished());
}

// An item for path 1, four for path 0, which takes none, and another for path 1.
static task<> give_six(two_paths& to) {
  co_await give(to, 1, 1);
  for (int value = 0; value < 4; ++value) co_await give(to, 0, value);
  co_await give(to, 1, 2);
}

// The input waits with more than half of the capacity in use.
TEST(SplitInterleavings, AnInputBlockedByAPathResumesWhenAnotherPathIsStarved) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    two_paths paths(2);
    std::vector<int> values;
    started input(give_six(paths), context{});
    started path(take_all(paths.path(1), values), context{});
    input.start();  // until the fourth item for path 0 waits
    order.run({[&] { path.start(); }, [&] { paths.split->begin_batch(); }});
    EXPECT_TRUE(input.finished());
    EXPECT_EQ(values, (std::vector{1, 2}));
    paths.split->end_input(nullptr);
    EXPECT_TRUE(path.finished());
  });
}

TEST(SplitInterleavings, AnInputBlockedByAllPathsResumesWhenBothTakeAnItem) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    two_paths paths;
    std::vector<int> first, second;
    started full(give_both(paths), context{});
    full.start();
    started input(give_both(paths), context{});
    started left(take_one(paths.path(0), first), context{}),
        right(take_one(paths.path(1), second), context{});
    order.run({[&] { input.start(); }, [&] { left.start(); }, [&] { right.start(); }});
    EXPECT_TRUE(input.finished() && left.finished() && right.finished());
    EXPECT_TRUE(first == std::vector{1} && second == std::vector{1});
  });
}

TEST(SplitInterleavings, TheEndOfAPathResumesAnInputThatWaitsForIt) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    two_paths paths;
    std::vector<int> second;
    started full(give_both(paths), context{});
    full.start();
    started right(take_one(paths.path(1), second), context{});
    auto end = counted_split::end_of(paths.split, 0);
    started input(give_both(paths), context{});
    order.run({[&] { input.start(); }, [&] { end.reset(); }, [&] { right.start(); }});
    EXPECT_TRUE(input.finished() && right.finished());
    EXPECT_EQ(paths.refused, 1);
    EXPECT_EQ(second, std::vector{1});
  });
}

TEST(SplitInterleavings, AStopOfAPathLosesNoItem) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    two_paths paths;
    std::vector<int> values, rest;
    started input(give(paths, 0, 1), context{});
    started path(take_one(paths.path(0), values));
    order.run({[&] { input.start(); }, [&] { path.start(); }, [&] { path.stop(); }});
    EXPECT_TRUE(input.finished());
    EXPECT_TRUE(path.ended());
    EXPECT_EQ(path.finished(), values.size() == 1);
    // There is capacity for the next item only if the first was taken.
    started next(give_both(paths), paths.inside());
    next.start();
    EXPECT_EQ(next.ended(), values.size() == 1);
    paths.split->close();
    EXPECT_TRUE(next.ended());
  });
}

TEST(SplitInterleavings, AStopOfTheRunEndsTheInputAndThePath) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    two_paths paths;
    std::vector<int> values;
    started full(give_both(paths), paths.inside());
    full.start();
    started input(give_both(paths), paths.inside());
    started path(take_all(paths.path(0), values));
    order.run({[&] { input.start(); }, [&] { path.start(); }, [&] { paths.stop.request_stop(); }});
    EXPECT_TRUE(input.ended());
    EXPECT_TRUE(path.ended());
    EXPECT_FALSE(path.finished());
    EXPECT_LE(values.size(), 2u);
  });
}

static task<> begin_batches(two_paths& of, int& count) {
  for (int i = 0; i < 2; ++i) {
    co_await of.split->capacity(split_base::batches);
    of.split->begin_batch();
    ++count;
  }
}

TEST(SplitInterleavings, AnInputThatWaitsForABatchResumesWhenOneEnds) {
  in_all_orders([](interleaving& order) {
    two_paths paths(2);
    int count = 0;
    for (int i = 0; i < 2; ++i) paths.split->begin_batch();
    started input(begin_batches(paths, count), context{});
    order.run({[&] { input.start(); }, [&] { paths.split->end_batch(); },
               [&] { paths.split->end_batch(); }});
    EXPECT_TRUE(input.finished());
    EXPECT_EQ(count, 2);
  });
}

}  // namespace lade
