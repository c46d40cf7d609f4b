// Every order in which the feeders, the workers and the consumer of a slot_ring meet: see
// coroutines/interleavings_test.cpp.

#include <lade/buffer_pool.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/detail/observability/overview.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/runtime/executor.hpp>
#include <lade/detail/stages/slot_ring.hpp>
#include <lade/error.hpp>
#include <lade/item_order.hpp>
#include <lade/memory_resource.hpp>
#include <lade/semaphore.hpp>
#include <lade/task.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include "../support/interleavings.hpp"
#include "../support/started.hpp"

namespace lade {

// No test allocates memory of a pool.
class no_memory final : public memory_resource {
  void* allocate(std::size_t, std::size_t) override { throw std::bad_alloc(); }
  void deallocate(void*, std::size_t, std::size_t) noexcept override {}
  std::string_view name() const noexcept override { return "none"; }
};
memory_resource& host_memory() noexcept {
  static no_memory memory;
  return memory;
}
buffer_pool::buffer_pool(std::size_t, memory_resource&) {}

// The memory budget of all pools while the object exists, at most one at a time. Without it no pool
// has a limit.
class scarce_memory {
 public:
  explicit scarce_memory(std::size_t limit) : limit_(limit) { current = this; }
  scarce_memory(const scarce_memory&) = delete;
  ~scarce_memory() { current = nullptr; }

  // The condition of a buffer_pool.
  bool would_wait(std::size_t bytes, std::size_t buffers) noexcept {
    const bool alone = used_ == 0 && buffers == 1;
    const bool fits = used_ <= limit_ && bytes <= (limit_ - used_) / buffers;
    if (!alone && !fits) ++refused_;
    return !alone && !fits;
  }

  // use() takes bytes even beyond the limit.
  void use(std::size_t bytes) noexcept {
    used_ += bytes;
    peak_ = std::max(peak_, used_);
  }
  void free(std::size_t bytes) noexcept { used_ -= bytes; }

  // Waits until the item of the claim is urgent. One coroutine at a time.
  task<> wait_until_urgent(const detail::memory_claim& claim) {
    waiting_ = &claim;
    reconsider();
    co_await granted_.acquire();
  }
  void reconsider() {
    if (!waiting_ || !waiting_->is_urgent()) return;
    waiting_ = nullptr;
    granted_.release();
  }

  std::size_t peak() const noexcept { return peak_; }
  int refused() const noexcept { return refused_; }  // number of calls that returned true

  static inline scarce_memory* current = nullptr;

 private:
  const std::size_t limit_;
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
  int refused_ = 0;
  const detail::memory_claim* waiting_ = nullptr;
  semaphore granted_{0};
};

bool buffer_pool::would_wait(std::size_t bytes, std::size_t buffers) const noexcept {
  auto* memory = scarce_memory::current;
  return memory && memory->would_wait(bytes, buffers);
}
void buffer_pool::reconsider() const noexcept {
  if (auto* memory = scarce_memory::current) memory->reconsider();
}

using test::in_all_orders;
using test::interleaving;
using test::started;

// A ring of slots, whose contents are numbers. An item uses one byte of the budget until the
// consumer takes it.
struct number_ring {
  explicit number_ring(const detail::slot_ring_options& options, std::size_t limit_bytes = 1'000)
      : budget(limit_bytes),
        slots(options, memory, std::make_shared<detail::demand>()),
        contents(options.slots),
        limits_bytes(options.bytes != detail::unlimited_bytes) {
    slots.count_for(counters);
    counters.record_at_once(1);
  }

  static constexpr auto none = detail::slot_ring::none;

  // Fills slots with numbers from `first` on, as many as there are.
  static task<> feed(number_ring& ring, int first, int count) {
    auto filled = none;
    for (int i = 0; i < count; ++i) {
      auto slot = co_await ring.slots.take_free(filled);
      if (slot == none) co_return;
      ring.contents[slot] = first + i;
      if (ring.limits_bytes) ring.slots.record_bytes(slot, 1);
      ring.budget.use(1);
      filled = slot;
    }
    ring.slots.fill(filled);
    if (++ring.feeders_ended == ring.feeders) ring.slots.end_input();
  }

  // As the drain of a link: has a free slot when its input ends, and returns it.
  static task<> drain(number_ring& ring, int first, int count) {
    auto filled = none;
    for (int i = 0; true; ++i) {
      auto slot = co_await ring.slots.take_free(filled);
      if (slot == none) co_return;
      if (i == count) {
        ring.slots.return_free(slot);
        break;
      }
      ring.contents[slot] = first + i;
      ring.budget.use(1);
      filled = slot;
    }
    if (++ring.feeders_ended == ring.feeders) ring.slots.end_input();
  }

  static task<> work(number_ring& ring) {
    auto slot = none;
    while ((slot = co_await ring.slots.take_filled(slot)) != none) ring.compute(slot);
  }

  // Works on up to two items at once, and finishes the second one first.
  static task<> work_on_two(number_ring& ring) {
    auto slot = none;
    while ((slot = co_await ring.slots.take_filled(slot)) != none) {
      auto second = ring.take_second(slot);
      if (second != none) {
        ring.compute(second);
        ring.slots.finish_early(second);
      }
      ring.compute(slot);
      ring.slots.finish_early(slot);
      slot = detail::slot_ring::several;
    }
  }

  // Leaves the consumer to an idle thread of its executor.
  static task<> work_and_post(number_ring& ring) {
    auto slot = none;
    while ((slot = co_await ring.slots.take_filled(slot, true)) != none) ring.compute(slot);
  }

  // Takes a second item each time, and puts it back.
  static task<> put_back_second(number_ring& ring) {
    auto slot = none;
    while ((slot = co_await ring.slots.take_filled(slot)) != none) {
      auto second = ring.take_second(slot);
      if (second != none) ring.slots.put_back(second);
      ring.compute(slot);
      ring.slots.finish_early(slot);
      slot = detail::slot_ring::several;
    }
  }

  // Works on an item when it is urgent.
  static task<> work_when_urgent(number_ring& ring) {
    detail::memory_claim claim(ring.slots.wanted());
    auto slot = none;
    while ((slot = co_await ring.slots.take_filled(slot)) != none) {
      claim.set_item(slot);
      co_await ring.budget.wait_until_urgent(claim);
      ring.contents[slot] *= 10;
    }
  }

  static task<> consume(number_ring& ring) {
    auto slot = std::exchange(ring.owned, none);
    while ((slot = co_await ring.slots.take_done(slot)) != none) ring.take(slot);
  }

  // Takes one slot. It can be stopped.
  static task<> take_one(number_ring& ring) {
    ring.owned = co_await ring.slots.take_done_or_stop(std::exchange(ring.owned, none));
    if (ring.owned != none) ring.take(ring.owned);
  }

  // Takes slots until a stop, and then the others. Waits for those without a stop.
  static task<> consume_despite_stop(number_ring& ring) {
    auto slot = none;
    try {
      while ((slot = co_await ring.slots.take_done_or_stop(std::exchange(slot, none))) != none)
        ring.take(slot);
      co_return;
    } catch (const error& stopped) {
      EXPECT_EQ(stopped.code(), errc::stopped);
      ++ring.stops;
    }
    while ((slot = co_await ring.slots.take_done(slot)) != none) ring.take(slot);
  }

  // The work on an item. The result of item 1 may have another size than the others.
  void compute(std::size_t slot) {
    if (limits_bytes) slots.record_bytes(slot, contents[slot] == 1 ? bytes_of_first : 1);
    contents[slot] *= 10;
  }

  // For a worker that owns `slot`: another one that was filled after it, or `none`.
  std::size_t take_second(std::size_t slot) {
    const auto number = slots.number_of(slot);
    const auto second = slots.take_more(number);
    if (second == none) return none;
    ++seconds;
    EXPECT_GT(slots.number_of(second), number);
    return second;
  }

  void take(std::size_t slot) {
    taken.push_back(contents[slot]);
    budget.free(1);
  }

  scarce_memory budget;
  buffer_pool memory;
  detail::stage_counters counters{"stage"};
  detail::slot_ring slots;
  std::vector<int> contents;
  std::size_t owned = none;  // by the consumer, between two coroutines
  std::vector<int> taken;
  const bool limits_bytes;  // then each item counts as one byte, except the first
  std::uint64_t bytes_of_first = 1;
  int feeders = 1;
  int feeders_ended = 0;
  int seconds = 0;  // slots that take_more() has returned
  int stops = 0;    // waits of the consumer that a stop has ended
};

TEST(RingInterleavings, ARingDeliversWhatItsWorkerFinishesInOrder) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 1, .workers = 1});
    started feeder(number_ring::feed(ring, 1, 2)), worker(number_ring::work(ring)),
        consumer(number_ring::consume(ring));
    order.run({[&] { feeder.start(); }, [&] { worker.start(); }, [&] { consumer.start(); }});
    EXPECT_TRUE(feeder.finished() && worker.finished() && consumer.finished());
    EXPECT_EQ(ring.taken, (std::vector{10, 20}));
  });
}

// Each of two feeders brings an item.
using feeder_of = task<> (*)(number_ring&, int first, int count);
static void deliver_from_two_feeders(feeder_of feed, const detail::slot_ring_options& options) {
  in_all_orders([&](interleaving& order) {
    number_ring ring(options);
    ring.feeders = 2;
    started first(feed(ring, 1, 1)), second(feed(ring, 10, 1)),
        consumer(number_ring::consume(ring));
    order.run({[&] { first.start(); }, [&] { second.start(); }, [&] { consumer.start(); }});
    EXPECT_TRUE(first.finished() && second.finished() && consumer.finished());
    EXPECT_THAT(ring.taken, testing::UnorderedElementsAre(1, 10));
  });
}

TEST(RingInterleavings, ARingDeliversWhatTwoFeedersBring) {
  deliver_from_two_feeders(number_ring::feed, {.slots = 1, .feeders = 2});
}

TEST(RingInterleavings, AFeederGetsTheSlotThatAnotherReturnsAtItsEnd) {
  deliver_from_two_feeders(number_ring::drain, {.slots = 1, .feeders = 2});
}

TEST(RingInterleavings, AStopOfTheConsumerOfARingLosesNoSlot) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 1});
    started feeder(number_ring::feed(ring, 1, 1)), consumer(number_ring::take_one(ring));
    order.run({[&] { feeder.start(); }, [&] { consumer.start(); }, [&] { consumer.stop(); }});
    EXPECT_TRUE(feeder.finished());
    EXPECT_TRUE(consumer.ended());
    EXPECT_EQ(ring.slots.count().done + ring.taken.size(), 1u);
    EXPECT_EQ(consumer.finished(), ring.taken.size() == 1);
  });
}

TEST(RingInterleavings, AStopOfAConsumerThatOwnsASlotLosesNoSlotAndLetsNoFeederWorkFurtherAhead) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 2, .consumer_owns_slot = true});
    ring.owned = ring.slots.take_first_slot();
    started feeder(number_ring::feed(ring, 1, 3)), stopped(number_ring::take_one(ring)),
        consumer(number_ring::consume(ring));
    order.run({[&] { feeder.start(); }, [&] { stopped.start(); }, [&] { stopped.stop(); }});
    EXPECT_TRUE(stopped.ended());
    EXPECT_EQ(stopped.finished(), ring.owned != number_ring::none);
    EXPECT_EQ(ring.slots.count().done, 1u);
    consumer.start();
    EXPECT_TRUE(feeder.finished() && consumer.finished());
    EXPECT_EQ(ring.taken, (std::vector{1, 2, 3}));
  });
}

TEST(RingInterleavings, TheEndOfTheInputOfARingEndsAllThatWait) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 1, .workers = 1});
    started feeder(number_ring::feed(ring, 1, 3)), consumer(number_ring::consume(ring));
    order.run(
        {[&] { feeder.start(); }, [&] { consumer.start(); }, [&] { ring.slots.end_input(); }});
    started worker(number_ring::work(ring));
    worker.start();
    EXPECT_TRUE(feeder.finished() && worker.finished() && consumer.finished());
    EXPECT_LE(ring.taken.size(), 1u);
  });
}

TEST(RingInterleavings, ARingThatWakesItsFeederForSeveralSlotsLosesNoWakeUp) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 8});
    started feeder(number_ring::feed(ring, 0, 11)), consumer(number_ring::consume(ring));
    feeder.start();  // until the ring is full
    order.run({[&] { consumer.start(); }, [&] { ring.slots.bound(0, 4); }});
    ring.slots.bound(0, 8);
    EXPECT_TRUE(feeder.finished() && consumer.finished());
    EXPECT_EQ(ring.taken.size(), 11u);
  });
}

TEST(RingInterleavings, ACloseEndsAllThatWaitInARing) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 1, .workers = 1});
    started feeder(number_ring::feed(ring, 1, 2)), worker(number_ring::work(ring)),
        consumer(number_ring::consume(ring));
    order.run({[&] { feeder.start(); }, [&] { consumer.start(); }, [&] { ring.slots.close(); }});
    worker.start();
    EXPECT_TRUE(feeder.finished() && worker.finished() && consumer.finished());
  });
}

TEST(RingInterleavings, ARingWithoutMemoryDeliversOneItemAtATime) {
  int refused = 0;
  in_all_orders([&](interleaving& order) {
    number_ring ring({.slots = 2, .workers = 1, .waits_for_memory = true}, 1);
    ring.budget.use(1);
    started feeder(number_ring::feed(ring, 1, 2)), worker(number_ring::work(ring)),
        consumer(number_ring::consume(ring));
    order.run({[&] { feeder.start(); }, [&] { worker.start(); }, [&] { consumer.start(); }});
    EXPECT_TRUE(feeder.finished() && worker.finished() && consumer.finished());
    EXPECT_EQ(ring.taken, (std::vector{10, 20}));
    EXPECT_EQ(ring.budget.peak(), 2u);
    refused += ring.budget.refused();
  });
  EXPECT_GT(refused, 0);
}

TEST(RingInterleavings, MemoryThatBecomesFreeWhileTheFeederOfARingWaitsForItLosesNoWakeUp) {
  int refused = 0;
  in_all_orders([&](interleaving& order) {
    number_ring ring({.slots = 2, .waits_for_memory = true}, 2);
    ring.budget.use(2);
    started feeder(number_ring::feed(ring, 1, 3)), consumer(number_ring::consume(ring));
    order.run({[&] { feeder.start(); }, [&] { consumer.start(); }, [&] { ring.budget.free(2); }});
    EXPECT_TRUE(feeder.finished() && consumer.finished());
    EXPECT_EQ(ring.taken, (std::vector{1, 2, 3}));
    refused += ring.budget.refused();
  });
  EXPECT_GT(refused, 0);
}

TEST(RingInterleavings, ARingThatWakesItsFeederForSeveralSlotsLosesNoWakeUpForMemory) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 8, .waits_for_memory = true}, 4);
    ring.budget.use(1);
    started feeder(number_ring::feed(ring, 0, 7)), consumer(number_ring::consume(ring));
    feeder.start();  // until the memory is used up
    EXPECT_EQ(ring.slots.count().done, 3u);
    order.run({[&] { consumer.start(); }, [&] { ring.budget.free(1); }});
    EXPECT_TRUE(feeder.finished() && consumer.finished());
    EXPECT_EQ(ring.taken.size(), 7u);
  });
}

TEST(RingInterleavings, AStopOfTheConsumerOfARingWithoutMemoryLosesNoSlotAndNoWakeUp) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 2, .waits_for_memory = true}, 1);
    ring.budget.use(1);
    started feeder(number_ring::feed(ring, 1, 2)), stopped(number_ring::take_one(ring)),
        consumer(number_ring::consume(ring));
    order.run({[&] { feeder.start(); }, [&] { stopped.start(); }, [&] { stopped.stop(); }});
    EXPECT_TRUE(stopped.ended());
    consumer.start();
    EXPECT_TRUE(feeder.finished() && consumer.finished());
    EXPECT_EQ(ring.taken, (std::vector{1, 2}));
  });
}

TEST(RingInterleavings, ACloseEndsAFeederOfARingThatWaitsForMemory) {
  int refused = 0;
  in_all_orders([&](interleaving& order) {
    number_ring ring({.slots = 2, .workers = 1, .waits_for_memory = true}, 1);
    ring.budget.use(1);
    started feeder(number_ring::feed(ring, 1, 2)), worker(number_ring::work(ring)),
        consumer(number_ring::consume(ring));
    order.run({[&] { feeder.start(); }, [&] { consumer.start(); }, [&] { ring.slots.close(); }});
    worker.start();
    EXPECT_TRUE(feeder.finished() && worker.finished() && consumer.finished());
    refused += ring.budget.refused();
  });
  EXPECT_GT(refused, 0);
}

// The feeder begins the next item while the consumer takes one.
TEST(RingInterleavings, ARingWithALimitInBytesHoldsOneItemAtATimeAndLosesNoWakeUp) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 4, .workers = 1, .bytes = 1});
    started feeder(number_ring::feed(ring, 1, 3)), worker(number_ring::work(ring)),
        consumer(number_ring::consume(ring));
    order.run({[&] { feeder.start(); }, [&] { worker.start(); }, [&] { consumer.start(); }});
    EXPECT_TRUE(feeder.finished() && worker.finished() && consumer.finished());
    EXPECT_EQ(ring.taken, (std::vector{10, 20, 30}));
    EXPECT_LE(ring.budget.peak(), 2u);
  });
}

TEST(RingInterleavings, ARingWithALimitInBytesDeliversWhatTwoFeedersBring) {
  deliver_from_two_feeders(number_ring::feed, {.slots = 4, .feeders = 2, .bytes = 1});
}

TEST(RingInterleavings, ACloseEndsAFeederOfARingThatHasReachedItsLimitInBytes) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 4, .bytes = 1});
    started feeder(number_ring::feed(ring, 1, 3)), consumer(number_ring::consume(ring));
    order.run({[&] { feeder.start(); }, [&] { consumer.start(); }, [&] { ring.slots.close(); }});
    EXPECT_TRUE(feeder.finished() && consumer.finished());
  });
}

// A worker that waits for memory until its item is urgent. Either the feeder or the consumer starts
// before the threads that interleave.
static void work_on_urgent_items(bool feeder_is_first) {
  in_all_orders([&](interleaving& order) {
    number_ring ring({.slots = 2, .workers = 1});
    started feeder(number_ring::feed(ring, 1, 2)), worker(number_ring::work_when_urgent(ring)),
        consumer(number_ring::consume(ring));
    auto& first = feeder_is_first ? feeder : consumer;
    auto& second = feeder_is_first ? consumer : feeder;
    first.start();
    order.run({[&] { second.start(); }, [&] { worker.start(); }});
    EXPECT_TRUE(feeder.finished() && worker.finished() && consumer.finished());
    EXPECT_EQ(ring.taken, (std::vector{10, 20}));
  });
}

TEST(RingInterleavings, AWorkerThatWaitsForMemoryGetsItWhenTheConsumerWaitsForItsItem) {
  work_on_urgent_items(true);
}

TEST(RingInterleavings, AWorkerGetsMemoryForAnItemThatTheConsumerHasWaitedForBeforeItWasFilled) {
  work_on_urgent_items(false);
}

// A ring with two workers.
struct worked_ring : number_ring {
  using worker = task<> (*)(number_ring&);
  using party = started worked_ring::*;  // one of the coroutines

  worked_ring(const detail::slot_ring_options& options, worker first, worker second, int count,
              std::size_t limit_bytes)
      : number_ring(options, limit_bytes),
        order(options.order),
        items(count),
        feeder(drain(*this, 1, count)),
        one(first(*this)),
        other(second(*this)),
        stopped(take_one(*this)),
        consumer(consume(*this)) {}

  void expect_all_ended() {
    EXPECT_TRUE(feeder.finished() && one.finished() && other.finished() && consumer.finished());
  }

  // Each item was delivered once, in the right order. Nothing is left in the ring.
  void expect_all_delivered() {
    expect_some_delivered();
    EXPECT_EQ(taken.size(), static_cast<std::size_t>(items));
    const auto now = look();
    EXPECT_EQ(now.free, now.slots);
    EXPECT_EQ(now.idle_workers, 0u);
    EXPECT_FALSE(now.wanted);
    EXPECT_TRUE(now.items.empty());
  }

  // No item was delivered twice. In the order of the input, none was left out.
  void expect_some_delivered() {
    if (order == item_order::completion) std::ranges::sort(taken);
    int before = 0;
    for (int number : taken) {
      EXPECT_TRUE(order == item_order::input ? number == before + 10 : number > before);
      before = number;
    }
  }

  detail::stage_overview look() const {
    return slots.look([](std::size_t, bool) { return detail::item_overview(); });
  }

  const item_order order;
  const int items;
  started feeder;
  started one;
  started other;
  started stopped;  // a consumer that takes one item
  started consumer;
};

// Tests of rings with two workers. The parties of a test are a feeder, the workers, a consumer, and
// often a thread that does something else meanwhile. There are too many orders of all their locks:
// the number of preemptions is limited.
struct two_workers {
  using step = std::function<void(worked_ring&)>;

  // Calls `meanwhile` on a separate thread unless it is null, and `check` at the end of each run.
  // Both orders of items, and all kinds of workers.
  void run(const step& meanwhile, const step& check) {
    options.workers = 2;
    int seconds = 0;
    auto count_seconds = [&](worked_ring& ring) {
      check(ring);
      seconds += ring.seconds;
    };
    for (auto order : {item_order::input, item_order::completion}) {
      options.order = order;
      run(number_ring::work, number_ring::work, meanwhile, count_seconds);
      run(number_ring::work_on_two, number_ring::work_on_two, meanwhile, count_seconds);
      run(number_ring::put_back_second, number_ring::work_on_two, meanwhile, count_seconds);
    }
    EXPECT_GT(seconds, 0);
  }

  // One of the parties is started before the threads of the others.
  void run(worked_ring::worker first, worked_ring::worker second, const step& meanwhile,
           const step& check) {
    for (auto early : {&worked_ring::feeder, &worked_ring::one, consumer})
      test::in_orders_of_preemptions(preemptions, [&](interleaving& order) {
        worked_ring ring(options, first, second, items, limit_bytes);
        prepare(ring);
        (ring.*early).start();
        std::vector<std::function<void()>> threads;
        for (auto each : {&worked_ring::feeder, &worked_ring::one, &worked_ring::other, consumer})
          if (each != early) threads.push_back([&ring, each] { (ring.*each).start(); });
        if (meanwhile) threads.push_back([&] { meanwhile(ring); });
        order.run(threads);
        check(ring);
      });
  }

  detail::slot_ring_options options;  // `workers` and `order` are set by run()
  std::size_t preemptions = 1;
  int items = 3;
  std::size_t limit_bytes = 1'000;
  worked_ring::party consumer = &worked_ring::consumer;
  step prepare = [](worked_ring&) {};
};

static void expect_all(worked_ring& ring) {
  ring.expect_all_ended();
  ring.expect_all_delivered();
}

// Two workers and a consumer, in all orders. The ring holds all items before.
static void deliver_two_items(worked_ring::worker first, worked_ring::worker second) {
  for (auto order_of_items : {item_order::input, item_order::completion})
    in_all_orders([&](interleaving& order) {
      worked_ring ring({.slots = 3, .workers = 2, .order = order_of_items}, first, second, 2,
                       1'000);
      ring.feeder.start();
      order.run(
          {[&] { ring.one.start(); }, [&] { ring.other.start(); }, [&] { ring.consumer.start(); }});
      expect_all(ring);
    });
}

TEST(RingInterleavings, TwoWorkersDeliverEachItemOnce) {
  deliver_two_items(number_ring::work, number_ring::work);
}

TEST(RingInterleavings, AWorkerThatTakesSeveralItemsDeliversEachOnce) {
  deliver_two_items(number_ring::work_on_two, number_ring::work);
}

TEST(RingInterleavings, AnItemThatAWorkerPutsBackIsDeliveredOnce) {
  deliver_two_items(number_ring::put_back_second, number_ring::work);
}

// The first worker puts back item 2 while the other one holds item 3. See take_second().
TEST(RingInterleavings, AWorkerTakesNoSecondItemThatWasFilledBeforeItsFirst) {
  test::in_orders_of_preemptions(3, [](interleaving& order) {
    worked_ring ring({.slots = 4, .workers = 2}, number_ring::put_back_second,
                     number_ring::work_on_two, 3, 1'000);
    ring.feeder.start();
    order.run({[&] { ring.one.start(); }, [&] { ring.other.start(); }});
    ring.consumer.start();
    expect_all(ring);
  });
}

// Puts back a second item, and ends without having finished the first.
static task<> put_back_and_hold(number_ring& ring) {
  auto slot = co_await ring.slots.take_filled(number_ring::none);
  if (slot == number_ring::none) co_return;
  auto second = ring.take_second(slot);
  if (second != number_ring::none) ring.slots.put_back(second);
}

TEST(RingInterleavings, AnItemThatIsPutBackWakesAnotherWorker) {
  int seconds = 0;
  in_all_orders([&](interleaving& order) {
    number_ring ring({.slots = 2, .workers = 2});
    started feeder(number_ring::drain(ring, 1, 2)), holder(put_back_and_hold(ring)),
        worker(number_ring::work(ring));
    feeder.start();  // until the ring is full
    order.run({[&] { holder.start(); }, [&] { worker.start(); }});
    EXPECT_EQ(ring.slots.count().waiting, 0u);
    ring.slots.close();
    EXPECT_TRUE(feeder.finished() && holder.finished() && worker.finished());
    seconds += ring.seconds;
  });
  EXPECT_GT(seconds, 0);
}

TEST(RingInterleavings, ARingWithTwoWorkersAndFewerSlotsThanItemsDeliversEachItemOnce) {
  two_workers test{.options = {.slots = 2}, .preemptions = 2};
  test.run(nullptr, expect_all);
}

static void close(worked_ring& ring) { ring.slots.close(); }

static void expect_closed(worked_ring& ring) {
  ring.expect_all_ended();
  ring.expect_some_delivered();
}

TEST(RingInterleavings, ACloseEndsAllThatWaitInARingWithTwoWorkers) {
  two_workers test{.options = {.slots = 2}};
  test.run(close, expect_closed);
}

static void stop(worked_ring& ring) { ring.stopped.stop(); }

// Another consumer takes the items that the stopped one has left.
static void expect_stopped(worked_ring& ring) {
  EXPECT_TRUE(ring.stopped.ended());
  EXPECT_EQ(ring.stopped.finished(), ring.taken.size() == 1);
  EXPECT_FALSE(ring.look().wanted);
  ring.consumer.start();
  expect_all(ring);
}

TEST(RingInterleavings, AStopOfTheConsumerLosesNoItemOfTwoWorkers) {
  two_workers test{.options = {.slots = 2}, .consumer = &worked_ring::stopped};
  test.run(stop, expect_stopped);
}

TEST(RingInterleavings, BoundsThatAreLoweredDuringWorkLoseNoWakeUp) {
  two_workers test{.options = {.slots = 3}};
  test.run([](worked_ring& ring) { ring.slots.bound(1, 1); }, expect_all);
}

TEST(RingInterleavings, BoundsThatAreRaisedDuringWorkLoseNoWakeUp) {
  two_workers test{.options = {.slots = 3},
                   .prepare = [](worked_ring& ring) { ring.slots.bound(1, 1); }};
  test.run([](worked_ring& ring) { ring.slots.bound(2, 3); }, expect_all);
}

// Takes an item and does not finish it.
static task<> hold_one(number_ring& ring) { co_await ring.slots.take_filled(number_ring::none); }

TEST(RingInterleavings, ARaisedBoundWakesAWorkerForAnItemThatWaits) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 2, .workers = 2});
    ring.slots.bound(1, 2);
    started feeder(number_ring::drain(ring, 1, 2)), holder(hold_one(ring)),
        worker(number_ring::work(ring));
    feeder.start();
    holder.start();
    order.run({[&] { worker.start(); }, [&] { ring.slots.bound(2, 2); }});
    EXPECT_EQ(ring.slots.count().done, 1u);
    ring.slots.close();
    EXPECT_TRUE(feeder.finished() && holder.finished() && worker.finished());
  });
}

TEST(RingInterleavings, ARaisedBoundWakesTheFeederForASlot) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 2, .workers = 1});
    ring.slots.bound(1, 1);
    started feeder(number_ring::drain(ring, 1, 2)), worker(number_ring::work(ring));
    order.run({[&] { feeder.start(); }, [&] { worker.start(); }, [&] { ring.slots.bound(1, 2); }});
    EXPECT_EQ(ring.slots.count().done, 2u);
    ring.slots.close();
    EXPECT_TRUE(feeder.finished() && worker.finished());
  });
}

TEST(RingInterleavings, ARingWithALimitInBytesHoldsOneResultOfTwoWorkersAtATime) {
  two_workers test{.options = {.slots = 4, .bytes = 1}, .preemptions = 2};
  test.run(nullptr, [](worked_ring& ring) {
    expect_all(ring);
    EXPECT_LE(ring.budget.peak(), 2u);  // both workers begin before the first result
  });
}

TEST(RingInterleavings, ARingWithResultsOfSeveralSizesDeliversEachItemOnce) {
  two_workers test{.options = {.slots = 4, .bytes = 3},
                   .preemptions = 2,
                   .prepare = [](worked_ring& ring) { ring.bytes_of_first = 3; }};
  test.run(nullptr, expect_all);
}

// Nobody takes a result. With the first result of three bytes, another one fits. It has one byte
// only, so that a third one fits.
TEST(RingInterleavings, AResultSmallerThanExpectedWakesTheFeeder) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 4, .workers = 1, .bytes = 7});
    ring.bytes_of_first = 3;
    started feeder(number_ring::drain(ring, 1, 4)), worker(number_ring::work(ring));
    order.run({[&] { feeder.start(); }, [&] { worker.start(); }});
    EXPECT_EQ(ring.slots.count().done, 3u);
    ring.slots.close();
    EXPECT_TRUE(feeder.finished() && worker.finished());
  });
}

TEST(RingInterleavings, ACloseEndsAllThatWaitInARingWithTwoWorkersAndALimitInBytes) {
  two_workers test{.options = {.slots = 4, .bytes = 1}};
  test.run(close, expect_closed);
}

TEST(RingInterleavings, AStopOfTheConsumerLosesNoItemOfARingWithALimitInBytes) {
  two_workers test{.options = {.slots = 4, .bytes = 1}, .consumer = &worked_ring::stopped};
  test.run(stop, expect_stopped);
}

TEST(RingInterleavings, ARingWithTwoWorkersAndLittleMemoryDeliversEachItemOnce) {
  two_workers test{
      .options = {.slots = 4, .waits_for_memory = true}, .preemptions = 2, .limit_bytes = 3};
  test.run(nullptr, expect_all);
}

// An executor whose threads are threads of the test. The threads end when all its coroutines have
// ended. They take the jobs in the order of posting. To post a job is no schedule point.
class test_pool final : public detail::executor {
 public:
  explicit test_pool(std::size_t coroutines) : left_(coroutines) {}

  // A coroutine that starts on the pool and resumes on it.
  started start(task<> work, std::stop_token stop = {}) {
    return started(run(*this, std::move(work)), {.home = this, .stop = std::move(stop)});
  }

  // Makes the calling thread a thread of the pool, which first starts `first`.
  void work(started& first) {
    detail::this_executor = this;
    first.start();
    while (true) {
      ++idle_;
      interleaving::wait_while(empty_);
      if (jobs_.empty()) break;
      auto job = jobs_.front();
      jobs_.pop_front();
      update();
      --idle_;
      job();
    }
  }

  void post(detail::job work) noexcept override {
    jobs_.push_back(work);
    update();
  }
  bool run_some() noexcept override { return false; }
  bool has_idle_thread() const noexcept override {
    const bool idle = idle_ > 0 && jobs_.empty();
    found_idle_ += idle;
    return idle;
  }
  int found_idle() const noexcept { return found_idle_; }

 private:
  static task<> run(test_pool& pool, task<> work) {
    struct at_end {
      test_pool& of;
      ~at_end() {
        --of.left_;
        of.update();
      }
    } end{pool};
    co_await std::move(work);
  }
  void update() noexcept { empty_ = jobs_.empty() && left_ > 0; }

  std::deque<detail::job> jobs_;
  bool empty_ = true;
  std::size_t left_;  // coroutines that have not ended
  int idle_ = 0;
  mutable int found_idle_ = 0;
};

// A feeder, a worker and a consumer on a pool of two threads. The consumer has parked before.
struct pooled_ring : number_ring {
  using consumer_of = task<> (*)(number_ring&);

  pooled_ring(consumer_of consume_by, int items)
      : number_ring({.slots = 2, .workers = 1}),
        feeder(pool.start(drain(*this, 1, items))),
        worker(pool.start(work_and_post(*this))),
        consumer(pool.start(consume_by(*this), stop.get_token())) {
    consumer.start();
  }

  test_pool pool{3};
  std::stop_source stop;
  started feeder;
  started worker;
  started consumer;
};

// Runs a ring of three items on a pool. Calls `meanwhile` on another thread unless it is null, and
// `check` at the end of each run. The number of preemptions is limited. Returns how often the
// worker has found an idle thread for the consumer in all orders.
static int work_on_a_pool(pooled_ring::consumer_of consume_by,
                          const std::function<void(pooled_ring&)>& meanwhile,
                          const std::function<void(pooled_ring&)>& check) {
  int found_idle = 0;
  test::in_orders_of_preemptions(meanwhile ? 2 : 3, [&](interleaving& order) {
    pooled_ring ring(consume_by, 3);
    std::vector<std::function<void()>> threads{[&] { ring.pool.work(ring.feeder); },
                                               [&] { ring.pool.work(ring.worker); }};
    if (meanwhile) threads.push_back([&] { meanwhile(ring); });
    order.run(threads);
    EXPECT_TRUE(ring.feeder.finished() && ring.worker.finished() && ring.consumer.finished());
    check(ring);
    found_idle += ring.pool.found_idle();
  });
  return found_idle;
}

static void expect_three_items(pooled_ring& ring) {
  EXPECT_EQ(ring.taken, (std::vector{10, 20, 30}));
}

TEST(RingInterleavings, AConsumerThatIsPostedToAnIdleThreadGetsEachItemOnce) {
  EXPECT_GT(work_on_a_pool(number_ring::consume, nullptr, expect_three_items), 0);
}

TEST(RingInterleavings, ACloseEndsAConsumerThatIsPostedToAnIdleThread) {
  auto close = [](pooled_ring& ring) { ring.slots.close(); };
  int found_idle = work_on_a_pool(number_ring::consume, close, [](pooled_ring& ring) {
    ring.taken.resize(3, 0);
    EXPECT_THAT(ring.taken, testing::AnyOf(std::vector{0, 0, 0}, std::vector{10, 0, 0},
                                           std::vector{10, 20, 0}, std::vector{10, 20, 30}));
  });
  EXPECT_GT(found_idle, 0);
}

TEST(RingInterleavings, AStopOfAConsumerThatIsPostedToAnIdleThreadLosesNoItem) {
  int stops = 0;
  auto stop = [](pooled_ring& ring) { ring.stop.request_stop(); };
  int found_idle = work_on_a_pool(number_ring::consume_despite_stop, stop, [&](pooled_ring& ring) {
    expect_three_items(ring);
    stops += ring.stops;
  });
  EXPECT_GT(found_idle, 0);
  EXPECT_GT(stops, 0);
}

}  // namespace lade
