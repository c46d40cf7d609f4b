#include <lade/async_generator.hpp>
#include <lade/detail/stages/slot_ring.hpp>
#include <lade/random.hpp>
#include <lade/scope.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>

#include "../support/live_allocations.hpp"
#include "../support/seed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lade::detail::slot_ring_test {

using testing::ElementsAre;
using testing::IsEmpty;

// An executor that runs posted jobs in run_some(). Allocates nothing for the first posts.
class manual final : public executor {
 public:
  manual() { posted_.reserve(1'000); }
  void post(job work) noexcept override { posted_.push_back(work); }
  bool run_some() noexcept override {
    if (posted() == 0) return false;
    auto next = posted_[next_++];
    next();
    return true;
  }
  void run_all() {
    while (run_some()) {}
  }
  std::size_t posted() const { return posted_.size() - next_; }

 private:
  std::vector<job> posted_;
  std::size_t next_ = 0;
};

// A ring with one of each kind of coroutine that returns when there will be no more.
struct parties {
  explicit parties(std::size_t count, std::size_t most_working = 1,
                   item_order order = item_order::input)
      : slots({.slots = count,
               .workers = most_working,
               .order = order,
               .waits_for_memory = true,
               .measures_feeders = true},
              memory, std::make_shared<demand>()) {
    slots.count_for(counters);
  }

  // Fills what it takes, as soon as it takes the next.
  static task<> feed(slot_ring& slots, std::vector<std::size_t>& taken, int most,
                     std::size_t slot = slot_ring::none) {
    while (most-- > 0) {
      slot = co_await slots.take_free(slot);
      taken.push_back(slot);
      if (slot == slot_ring::none) co_return;
    }
  }
  static task<> take_done(slot_ring& slots, std::vector<std::size_t>& taken, int most) {
    auto slot = slot_ring::none;
    while (most-- > 0) {
      slot = co_await slots.take_done(slot);
      taken.push_back(slot);
      if (slot == slot_ring::none) co_return;
    }
  }
  // Takes one slot and finishes it as soon as it runs the next time.
  task<> take_filled() {
    auto slot = slot_ring::none;
    while ((slot = co_await slots.take_filled(slot)) != slot_ring::none) worked.push_back(slot);
    worked.push_back(slot);
  }

  // Start a feeder or the consumer, or a worker: it runs inline until it parks, then on its
  // executor.
  void start(task<> party) { children_.start(run_under(here_, std::move(party))); }
  void start_worker(task<> party) {
    children_.start(run_under(workers_context_, std::move(party)));
  }

  void run_all() {
    while (home.posted() + workers_home.posted() > 0) {
      home.run_all();
      workers_home.run_all();
    }
  }

  manual home;
  manual workers_home;
  buffer_pool memory{std::size_t{1} << 20};
  stage_counters counters{"stage"};
  slot_ring slots;
  std::vector<std::size_t> fed;
  std::vector<std::size_t> worked;
  std::vector<std::size_t> delivered;

 private:
  static context at(executor& home) {
    context result;
    result.home = &home;
    return result;
  }
  static task<> run_under(const context& at, task<> party) {
    co_await with_context(at, std::move(party));
  }

  const context here_ = at(home);
  const context workers_context_ = at(workers_home);
  scope children_;
};

static constexpr auto none = slot_ring::none;

TEST(SlotRing, HandsOutEverySlotOnceAndThenParksTheFeeder) {
  parties all(4);
  all.start(parties::feed(all.slots, all.fed, 5));
  EXPECT_THAT(all.fed, ElementsAre(0, 1, 2, 3));
  all.slots.close();
  all.run_all();
  EXPECT_THAT(all.fed, ElementsAre(0, 1, 2, 3, none));
}

TEST(SlotRing, AFilledSlotWakesTheParkedWorkerOnce) {
  parties all(4);
  all.start_worker(all.take_filled());
  all.start(parties::feed(all.slots, all.fed, 3));
  EXPECT_EQ(all.workers_home.posted(), 1u);
  all.run_all();
  EXPECT_THAT(all.worked, ElementsAre(0, 1));
  all.slots.end_input();
  all.run_all();
  EXPECT_THAT(all.worked, ElementsAre(0, 1, none));
}

TEST(SlotRing, AWorkerTakesMoreOfWhatWaitsAndFinishesEachByItself) {
  parties all(4);
  all.start(parties::take_done(all.slots, all.delivered, 3));
  all.start(parties::feed(all.slots, all.fed, 4));
  auto worker = [&]() -> task<> {
    auto slot = co_await all.slots.take_filled(none);
    auto second = all.slots.take_more();
    auto third = all.slots.take_more();
    all.worked = {slot, second, third, all.slots.take_more()};
    all.slots.finish_early(second);
    all.slots.finish_early(slot);
    all.slots.finish_early(third);
    all.worked.push_back(co_await all.slots.take_filled(slot_ring::several));
  };
  all.start_worker(worker());
  EXPECT_THAT(all.worked, ElementsAre(0, 1, 2, none));
  all.run_all();
  EXPECT_THAT(all.delivered, ElementsAre(0, 1, 2));
  all.slots.end_input();
  all.run_all();
  EXPECT_THAT(all.worked, ElementsAre(0, 1, 2, none, none));
}

TEST(SlotRing, WhatIsPutBackIsTheNextForAnyWorker) {
  parties all(4, 2);
  all.start(parties::feed(all.slots, all.fed, 4));
  auto worker = [&]() -> task<> {
    auto slot = co_await all.slots.take_filled(none);
    all.slots.put_back(slot);
    all.worked.push_back(co_await all.slots.take_filled(slot_ring::several));
    all.slots.close();
  };
  all.start_worker(worker());
  EXPECT_THAT(all.worked, ElementsAre(0));
}

TEST(SlotRing, WhatIsPutBackIsInTheOrderInWhichItWasFilled) {
  parties all(4);
  all.start(parties::feed(all.slots, all.fed, 4));
  auto worker = [&]() -> task<> {
    auto& slots = all.slots;
    auto first = co_await slots.take_filled(none);
    auto second = slots.take_more();
    auto third = slots.take_more();
    for (auto each : {first, third, second}) slots.put_back(each);
    all.worked = {slots.take_more(), slots.take_more(), slots.take_more()};
    slots.close();
  };
  all.start_worker(worker());
  EXPECT_THAT(all.worked, ElementsAre(0, 1, 2));
}

TEST(SlotRing, AWorkerTakesNothingMoreThatWasFilledBeforeWhatItHas) {
  parties all(4, 2);
  all.start(parties::feed(all.slots, all.fed, 4));
  auto worker = [&]() -> task<> {
    auto& slots = all.slots;
    auto first = co_await slots.take_filled(none);
    auto second = co_await slots.take_filled(none);
    slots.put_back(first);
    all.worked = {first, second, slots.take_more(slots.number_of(second)),
                  slots.take_more(slots.number_of(first)), slots.take_more()};
    slots.close();
  };
  all.start_worker(worker());
  EXPECT_THAT(all.worked, ElementsAre(0, 1, none, 0, 2));
}

TEST(SlotRing, AWorkerTakesNoMoreBeyondItsBoundOrAfterTheEnd) {
  parties all(4, 2);
  all.start(parties::feed(all.slots, all.fed, 4));
  auto worker = [&]() -> task<> {
    co_await all.slots.take_filled(none);
    all.slots.bound(0, 4);
    all.worked.push_back(all.slots.take_more());
    all.slots.bound(1, 4);
    all.worked.push_back(all.slots.take_more());
    all.slots.close();
    all.worked.push_back(all.slots.take_more());
  };
  all.start_worker(worker());
  EXPECT_THAT(all.worked, ElementsAre(none, 1, none));
}

TEST(SlotRing, ReportsWhatItsBoundLeavesFree) {
  parties all(8, 4);
  all.slots.bound(1, 3);
  for (int i = 0; i < 4; ++i) all.start_worker(all.take_filled());
  auto now = [&] { return all.slots.look([](auto, auto) { return item_overview(); }); };
  EXPECT_EQ(now().slots, 3u);
  EXPECT_EQ(now().free, 3u);
  EXPECT_EQ(now().idle_workers, 1u);
  all.start(parties::feed(all.slots, all.fed, 8));
  EXPECT_EQ(now().free, 0u);
  EXPECT_EQ(now().idle_workers, 0u);
  EXPECT_EQ(now().feeder, detail::stage_overview::feeding::waits_for_slot);
  all.slots.close();
  all.run_all();
}

TEST(SlotRing, AWorkerWithSeveralSlotsCountsOnceToTheBound) {
  parties all(6, 2);
  all.slots.bound(1, 6);
  all.start(parties::feed(all.slots, all.fed, 6));
  std::vector<std::size_t> first;
  auto worker = [&]() -> task<> {
    first.push_back(co_await all.slots.take_filled(none));
    all.start_worker(all.take_filled());
    for (int i = 0; i < 2; ++i) first.push_back(all.slots.take_more());
    all.slots.put_back(first.back());
    for (int i = 0; i < 2; ++i) all.slots.finish_early(first[static_cast<std::size_t>(i)]);
    EXPECT_EQ(all.workers_home.posted(), 0u);
    first.push_back(co_await all.slots.take_filled(slot_ring::several));
    EXPECT_EQ(all.workers_home.posted(), 0u);
    all.slots.bound(2, 6);
    EXPECT_EQ(all.workers_home.posted(), 1u);
  };
  all.start_worker(worker());
  EXPECT_THAT(first, ElementsAre(0, 1, 2, 2));
  all.slots.end_input();
  all.run_all();
  EXPECT_THAT(all.worked, ElementsAre(3, 4, none));
}

TEST(SlotRing, DeliversInInputOrder) {
  parties all(4);
  all.start(parties::feed(all.slots, all.fed, 4));
  all.start(parties::take_done(all.slots, all.delivered, 9));
  all.start_worker(all.take_filled());
  all.slots.end_input();
  all.run_all();
  EXPECT_THAT(all.delivered, ElementsAre(0, 1, 2, none));
}

TEST(SlotRing, WithoutMemoryStartsOnlyTheItemThatTheConsumerWaitsFor) {
  parties all(4);
  auto too_much = all.memory.allocate_now(2 * all.memory.stats().limit_bytes);
  all.start(parties::feed(all.slots, all.fed, 5));
  EXPECT_THAT(all.fed, IsEmpty());
  all.start(parties::take_done(all.slots, all.delivered, 1));
  all.run_all();
  EXPECT_THAT(all.fed, ElementsAre(0));
  all.slots.close();
  all.run_all();
}

TEST(SlotRing, StartsNoMoreItemsThanFitIntoFreeMemory) {
  parties all(8);
  all.start(parties::feed(all.slots, all.fed, 1));
  all.counters.record_at_once(all.memory.stats().limit_bytes / 2);
  all.start(parties::feed(all.slots, all.fed, 5));
  EXPECT_THAT(all.fed, ElementsAre(0, 1));
  all.slots.close();
  all.run_all();
}

// Puts items of these sizes into a ring. Those of size 0 have no result.
static task<> feed_bytes(slot_ring& slots, const std::vector<std::uint64_t>& sizes,
                         std::size_t& started) {
  auto filled = none;
  for (auto size : sizes) {
    filled = co_await slots.take_free(filled);
    if (filled == none) co_return;  // closed
    if (size > 0) slots.record_bytes(filled, size);
    ++started;
  }
  slots.fill(filled);
  slots.end_input();
}

static task<> take_slots(slot_ring& slots, std::size_t count, std::size_t& last) {
  for (; count > 0; --count) last = co_await slots.take_done(last);
}

TEST(SlotRing, StartsTheItemsThatFitIntoItsLimitInBytes) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (std::uint64_t round = 0; round < 200; ++round) {
    random draw(seed, round);
    std::vector<std::uint64_t> sizes(1 + draw.below(40));
    for (auto& each : sizes) each = draw.below(3) == 0 ? 0 : draw.below(30);
    const auto limit = draw.below(200);
    buffer_pool memory(1'000);
    stage_counters counters("stage");
    slot_ring slots({.slots = 64, .bytes = limit}, memory, std::make_shared<demand>());
    slots.count_for(counters);
    std::size_t started = 0;
    auto last = none;
    scope parties;
    parties.start(feed_bytes(slots, sizes, started));
    std::size_t wanted = 0;  // items that must have started
    std::uint64_t waiting = 0;
    std::uint64_t largest = 0;
    for (std::size_t taken = 0; taken < sizes.size(); ++taken) {
      while (wanted < sizes.size() && (wanted == taken || waiting + largest <= limit)) {
        largest = std::max(largest, sizes[wanted]);
        waiting += sizes[wanted++];
      }
      EXPECT_EQ(started, wanted) << "round " << round << ", item " << taken;
      if (HasFailure()) return slots.close();
      parties.start(take_slots(slots, 1, last));
      waiting -= sizes[taken];
    }
    EXPECT_EQ(slots.count().done, 0u);
  }
}

TEST(SlotRing, StartsOneItemPerWorkerUntilAResultReportsItsBytes) {
  buffer_pool memory(1'000);
  stage_counters counters("stage");
  slot_ring slots({.slots = 64, .workers = 3, .bytes = 1'000}, memory, std::make_shared<demand>());
  slots.count_for(counters);
  std::size_t started = 0;
  const std::vector<std::uint64_t> sizes(10, 100);
  scope parties;
  parties.start(feed_bytes(slots, sizes, started));
  EXPECT_EQ(started, 3u);
  slots.finish_early(slots.take_more());
  EXPECT_EQ(started, 10u);  // though no result has been taken
  slots.close();
}

TEST(SlotRing, WakesTheFeederWhenAQuarterIsFree) {
  parties all(8, 4);
  all.start(parties::feed(all.slots, all.fed, 9));
  all.start_worker(all.take_filled());
  all.start(parties::take_done(all.slots, all.delivered, 2));
  all.run_all();
  EXPECT_EQ(all.fed.size(), 8u);
  all.start(parties::take_done(all.slots, all.delivered, 1));
  all.run_all();
  all.slots.close();
  all.run_all();
}

TEST(SlotRing, KeepsAsManySlotsInUseAsThereAreWorkers) {
  parties all(8, 8);
  all.start(parties::feed(all.slots, all.fed, 9));
  all.start_worker(all.take_filled());
  all.start(parties::take_done(all.slots, all.delivered, 2));
  all.run_all();
  EXPECT_EQ(all.fed.size(), 9u);  // one is free, and the feeder has it
  all.slots.close();
  all.run_all();
}

TEST(SlotRing, CloseEndsAllThatWaitAndAllThatComeLater) {
  parties all(1);
  all.start(parties::feed(all.slots, all.fed, 1));
  all.start_worker(all.take_filled());
  all.start(parties::take_done(all.slots, all.delivered, 2));
  all.slots.close();
  all.run_all();
  EXPECT_THAT(all.worked, ElementsAre(none));
  EXPECT_THAT(all.delivered, ElementsAre(none));
  all.start(parties::feed(all.slots, all.fed, 2, all.fed.front()));
  all.start_worker(all.take_filled());
  all.start(parties::take_done(all.slots, all.delivered, 1));
  all.run_all();
  EXPECT_THAT(all.fed, ElementsAre(0, none));
  EXPECT_THAT(all.worked, ElementsAre(none, none));
  EXPECT_THAT(all.delivered, ElementsAre(none, none));
}

// Fills `count` slots one after the other. Sets `allocated` to the number of allocations meanwhile.
static task<> fill_many(slot_ring& slots, int count, std::uint64_t& allocated) {
  auto before = test::allocations_made();
  auto slot = none;
  while (count-- > 0) slot = co_await slots.take_free(slot);
  allocated = test::allocations_made() - before;
}

TEST(SlotRing, AllocatesNothingForItsItems) {
  for (auto order : {item_order::input, item_order::completion}) {
    parties all(500, 1, order);
    std::uint64_t while_filled = 1;
    all.start(fill_many(all.slots, 500, while_filled));
    EXPECT_EQ(while_filled, 0u);
    all.worked.reserve(500);
    all.start_worker(all.take_filled());
    auto before = test::allocations_made();
    all.run_all();
    EXPECT_EQ(test::allocations_made() - before, 0u);
    EXPECT_EQ(all.worked.size(), 499u);
    all.slots.close();
    all.run_all();
  }
}

TEST(SlotRing, LosesNoWorkerThatABoundLetsStartWithoutMemory) {
  parties all(200, 100);
  all.slots.bound(0, 200);
  for (int i = 0; i < 100; ++i) all.start_worker(all.take_filled());
  all.start(parties::feed(all.slots, all.fed, 101));
  EXPECT_EQ(all.workers_home.posted(), 0u);
  {
    test::failing_allocation first(0);
    all.slots.bound(100, 200);
    EXPECT_FALSE(first.has_failed());
  }
  EXPECT_EQ(all.workers_home.posted(), 100u);
  all.slots.end_input();
  all.run_all();
  EXPECT_EQ(all.worked.size(), 200u);  // each at last without a slot
}

TEST(SlotRing, EndOfInputWakesTheConsumerOfAnEmptyRing) {
  parties all(2);
  all.start(parties::take_done(all.slots, all.delivered, 2));
  EXPECT_THAT(all.delivered, IsEmpty());
  all.slots.end_input();
  all.run_all();
  EXPECT_THAT(all.delivered, ElementsAre(none));
}

TEST(SlotRing, ItemsThatNeedNoWorkGoStraightToTheConsumer) {
  parties all(2, 0);
  for (int i = 0; i < 2; ++i) all.start(parties::feed(all.slots, all.fed, 1));
  all.start(parties::take_done(all.slots, all.delivered, 9));
  all.slots.fill(0);
  all.slots.fill(1);
  all.slots.end_input();
  all.run_all();
  EXPECT_THAT(all.delivered, ElementsAre(0, 1, none));
}

}  // namespace lade::detail::slot_ring_test
