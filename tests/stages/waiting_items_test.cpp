#include <lade/batch.hpp>
#include <lade/detail/stages/concurrent_core.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/hooks.hpp>
#include <lade/map.hpp>
#include <lade/memory_resource.hpp>
#include <lade/per_worker.hpp>
#include <lade/profile.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>
#include <lade/semaphore.hpp>
#include <lade/thread_pool.hpp>
#include <lade/waiting_items.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::waiting_items_test {

using test::collect;
using test::numbers;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using waiting = waiting_items<int, int>;
using taken = taken_item<int, int>;

// A function of several items at a time that is made while the test runs.
template <unsigned Most>
struct several {
  static constexpr unsigned items_at_a_time = Most;

  std::function<void(waiting&)> take;
  std::function<int(int)> one = [](int i) { return i; };

  int operator()(int item) const { return one(item); }
  void operator()(waiting& items) const { take(items); }
};

// What a function does with an item of itself, so that it can be done for one or for several.
struct random_deed {
  std::uint64_t seed;

  std::optional<std::uint64_t> operator()(int item, random draw) const {
    random what(seed, item);
    if (what.below(5) == 0) throw std::runtime_error("bad " + std::to_string(item));
    if (what.below(5) == 0) return std::nullopt;
    return draw.below(1'000'000) * 1'000 + static_cast<std::uint64_t>(item);
  }
};

// Ends the items that it takes in random order.
struct random_deeds : random_deed {
  static constexpr unsigned items_at_a_time = 3;
  using random_deed::operator();
  using item = taken_item<int, std::uint64_t>;

  void end(item& each) const {
    try {
      if (auto result = (*this)(*each, each.draw()))
        each.give(*result);
      else
        each.drop();
    } catch (...) {
      each.fail(std::current_exception());
    }
  }

  void operator()(waiting_items<int, std::uint64_t>& items) const {
    std::vector<item> in_hand;
    random order(seed);
    while (true) {
      while (auto next = items.next()) in_hand.push_back(*std::move(next));
      if (in_hand.empty()) return;
      auto at = static_cast<std::ptrdiff_t>(order.below(in_hand.size()));
      end(in_hand[static_cast<std::size_t>(at)]);
      in_hand.erase(in_hand.begin() + at);
    }
  }
};

TEST(WaitingItems, SeveralAtATimeHaveTheSameOutcomeAsEachAlone) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  runtime runtime({.threads = 3});
  for (unsigned concurrency : {1u, 2u, 5u})
    for (auto order : {item_order::input, item_order::completion})
      for (unsigned attempts : {1u, 3u}) {
        map_options options{.concurrency = concurrency,
                            .buffer = 4,
                            .order = order,
                            .retry = {.attempts = attempts, .pause = {}},
                            .on_error = on_error::skip,
                            .name = "deed"};
        auto outcome = [&](auto function) {
          auto items = runtime.run(from(numbers{300}) | map(function, options));
          auto all = collect(items);
          if (order == item_order::completion) std::ranges::sort(all);
          std::set<std::string> failures;
          for (auto& each : items.failures())
            failures.insert(each.item + " #" + std::to_string(each.attempts) + " " + each.what);
          auto stage = items.statistics().stages.back();
          return std::tuple(all, failures, stage.in, stage.out, stage.failed, stage.retried,
                            concurrency > 1 ? stage.durations.total() : 0);
        };
        ASSERT_EQ(outcome(random_deeds{{seed}}), outcome(random_deed{seed}))
            << concurrency << " " << attempts;
      }
}

// Runs the function with one worker on a dedicated pool: all waiting items wait for that worker.
class one_worker {
 public:
  map_options options{.concurrency = 2, .buffer = 4, .pool = &pool_, .name = "several"};

  template <class F>
  std::vector<int> collect(int count, F function, const run_options& how = {}) {
    auto items = runtime_.run(from(numbers{count}) | map(std::move(function), options), how);
    auto all = test::collect(items);
    failures = items.failures();
    return all;
  }
  template <class F>
  std::string failure_of(int count, F function) {
    return test::only_failure(runtime_, from(numbers{count}) | map(std::move(function), options));
  }

  std::vector<failure_record> failures;

 private:
  thread_pool pool_{{.threads = 1}};
  runtime runtime_{{.threads = 2}};
};

static taken wait_for_next(waiting& items) {
  while (true)
    if (auto next = items.next()) return *std::move(next);
}

static std::exception_ptr not_yet() {
  return std::make_exception_ptr(std::runtime_error("not yet"));
}

static void give_itself(taken& item) { item.give(int(*item)); }

static void give_all(waiting& items) {
  while (auto next = items.next()) give_itself(*next);
}

TEST(WaitingItems, AreTakenUpToTheNumberAndThenAsOthersEnd) {
  one_worker worker;
  several<2> function{[](waiting& items) {
    auto first = wait_for_next(items);
    auto second = wait_for_next(items);
    EXPECT_FALSE(items.next());
    give_itself(first);
    auto third = wait_for_next(items);
    EXPECT_FALSE(items.next());
    EXPECT_EQ(*second, 1);
    EXPECT_EQ(*third, 2);
    give_itself(third);
    give_itself(second);
  }};
  EXPECT_THAT(worker.collect(3, function), ElementsAre(0, 1, 2));
}

TEST(WaitingItems, NoItemWaitsForAnother) {
  runtime runtime({.threads = 2});
  semaphore delivered(1);
  auto one_after_the_other = [&]() -> async_generator<int> {
    for (int i = 0; i < 20; ++i) {
      co_await delivered.acquire();
      int item = i;
      co_yield item;
    }
  };
  several<4> function{[](waiting& items) {
    std::vector<taken> all;
    while (auto next = items.next()) all.push_back(*std::move(next));
    for (auto& each : all) give_itself(each);
  }};
  auto items = runtime.run(from(one_after_the_other) | map(function, {.concurrency = 2}));
  int count = 0;
  for (auto& item : items) {
    EXPECT_EQ(item, count++);
    delivered.release();
  }
  EXPECT_EQ(count, 20);
}

TEST(WaitingItems, EndedItemsAreDeliveredBeforeTheFunctionReturns) {
  one_worker worker;
  std::atomic<int> seen = 0;
  several<2> function{[&](waiting& items) {
    while (auto next = items.next()) {
      auto number = **next;
      give_itself(*next);
      test::wait_until([&] { return seen > number; });
    }
  }};
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(numbers{8}) | map(function, worker.options));
  for (auto& item : items) EXPECT_EQ(item, seen++);
}

TEST(WaitingItems, FailOneByOneAndAreTriedAgainAlone) {
  one_worker worker;
  std::atomic<int> alone = 0;
  several<3> function{[](waiting& items) {
                        while (auto next = items.next()) {
                          auto number = **next;
                          **next = -1;  // a copy of it is what is tried again
                          if (number % 3 == 1)
                            next->fail(std::make_exception_ptr(std::runtime_error("not yet")));
                          else
                            next->give(int(number));
                        }
                      },
                      [&](int i) {
                        ++alone;
                        if (i == 4) throw std::runtime_error("never");
                        return 100 + i;
                      }};
  worker.options.retry = {.attempts = 3, .pause = {}};
  worker.options.on_error = on_error::skip;
  EXPECT_THAT(worker.collect(7, function), ElementsAre(0, 101, 2, 3, 5, 6));
  EXPECT_EQ(alone, 3);
  ASSERT_THAT(worker.failures, SizeIs(1));
  EXPECT_EQ(worker.failures[0].item, "4");
  EXPECT_EQ(worker.failures[0].what, "never");
  EXPECT_EQ(worker.failures[0].attempts, 3u);
}

TEST(WaitingItems, ThatAFunctionDoesNotEndFail) {
  one_worker worker;
  worker.options.on_error = on_error::skip;
  several<2> forgets{[](waiting& items) {
    wait_for_next(items);
    auto second = wait_for_next(items);
    give_itself(second);
  }};
  EXPECT_THAT(worker.collect(4, forgets), ElementsAre(1, 3));
  ASSERT_THAT(worker.failures, SizeIs(2));
  EXPECT_EQ(worker.failures[0].item, "0");
  EXPECT_EQ(worker.failures[0].stage, "several");
  EXPECT_THAT(worker.failures[0].what, HasSubstr("without ending an item"));
  several<2> takes_none{[](waiting&) {}};
  EXPECT_THAT(worker.collect(4, takes_none), IsEmpty());
  EXPECT_THAT(worker.failures, SizeIs(4));
}

TEST(WaitingItems, ThatAFunctionHasTakenFailWithWhatItThrows) {
  one_worker worker;
  worker.options.on_error = on_error::skip;
  several<3> function{[](waiting& items) {
    wait_for_next(items);
    auto second = wait_for_next(items);
    wait_for_next(items);
    give_itself(second);
    throw std::runtime_error("out of order");
  }};
  EXPECT_THAT(worker.collect(6, function), ElementsAre(1, 4));
  ASSERT_THAT(worker.failures, SizeIs(4));
  for (auto& each : worker.failures) EXPECT_EQ(each.what, "out of order");
}

TEST(WaitingItems, ThatFailWithoutAReasonAreNotTakenForDone) {
  runtime runtime({.threads = 2});
  several<4> function{[](waiting& items) {
    while (auto next = items.next()) next->fail(nullptr);
  }};
  function.one = [](int) -> int { throw std::runtime_error("bad"); };
  auto items = runtime.run(from(numbers{6}) | map(function, {.concurrency = 2}),
                           {.on_error = on_error::skip});
  EXPECT_THAT(collect(items), IsEmpty());
  EXPECT_THAT(items.failures(), SizeIs(6));
}

// Counts who refers to an item before and after it has ended.
struct counting_references {
  static constexpr unsigned items_at_a_time = 2;
  using shared = std::shared_ptr<int>;

  int operator()(const shared& item) const { return *item; }
  void operator()(waiting_items<shared, int>& items) const {
    while (auto next = items.next()) {
      const std::weak_ptr<int> item = **next;
      const auto before = item.use_count();
      next->give(0);
      EXPECT_EQ(item.use_count(), before - 2) << "the item and its copy";
    }
  }
};

TEST(WaitingItems, CopiesForAnotherAttemptGoWithTheirItems) {
  runtime runtime({.threads = 2});
  std::vector<std::shared_ptr<int>> inputs;
  for (int i = 0; i < 20; ++i) inputs.push_back(std::make_shared<int>(i));
  const auto what =
      from(inputs) | map(counting_references(), {.concurrency = 2, .retry = {.attempts = 2}});
  EXPECT_THAT(collect(runtime, what), SizeIs(20));
}

TEST(WaitingItems, CanBeEndedOnlyOnce) {
  one_worker worker;
  several<2> function{[](waiting& items) {
    while (auto next = items.next()) {
      give_itself(*next);
      EXPECT_THROW(next->give(1), error);
      EXPECT_THROW(next->drop(), error);
      EXPECT_THROW(next->fail({}), error);
      EXPECT_THROW(**next, error);
    }
  }};
  EXPECT_THAT(worker.collect(3, function), ElementsAre(0, 1, 2));
}

TEST(WaitingItems, AFailureEndsTheRunAndNamesItsItem) {
  one_worker worker;
  several<2> function{[](waiting& items) {
    auto first = wait_for_next(items);
    auto second = wait_for_next(items);
    second.fail(std::make_exception_ptr(std::runtime_error("bad")));
    give_itself(first);
  }};
  EXPECT_EQ(worker.failure_of(2, function), "several (1): bad");
}

TEST(WaitingItems, TheirSubstituteStandsInForThem) {
  one_worker worker;
  worker.options.on_error = on_error::skip;
  worker.options.substitute = -5;
  several<2> function{[](waiting& items) {
    while (auto next = items.next())
      if (**next == 1)
        next->fail(std::make_exception_ptr(std::runtime_error("bad")));
      else
        give_itself(*next);
  }};
  EXPECT_THAT(worker.collect(3, function), ElementsAre(0, -5, 2));
}

TEST(WaitingItems, FailAloneIfTheyTakeTooLong) {
  one_worker worker;
  worker.options.on_error = on_error::skip;
  worker.options.timeout = std::chrono::microseconds(1);
  several<2> function{[](waiting& items) {
    while (auto next = items.next()) {
      test::outlast_a_microsecond();
      give_itself(*next);
    }
  }};
  EXPECT_THAT(worker.collect(3, function), IsEmpty());
  ASSERT_THAT(worker.failures, SizeIs(3));
  EXPECT_THAT(worker.failures[0].what, HasSubstr("wait for the stage's function"));
  worker.options.timeout = std::chrono::hours(1);
  EXPECT_THAT(worker.collect(3, function), ElementsAre(0, 1, 2));
}

TEST(WaitingItems, NoMoreAreReturnedAfterAStop) {
  runtime runtime({.threads = 2});
  std::atomic<int> ended = 0;
  several<2> endless{[&](waiting& items) {
    give_all(items);
    ++ended;
  }};
  {
    auto items = runtime.run(from(numbers{-1}) | map(endless, {.concurrency = 2}));
    for (auto& item : items)
      if (item == 50) break;
  }
  EXPECT_GT(ended, 0);
}

// Waits for as long as a call may continue while nearer work waits.
static void outlast_a_turn() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  while (std::chrono::steady_clock::now() < end) {}
}

// The worker of the next stage has started before the first item, so that it waits for an item when
// the first call starts.
TEST(WaitingItems, ALongCallYieldsTheThreadOnlyToNearerWork) {
  constexpr int all = 8;
  thread_pool shared({.threads = 1});
  runtime runtime({.threads = 2});
  std::atomic<bool> has_started_behind = false, has_given_all = false;
  int behind = 0, calls = 0;  // on one thread
  several<3> function{[&](waiting& items) {
    if (++calls > 1) {
      EXPECT_GE(behind, 1);
      return give_all(items);
    }
    auto first = wait_for_next(items);
    test::wait_until([&] { return has_given_all.load(); });
    outlast_a_turn();
    auto second = items.next();
    EXPECT_TRUE(second);
    give_itself(first);
    test::wait_until([&] { return shared.has_nearer(~0u); });
    EXPECT_FALSE(items.next());
    EXPECT_FALSE(items.next());
    if (second) give_itself(*second);
  }};
  auto source = from([&, i = 0]() mutable {
    test::wait_until([&] { return has_started_behind.load(); });
    if (i == all) has_given_all = true;
    return i < all ? std::optional(i++) : std::nullopt;
  });
  auto count_behind = per_worker([&] {
    has_started_behind = true;
    return [&](int i) {
      ++behind;
      return i;
    };
  });
  map_options options{.concurrency = 1, .buffer = all, .pool = &shared};
  EXPECT_EQ(collect(runtime, source | map(function, options) | map(count_behind, options)),
            test::up_to(all));
  EXPECT_GE(calls, 2);
}

TEST(WaitingItems, AStageHoldsItemsInFlightAndAsManyWaitingOnes) {
  constexpr unsigned at_a_time = 4, buffer = 3;
  constexpr int held = 1 + buffer + 2 * (at_a_time - 1);
  thread_pool own({.threads = 1});
  runtime runtime({.threads = 2});
  std::atomic<int> asked_for = 0;
  several<at_a_time> function{[&](waiting& items) {
    auto first = wait_for_next(items);
    if (*first == 0) {
      test::wait_until([&] { return asked_for >= held; });
      EXPECT_EQ(asked_for, held);
    }
    give_itself(first);
    give_all(items);
  }};
  auto source = from([&, i = 0]() mutable {
    ++asked_for;
    return i < 50 ? std::optional(i++) : std::nullopt;
  });
  map_options options{.concurrency = 1, .buffer = buffer, .pool = &own};
  EXPECT_EQ(collect(runtime, source | map(function, options)), test::up_to(50));
}

TEST(WaitingItems, AStageWithOtherWorkersHoldsAsManyForEach) {
  const detail::concurrent_options one_by_one{.slots = 2 + 5, .workers = 2};
  const auto four = one_by_one.for_items(4);
  EXPECT_EQ(four.slots, 5u + 2 * (1 + 2 * 3));
  EXPECT_EQ(four.items_at_a_time, 4u);
  EXPECT_EQ(four.with(std::nullopt).slots, four.slots);
  EXPECT_EQ(four.with(2).slots, four.slots);
  EXPECT_EQ(four.with(1).slots, 5u + 1 * (1 + 2 * 3));
  EXPECT_EQ(four.with(6).slots, 5u + 6 * (1 + 2 * 3));
  EXPECT_EQ(four.with(6).workers, 6u);
  EXPECT_EQ(one_by_one.for_items(1).with(6).slots, 5u + 6);
}

TEST(WaitingItems, AProfileTakesThemWithEachNumberOfWorkers) {
  runtime runtime({.threads = 2});
  std::atomic<int> ended = 0;
  several<3> function{[&](waiting& items) {
                        std::vector<taken> all;
                        while (auto next = items.next()) all.push_back(*std::move(next));
                        ended += static_cast<int>(all.size());
                        for (auto& each : all) give_itself(each);
                      },
                      [&](int i) {
                        ADD_FAILURE() << "called for one";
                        return i;
                      }};
  constexpr unsigned trials[] = {1, 2};
  map_options options{.concurrency = 2, .name = "several"};
  auto found = profile(runtime, from(test::up_to(60)) | map(function, options),
                       {.items = 60, .concurrency = trials});
  EXPECT_GE(ended, 60);
  EXPECT_THAT(found.back().trials, SizeIs(2));
}

TEST(WaitingItems, AreTakenOneByOneWhereAStageHasNoWorkers) {
  runtime runtime({.threads = 2});
  several<2> function{[](waiting&) { FAIL(); }, [](int i) { return -i; }};
  EXPECT_THAT(collect(runtime, from(numbers{3}) | map(function, {.concurrency = 1})),
              ElementsAre(0, -1, -2));
}

// Item 1, which failed first, is due at once when it fails again: the others have been for longer.
TEST(WaitingItems, OneThatFailsAgainIsTriedAgainBehindOthersThatAreDue) {
  one_worker worker;
  std::vector<int> alone;
  several<3> function{[](waiting& items) {
                        std::vector<taken> all;
                        for (int i = 0; i < 3; ++i) all.push_back(wait_for_next(items));
                        for (auto i : {1u, 2u, 0u}) all[i].fail(not_yet());
                      },
                      [&](int i) {
                        alone.push_back(i);
                        if (i == 1 && alone.size() < 5) std::rethrow_exception(not_yet());
                        return i;
                      }};
  worker.options.retry = {.attempts = 5, .pause = {}};
  EXPECT_THAT(worker.collect(3, function), ElementsAre(0, 1, 2));
  EXPECT_THAT(alone, ElementsAre(1, 2, 0, 1, 1));
}

// Allocates more memory than memory_needed() states.
struct much_later {
  static constexpr unsigned items_at_a_time = 3;
  std::vector<int>* alone;
  const std::atomic<bool>* has_read_all;

  std::size_t memory_needed(int) const { return 600; }
  buffer operator()(int item) const {
    alone->push_back(item);
    if (alone->size() == 1) std::rethrow_exception(not_yet());
    return allocate_now(1'600);
  }
  void operator()(waiting_items<int, buffer>& items) const {
    test::wait_until([&] { return has_read_all->load(); });
    std::vector<taken_item<int, buffer>> all;
    while (auto next = items.next()) all.push_back(*std::move(next));
    for (auto& each : all) each.fail(not_yet());
  }
};

// Item 1 has the memory that items 2 and 3 would wait for, and is not delivered before item 0 is.
TEST(WaitingItems, OneWithoutMemoryIsTriedAgainBehindTheFirst) {
  thread_pool own({.threads = 1});
  runtime runtime({.threads = 2, .memory_bytes = 2'000});
  std::vector<int> alone;
  std::atomic<bool> has_read_all = false;
  auto source = from([&, i = 0]() mutable {
    has_read_all = i == 4;
    return i < 4 ? std::optional(i++) : std::nullopt;
  });
  map_options options{
      .concurrency = 1, .buffer = 2, .retry = {.attempts = 5, .pause = {}}, .pool = &own};
  auto memory = source | map(much_later{&alone, &has_read_all}, options);
  for (auto& each : runtime.run(memory | map([](const buffer& in) { return in.size(); })))
    EXPECT_EQ(each, 1'600u);
  EXPECT_THAT(alone, ElementsAre(0, 1, 0, 2, 3));
}

// Both workers are in a call: one asks for item 2 and finds no memory for it, while the other takes
// item 3.
struct both_busy {
  static constexpr unsigned items_at_a_time = 3;
  enum moment : std::uint8_t { at_first, started, asked, passed, refused, over };
  std::atomic<moment>* now;

  void reach(moment next) const {
    *now = next;
    now->notify_all();
  }
  void wait_for(moment next) const {
    for (auto seen = now->load(); seen < next; seen = now->load()) now->wait(seen);
  }

  std::size_t memory_needed(int item) const {
    if (item == 2 && *now < asked) {
      reach(asked);
      wait_for(passed);
    }
    return 600;
  }
  int operator()(int item) const { return item; }
  void operator()(waiting& items) const {
    auto first = *items.next();
    if (*first == 0) {
      wait_for(started);
      EXPECT_FALSE(items.next());
      reach(refused);
      wait_for(over);
    } else if (*first == 1) {
      reach(started);
      wait_for(asked);
      auto later = *items.next();
      EXPECT_EQ(*later, 3);
      reach(passed);
      wait_for(refused);
      give_itself(first);
      EXPECT_FALSE(items.next());
      reach(over);
      give_itself(later);
      return;
    }
    give_itself(first);
  }
};

// Else the worker might wait for the memory of item 3 while it has what the run waits for.
TEST(WaitingItems, ItemsWithoutMemoryAreNotTakenBehindLaterItems) {
  thread_pool own({.threads = 2});
  runtime runtime({.threads = 2, .memory_bytes = 2'000});
  std::atomic<both_busy::moment> now = both_busy::at_first;
  map_options options{.concurrency = 2, .buffer = 8, .pool = &own};
  EXPECT_EQ(collect(runtime, from(numbers{4}) | map(both_busy{&now}, options)), test::up_to(4));
}

TEST(WaitingItems, ThatNeedNoMemoryKeepNoneOfTheRuntime) {
  struct counting final : memory_resource {
    std::atomic<int> blocks = 0;
    void* allocate(std::size_t bytes, std::size_t alignment) override {
      ++blocks;
      return host_memory().allocate(bytes, alignment);
    }
    void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept override {
      --blocks;
      host_memory().deallocate(memory, bytes, alignment);
    }
    std::string_view name() const noexcept override { return "counting"; }
  } memory;
  struct needless : several<2> {
    std::size_t memory_needed(int) const { return 0; }
  };
  {
    runtime runtime({.threads = 2, .memory = &memory});
    needless function{{[](waiting& items) {
      while (auto next = items.next()) {
        auto held = allocate_now(10'000);
        give_itself(*next);
      }
    }}};
    collect(runtime, from(numbers{50}) | map(function, {.concurrency = 2}));
  }
  EXPECT_EQ(memory.blocks, 0);
}

// Holds as much memory as it says for as long as it has an item.
struct large : several<4> {
  std::size_t memory_needed(int) const { return 700; }
};

TEST(WaitingItems, AreNotTakenBeyondTheMemoryThatIsFree) {
  thread_pool own({.threads = 1});
  runtime runtime({.threads = 2, .memory_bytes = 2'000});
  std::atomic<std::size_t> most = 0;
  large function{{[&](waiting& items) {
    std::vector<taken> all;
    while (auto next = items.next()) all.push_back(*std::move(next));
    most = std::max(most.load(), all.size());
    std::vector<buffer> memory;
    for (std::size_t i = 0; i < all.size(); ++i) memory.push_back(allocate_now(700));
    EXPECT_LE(runtime.memory().stats().used_bytes, 2'000u);
    for (auto& each : all) give_itself(each);
  }}};
  map_options options{.concurrency = 2, .buffer = 20, .pool = &own};
  auto all = collect(runtime, from(numbers{100}) | map(function, options));
  EXPECT_EQ(all, test::up_to(100));
  EXPECT_LE(most, 2u);
}

TEST(WaitingItems, UnusedReservedMemoryIsReleasedWhenTheyEnd) {
  thread_pool own({.threads = 1});
  runtime runtime({.threads = 2});
  const auto used = [&] { return runtime.memory().stats().used_bytes; };
  large function{{[&](waiting& items) {
    auto first = wait_for_next(items);
    auto second = wait_for_next(items);
    EXPECT_EQ(used(), 1'400u);
    auto held = allocate_now(640);
    EXPECT_EQ(used(), 1'400u);
    give_itself(first);
    EXPECT_EQ(used(), 640u + 700u);
    second.fail(std::make_exception_ptr(std::runtime_error("bad")));
    EXPECT_EQ(used(), 640u);
    held = {};
    EXPECT_EQ(used(), 0u);
    auto third = wait_for_next(items);
    EXPECT_EQ(used(), 700u);
    third.drop();
    EXPECT_EQ(used(), 0u);
  }}};
  map_options options{.concurrency = 1, .buffer = 1, .on_error = on_error::skip, .pool = &own};
  EXPECT_EQ(collect(runtime, from(numbers{6}) | map(function, options)), (std::vector<int>{0, 3}));
}

TEST(WaitingItems, HooksSeeEachOfThem) {
  struct counting : run_hooks {
    std::atomic<int> inside = 0;
    std::atomic<int> failed = 0;
    std::atomic<int> all = 0;
    void enter_item(const item_call&) override { ++inside; }
    void leave_item(const item_call&, const std::exception_ptr& failure) override {
      --inside;
      ++all;
      if (failure) ++failed;
    }
  } hooks;
  one_worker worker;
  worker.options.on_error = on_error::skip;
  several<2> function{[&](waiting& items) {
    auto first = wait_for_next(items);
    auto second = wait_for_next(items);
    EXPECT_EQ(hooks.inside, 2);
    first.fail(std::make_exception_ptr(std::runtime_error("bad")));
    EXPECT_EQ(hooks.inside, 1);
    second.drop();
  }};
  EXPECT_THAT(worker.collect(10, function, {.hooks = &hooks}), IsEmpty());
  EXPECT_EQ(hooks.all, 10);
  EXPECT_EQ(hooks.failed, 5);
  EXPECT_EQ(hooks.inside, 0);
}

TEST(WaitingItems, EachWorkerMayHaveASeparateFunction) {
  runtime runtime({.threads = 3});
  std::atomic<int> made = 0;
  auto make = [&] {
    ++made;
    return several<2>{give_all};
  };
  auto all = collect(runtime, from(numbers{100}) | map(per_worker(make), {.concurrency = 3}));
  EXPECT_EQ(all, test::up_to(100));
  EXPECT_GE(made, 1);
  EXPECT_LE(made, 3);
}

// Writes the number that a sample's key is; several at a time, twice of it.
struct twice_writer {
  static constexpr unsigned items_at_a_time = 3;
  std::atomic<int>* several_at_a_time;

  tensor_spec spec() const { return {element_type::i32, {1}}; }
  void operator()(const sample& in, const tensor& slot) const {
    *slot.data<std::int32_t>() = std::stoi(in.key());
  }
  void operator()(waiting_samples& samples) const {
    std::vector<taken_sample> all;
    while (auto next = samples.next()) all.push_back(*std::move(next));
    *several_at_a_time += all.size() > 1;
    for (auto& each : all) {
      if (each->key() == "7") {
        each.fail(std::make_exception_ptr(std::runtime_error("seven")));
        continue;
      }
      *each.slot().data<std::int32_t>() = std::stoi((*each).key()) * 2;
      each.done();
    }
  }
};

static std::vector<int> written(runtime& where, const pipeline<sample_batch>& batches) {
  std::vector<int> all;
  for (auto& batch : collect(where, batches))
    for (std::size_t i = 0; i < batch.size(); ++i)
      all.push_back(*batch.tensor()[static_cast<std::int64_t>(i)].data<std::int32_t>());
  return all;
}

TEST(WaitingSamples, AWriterOfABatchTakesSeveral) {
  runtime runtime({.threads = 2});
  thread_pool own({.threads = 1});
  std::atomic<int> several_at_a_time = 0;
  twice_writer writer{&several_at_a_time};
  auto samples = from(numbers{10}) |
                 map([](int i) { return sample(std::to_string(i)).with_field(field("label", i)); });
  batch_into_options options{
      .size = 4, .fields = "label", .on_error = on_error::skip, .pool = &own};
  auto batches = samples | batch_into(writer, options);
  while (several_at_a_time == 0)  // once two samples wait for the worker
    ASSERT_THAT(written(runtime, batches), ElementsAre(0, 2, 4, 6, 8, 10, 12, 16, 18));
}

TEST(WaitingSamples, AWriterThatIsOneOfSeveralTakesOne) {
  runtime runtime({.threads = 2});
  std::atomic<int> several_at_a_time = 0;
  twice_writer writer{&several_at_a_time};
  struct other : twice_writer {
    std::string_view field() const { return "other"; }
  } beside{writer};
  auto samples = from(numbers{6}) | map([](int i) { return sample(std::to_string(i)); });
  auto batches = samples | batch_into(writers(writer, beside), {.size = 3});
  EXPECT_THAT(written(runtime, batches), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(WaitingSamples, ASampleWithoutAFieldOfItsBatchFailsAlone) {
  runtime runtime({.threads = 2});
  std::atomic<int> several_at_a_time = 0;
  twice_writer writer{&several_at_a_time};
  auto samples = from(numbers{4}) | map([](int i) {
                   auto made = sample(std::to_string(i));
                   return i == 2 ? made : std::move(made).with_field(field("label", i));
                 });
  batch_into_options options{
      .size = 4, .fields = "label", .concurrency = 2, .on_error = on_error::skip};
  auto items = runtime.run(samples | batch_into(writer, options));
  EXPECT_THAT(collect(items), SizeIs(1));
  ASSERT_THAT(items.failures(), SizeIs(1));
  EXPECT_THAT(items.failures()[0].what, HasSubstr("label"));
}

}  // namespace lade::waiting_items_test
