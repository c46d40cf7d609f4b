// Every order in which the feeders, the workers and the consumer of a slot_ring meet: see
// coroutines/interleavings_test.cpp.

#include <lade/buffer_pool.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/stages/slot_ring.hpp>
#include <lade/memory_resource.hpp>
#include <lade/semaphore.hpp>
#include <lade/task.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <string_view>
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

  static task<> work(number_ring& ring) {
    auto slot = none;
    while ((slot = co_await ring.slots.take_filled(slot)) != none) ring.contents[slot] *= 10;
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
    auto slot = none;
    while ((slot = co_await ring.slots.take_done(slot)) != none) ring.take(slot);
  }

  // Takes one slot. It can be stopped.
  static task<> take_one(number_ring& ring) {
    auto slot = co_await ring.slots.take_done_or_stop();
    if (slot == none) co_return;
    ring.take(slot);
    ring.slots.free(slot);
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
  std::vector<int> taken;
  const bool limits_bytes;  // then each item counts as one byte
  int feeders = 1;
  int feeders_ended = 0;
};

TEST(SlotRingInterleavings, ARingDeliversWhatItsWorkerFinishesInOrder) {
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
static void deliver_from_two_feeders(const detail::slot_ring_options& options) {
  in_all_orders([&](interleaving& order) {
    number_ring ring(options);
    ring.feeders = 2;
    started first(number_ring::feed(ring, 1, 1)), second(number_ring::feed(ring, 10, 1)),
        consumer(number_ring::consume(ring));
    order.run({[&] { first.start(); }, [&] { second.start(); }, [&] { consumer.start(); }});
    EXPECT_TRUE(first.finished() && second.finished() && consumer.finished());
    EXPECT_THAT(ring.taken, testing::UnorderedElementsAre(1, 10));
  });
}

TEST(SlotRingInterleavings, ARingDeliversWhatTwoFeedersBring) {
  deliver_from_two_feeders({.slots = 1, .feeders = 2});
}

TEST(SlotRingInterleavings, AStopOfTheConsumerOfARingLosesNoSlot) {
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

TEST(SlotRingInterleavings, TheEndOfTheInputOfARingEndsAllThatWait) {
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

TEST(SlotRingInterleavings, ARingThatWakesItsFeederForSeveralSlotsLosesNoWakeUp) {
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

TEST(SlotRingInterleavings, ACloseEndsAllThatWaitInARing) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 1, .workers = 1});
    started feeder(number_ring::feed(ring, 1, 2)), worker(number_ring::work(ring)),
        consumer(number_ring::consume(ring));
    order.run({[&] { feeder.start(); }, [&] { consumer.start(); }, [&] { ring.slots.close(); }});
    worker.start();
    EXPECT_TRUE(feeder.finished() && worker.finished() && consumer.finished());
  });
}

TEST(SlotRingInterleavings, ARingWithoutMemoryDeliversOneItemAtATime) {
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

TEST(SlotRingInterleavings, MemoryThatBecomesFreeWhileTheFeederOfARingWaitsForItLosesNoWakeUp) {
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

TEST(SlotRingInterleavings, ARingThatWakesItsFeederForSeveralSlotsLosesNoWakeUpForMemory) {
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

TEST(SlotRingInterleavings, AStopOfTheConsumerOfARingWithoutMemoryLosesNoSlotAndNoWakeUp) {
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

TEST(SlotRingInterleavings, ACloseEndsAFeederOfARingThatWaitsForMemory) {
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
TEST(SlotRingInterleavings, ARingWithALimitInBytesHoldsOneItemAtATimeAndLosesNoWakeUp) {
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

TEST(SlotRingInterleavings, ARingWithALimitInBytesDeliversWhatTwoFeedersBring) {
  deliver_from_two_feeders({.slots = 4, .feeders = 2, .bytes = 1});
}

TEST(SlotRingInterleavings, ACloseEndsAFeederOfARingThatHasReachedItsLimitInBytes) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 4, .bytes = 1});
    started feeder(number_ring::feed(ring, 1, 3)), consumer(number_ring::consume(ring));
    order.run({[&] { feeder.start(); }, [&] { consumer.start(); }, [&] { ring.slots.close(); }});
    EXPECT_TRUE(feeder.finished() && consumer.finished());
  });
}

TEST(SlotRingInterleavings, AWorkerThatWaitsForMemoryGetsItWhenTheConsumerWaitsForItsItem) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 2, .workers = 1});
    started feeder(number_ring::feed(ring, 1, 2)), worker(number_ring::work_when_urgent(ring)),
        consumer(number_ring::consume(ring));
    feeder.start();
    order.run({[&] { worker.start(); }, [&] { consumer.start(); }});
    EXPECT_TRUE(feeder.finished() && worker.finished() && consumer.finished());
    EXPECT_EQ(ring.taken, (std::vector{10, 20}));
  });
}

TEST(SlotRingInterleavings, AWorkerGetsMemoryForAnItemThatTheConsumerHasWaitedForBeforeItWasFilled) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 2, .workers = 1});
    started feeder(number_ring::feed(ring, 1, 2)), worker(number_ring::work_when_urgent(ring)),
        consumer(number_ring::consume(ring));
    consumer.start();
    order.run({[&] { feeder.start(); }, [&] { worker.start(); }});
    EXPECT_TRUE(feeder.finished() && worker.finished() && consumer.finished());
    EXPECT_EQ(ring.taken, (std::vector{10, 20}));
  });
}

}  // namespace lade
