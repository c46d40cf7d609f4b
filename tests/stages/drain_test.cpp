// drain: in which order it calls a sink, and what it passes on.

#include <lade/async_generator.hpp>
#include <lade/detail/stages/drain.hpp>
#include <lade/event.hpp>
#include <lade/lineage.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../support/started.hpp"

namespace lade::drain_test {

using calls = std::vector<std::string>;

struct sink_options {
  int capacity = 10;
  std::string throws_in = {};  // a member that throws
  event* open = nullptr;       // what the task of each item awaits; null: items take no task
};

// A sink that records its calls.
class recorder {
 public:
  recorder(calls& into, const sink_options& options) : calls_(&into), options_(options) {}

  task<bool> capacity() {
    record("capacity");
    co_return options_.capacity-- > 0;
  }

  class input_wait {
   public:
    explicit input_wait(recorder& of) : of_(of) { of_.record("wait"); }
    ~input_wait() { of_.record("waited"); }

   private:
    recorder& of_;
  };

  std::optional<task<>> put(void* item, const lineage& origin) {
    record("put", std::to_string(*static_cast<int*>(item)) + " of " + to_string(origin));
    if (options_.open) return put_later();
    return std::nullopt;
  }
  void put_rest(const lineage& origin) { record("rest", to_string(origin)); }
  void end(const std::exception_ptr& failure) noexcept try {
    if (failure) std::rethrow_exception(failure);
    calls_->push_back("end");
  } catch (const std::exception& what) {
    calls_->push_back(std::string("end by ") + what.what());
  }

 private:
  task<> put_later() {
    co_await *options_.open;
    record("put later");
  }

  void record(const std::string& call, const std::string& argument = {}) {
    calls_->push_back(argument.empty() ? call : call + ' ' + argument);
    if (call == options_.throws_in) throw std::runtime_error(call);
  }

  calls* calls_;
  sink_options options_;
};

static async_generator<int> numbers(int count, bool fails = false) {
  for (int i = 1; i <= count; ++i) {
    detail::positioned<int> next{static_cast<std::uint64_t>(i), i};
    co_yield next;
  }
  if (fails) throw std::runtime_error("input");
}

// Drops the last number.
static async_generator<int> all_but(int last, async_generator<int> in) {
  while (auto* number = co_await in.next())
    if (*number != last) co_yield *number;
}

static calls drained(async_generator<int> in, const sink_options& options) {
  calls made;
  sync_wait(detail::drain(std::move(in), recorder(made, options)));
  return made;
}

TEST(Drain, PutsEachItemWhenThereIsCapacityForIt) {
  EXPECT_THAT(
      drained(numbers(2), {}),
      testing::ElementsAre("capacity", "wait", "waited", "put 1 of 1", "capacity", "wait", "waited",
                           "put 2 of 2", "capacity", "wait", "waited", testing::_, "end"));
}

TEST(Drain, PassesOnTheLineageOfItemsThatWereNotYielded) {
  auto made = drained(all_but(2, numbers(2)), {});
  EXPECT_EQ(made.at(made.size() - 2), "rest 2");
}

TEST(Drain, TakesNoItemWithoutCapacityForIt) {
  EXPECT_THAT(drained(numbers(9), {.capacity = 1}),
              testing::ElementsAre("capacity", "wait", "waited", "put 1 of 1", "capacity", "end"));
}

TEST(Drain, WaitsForTheTaskOfAnItemBeforeItTakesTheNextOne) {
  calls made;
  event open;
  test::started draining(detail::drain(numbers(2), recorder(made, {.capacity = 2, .open = &open})));
  draining.start();
  EXPECT_EQ(made.back(), "put 1 of 1");
  open.set();
  EXPECT_TRUE(draining.finished());
  EXPECT_THAT(made, testing::ElementsAre("capacity", "wait", "waited", "put 1 of 1", "put later",
                                         "capacity", "wait", "waited", "put 2 of 2", "put later",
                                         "capacity", "end"));
}

TEST(Drain, EndsTheSinkWithTheFailureOfTheInput) {
  EXPECT_THAT(drained(numbers(1, true), {}),
              testing::ElementsAre("capacity", "wait", "waited", "put 1 of 1", "capacity", "wait",
                                   "waited", "end by input"));
}

TEST(Drain, EndsTheSinkWithItsOwnFailure) {
  for (std::string member : {"capacity", "wait", "put", "rest"}) {
    auto made = drained(numbers(1), {.throws_in = member});
    EXPECT_EQ(made.back(), "end by " + member);
    EXPECT_EQ(std::ranges::count_if(made, [](auto& call) { return call.starts_with("end"); }), 1);
  }
}

}  // namespace lade::drain_test
