// Every order in which threads meet in the primitives of coroutines: where they park, wake, close
// and stop. The primitives are compiled with the mutex and the atomics of support/interleaved.

#include <lade/async_generator.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/channel.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/stages/slot_ring.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/memory_resource.hpp>
#include <lade/promise.hpp>
#include <lade/scope.hpp>
#include <lade/semaphore.hpp>
#include <lade/task.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../support/coroutines.hpp"
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
using test::in_all_orders_of_atomics;
using test::interleaving;
using test::started;
using testing_support::counted;

static task<> watch(channel<counted>& watched) { co_await watched.wanted(); }

static task<> push(channel<counted>& to, int value) { co_await to.push(counted(value)); }

static task<> push_two(channel<counted>& to) {
  co_await to.push(counted(1));
  co_await to.push(counted(2));
}

static task<> pop(channel<counted>& from, std::vector<int>& values) {
  auto value = co_await from.pop();
  if (value) values.push_back(value->value());
}

static task<> acquire(semaphore& from) { co_await from.acquire(); }

static task<> wait_for(event& awaited) { co_await awaited; }

static task<> fail() {
  throw error(errc::failed, "fail");
  co_return;
}

TEST(Interleavings, DemandWakesAllWaitingProducers) {
  in_all_orders([](interleaving& order) {
    channel<counted> places(2);
    std::vector<int> values;
    started first(watch(places)), second(watch(places)), consumer(pop(places, values));
    order.run({[&] { first.start(); }, [&] { second.start(); }, [&] { consumer.start(); }});
    EXPECT_TRUE(first.finished());
    EXPECT_TRUE(second.finished());
    EXPECT_FALSE(consumer.ended());
    places.close();
  });
}

TEST(Interleavings, AStopOfAConsumerLosesNoValue) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    channel<counted> places(1);
    std::vector<int> values;
    started producer(push(places, 1)), consumer(pop(places, values));
    order.run({[&] { producer.start(); }, [&] { consumer.start(); }, [&] { consumer.stop(); }});
    EXPECT_TRUE(producer.finished());
    EXPECT_TRUE(consumer.ended());
    EXPECT_EQ(places.size() + values.size(), 1u);
    EXPECT_EQ(consumer.finished(), values.size() == 1);
  });
}

TEST(Interleavings, AStopOfAProducerLosesAndDoublesNoValue) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    channel<counted> places(1);
    std::vector<int> values;
    started producer(push_two(places)), consumer(pop(places, values));
    order.run({[&] { producer.start(); }, [&] { consumer.start(); }, [&] { producer.stop(); }});
    EXPECT_TRUE(producer.ended());
    bool all = producer.finished();
    if (consumer.finished()) {
      EXPECT_EQ(values, std::vector{1});
    }
    EXPECT_LE(places.size() + values.size(), 2u);
    if (all) {
      EXPECT_EQ(places.size() + values.size(), 2u);
    }
    places.close();
  });
}

TEST(Interleavings, ACloseEndsAllWaitsInAChannel) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    channel<counted> places(1);
    std::vector<int> values;
    started producer(push_two(places)), consumer(pop(places, values));
    order.run({[&] { producer.start(); }, [&] { consumer.start(); }, [&] { places.close(); }});
    EXPECT_TRUE(producer.ended());
    EXPECT_TRUE(consumer.finished());
    if (producer.finished()) {
      EXPECT_EQ(places.size() + values.size(), 2u);
    }
  });
}

TEST(Interleavings, ACloseEndsTheWaitForDemand) {
  in_all_orders([](interleaving& order) {
    channel<counted> places(1);
    std::vector<int> values;
    started producer(watch(places)), consumer(pop(places, values));
    order.run({[&] { producer.start(); }, [&] { consumer.start(); }, [&] { places.close(); }});
    EXPECT_TRUE(producer.finished());
    EXPECT_TRUE(consumer.finished());
  });
}

TEST(Interleavings, AStopEndsTheWaitForDemand) {
  in_all_orders([](interleaving& order) {
    channel<counted> places(1);
    std::vector<int> values;
    started producer(watch(places)), consumer(pop(places, values));
    order.run({[&] { producer.start(); }, [&] { consumer.start(); }, [&] { producer.stop(); }});
    EXPECT_TRUE(producer.ended());
    places.close();
  });
}

TEST(Interleavings, TwoConsumersShareWhatIsPushed) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    channel<counted> places(1);
    std::vector<int> values;
    started producer(push_two(places));
    started first(pop(places, values)), second(pop(places, values));
    order.run({[&] { producer.start(); }, [&] { first.start(); }, [&] { second.start(); }});
    EXPECT_TRUE(producer.finished());
    EXPECT_TRUE(first.finished());
    EXPECT_TRUE(second.finished());
    EXPECT_EQ(values.size(), 2u);
  });
}

TEST(Interleavings, AStopOfAWaiterLosesNoPermit) {
  in_all_orders([](interleaving& order) {
    semaphore permits(0);
    started first(acquire(permits)), second(acquire(permits));
    order.run({[&] {
                 first.start();
                 second.start();
               },
               [&] { permits.release(); }, [&] { first.stop(); }});
    int left = permits.try_acquire();
    EXPECT_EQ(first.finished() + second.finished() + left, 1);
    EXPECT_TRUE(first.ended());
    EXPECT_TRUE(second.ended() || first.finished());
    permits.release();
  });
}

TEST(Interleavings, APermitIsAcquiredOnce) {
  in_all_orders([](interleaving& order) {
    semaphore permits(1);
    started first(acquire(permits)), second(acquire(permits));
    order.run({[&] { first.start(); }, [&] { second.start(); }, [&] { permits.release(); }});
    EXPECT_TRUE(first.finished());
    EXPECT_TRUE(second.finished());
    EXPECT_FALSE(permits.try_acquire());
  });
}

TEST(Interleavings, AnEventWakesAllWaitersThatAreNotStopped) {
  in_all_orders([](interleaving& order) {
    event happened;
    started first(wait_for(happened)), second(wait_for(happened));
    order.run({[&] {
                 first.start();
                 second.start();
               },
               [&] { happened.set(); }, [&] { first.stop(); }});
    EXPECT_TRUE(first.ended());
    EXPECT_TRUE(second.finished());
    EXPECT_TRUE(happened.is_set());
  });
}

static task<> wait_for_value(future<int> awaited, int& value) {
  value = co_await std::move(awaited);
}

static task<> wait_uninterrupted(future<int> awaited, int& value) {
  value = co_await std::move(awaited).uninterruptible();
}

TEST(Interleavings, APromiseDeliversToAWaiterThatIsNotStopped) {
  in_all_orders([](interleaving& order) {
    promise<int> unset;
    int value = 0;
    started waiting(wait_for_value(unset.get_future(), value));
    order.run({[&] { waiting.start(); }, [&] { unset.set_value(7); }, [&] { waiting.stop(); }});
    EXPECT_TRUE(waiting.ended());
    EXPECT_EQ(value, waiting.finished() ? 7 : 0);
  });
}

TEST(Interleavings, AStopDoesNotEndAnUninterruptibleWait) {
  in_all_orders([](interleaving& order) {
    promise<int> unset;
    int value = 0;
    started waiting(wait_uninterrupted(unset.get_future(), value));
    order.run({[&] { waiting.start(); }, [&] { unset.set_value(7); }, [&] { waiting.stop(); }});
    EXPECT_TRUE(waiting.finished());
    EXPECT_EQ(value, 7);
  });
}

TEST(Interleavings, AnAbandonedPromiseEndsTheWait) {
  in_all_orders([](interleaving& order) {
    std::optional<promise<int>> unset(std::in_place);
    int value = 0;
    started waiting(wait_uninterrupted(unset->get_future(), value));
    order.run({[&] { waiting.start(); }, [&] { unset.reset(); }});
    EXPECT_TRUE(waiting.ended());
    EXPECT_EQ(testing_support::code_of([&] { waiting.finished(); }), errc::abandoned);
  });
}

TEST(Interleavings, AScopeIsJoinedWhenAllChildrenHaveEnded) {
  in_all_orders([](interleaving& order) {
    event happened;
    scope children;
    children.start(wait_for(happened));
    auto join = [](scope& joined) -> task<> { co_await joined.join(); };
    auto end = [](scope& watched) -> task<> { co_await watched.ended(); };
    started joining(join(children)), watching(end(children));
    order.run({[&] { joining.start(); }, [&] { watching.start(); }, [&] { happened.set(); }});
    EXPECT_TRUE(joining.finished());
    EXPECT_TRUE(watching.finished());
  });
}

TEST(Interleavings, AFailureStopsTheOtherChildrenOfAScope) {
  in_all_orders([](interleaving& order) {
    event never;
    scope children;
    auto join = [](scope& joined, std::error_code& thrown) -> task<> {
      try {
        co_await joined.join();
      } catch (const error& failure) {
        thrown = failure.code();
      }
    };
    std::error_code thrown;
    started joining(join(children, thrown));
    order.run({[&] { children.start(fail()); }, [&] { children.start(wait_for(never)); }});
    joining.start();
    EXPECT_TRUE(joining.finished());
    EXPECT_EQ(thrown, errc::failed);
  });
}

TEST(Interleavings, AStopEndsTheWaitForTheChildrenOfAScope) {
  in_all_orders([](interleaving& order) {
    event happened;
    scope children;
    children.start(wait_for(happened));
    auto end = [](scope& watched) -> task<> { co_await watched.ended(); };
    started watching(end(children));
    order.run({[&] { watching.start(); }, [&] { watching.stop(); }, [&] { happened.set(); }});
    EXPECT_TRUE(watching.ended());
  });
}

TEST(Interleavings, AScopeWaitsInItsDestructor) {
  in_all_orders([](interleaving& order) {
    event happened;
    std::optional<scope> children(std::in_place);
    children->start(wait_for(happened));
    order.run({[&] { children.reset(); }, [&] { happened.set(); }});
    EXPECT_FALSE(children);
  });
}

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
    auto slot = co_await ring.slots.take_done_or_stop(none);
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

TEST(Interleavings, ARingDeliversWhatItsWorkerFinishesInOrder) {
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

TEST(Interleavings, ARingDeliversTheItemsOfTwoFeeders) {
  deliver_from_two_feeders({.slots = 1, .feeders = 2});
}

TEST(Interleavings, AStopOfTheConsumerOfARingLosesNoSlot) {
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

TEST(Interleavings, TheEndOfTheInputOfARingEndsAllThatWait) {
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

TEST(Interleavings, ARingThatWakesItsFeederForSeveralSlotsLosesNoWakeUp) {
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

TEST(Interleavings, ACloseEndsAllThatWaitInARing) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 1, .workers = 1});
    started feeder(number_ring::feed(ring, 1, 2)), worker(number_ring::work(ring)),
        consumer(number_ring::consume(ring));
    order.run({[&] { feeder.start(); }, [&] { consumer.start(); }, [&] { ring.slots.close(); }});
    worker.start();
    EXPECT_TRUE(feeder.finished() && worker.finished() && consumer.finished());
  });
}

TEST(Interleavings, ARingWithoutMemoryDeliversOneItemAtATime) {
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

TEST(Interleavings, MemoryThatBecomesFreeWhileTheFeederOfARingWaitsForItLosesNoWakeUp) {
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

TEST(Interleavings, ARingThatWakesItsFeederForSeveralSlotsLosesNoWakeUpForMemory) {
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

TEST(Interleavings, AStopOfTheConsumerOfARingWithoutMemoryLosesNoSlotAndNoWakeUp) {
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

TEST(Interleavings, ACloseEndsAFeederOfARingThatWaitsForMemory) {
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
TEST(Interleavings, ARingWithALimitInBytesHoldsOneItemAtATimeAndLosesNoWakeUp) {
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

TEST(Interleavings, ARingWithALimitInBytesDeliversTheItemsOfTwoFeeders) {
  deliver_from_two_feeders({.slots = 4, .feeders = 2, .bytes = 1});
}

TEST(Interleavings, ACloseEndsAFeederOfARingThatHasReachedItsLimitInBytes) {
  in_all_orders([](interleaving& order) {
    number_ring ring({.slots = 4, .bytes = 1});
    started feeder(number_ring::feed(ring, 1, 3)), consumer(number_ring::consume(ring));
    order.run({[&] { feeder.start(); }, [&] { consumer.start(); }, [&] { ring.slots.close(); }});
    EXPECT_TRUE(feeder.finished() && consumer.finished());
  });
}

TEST(Interleavings, AWorkerThatWaitsForMemoryGetsItWhenTheConsumerWaitsForItsItem) {
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

TEST(Interleavings, AWorkerGetsMemoryForAnItemThatTheConsumerHasWaitedForBeforeItWasFilled) {
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

static task<int> value_after(event& happened) {
  co_await happened;
  co_return 7;
}

TEST(Interleavings, ATaskIsCompletedOnceAndOnlyAfterItsStartHasReturned) {
  struct noted : detail::completion {
    explicit noted(const bool& start_returned) : completion{note}, returned(start_returned) {}
    static void note(completion& self) noexcept {
      auto& completed = static_cast<noted&>(self);
      ++completed.calls;
      completed.within_start |= !completed.returned;
    }
    const bool& returned;
    int calls = 0;
    bool within_start = false;
  };
  int completed_later = 0;
  auto orders = in_all_orders_of_atomics([&](interleaving& order) {
    event happened;
    bool ended = false;
    bool returned = false;
    noted done(returned);
    detail::promise_base root;
    auto work = value_after(happened);
    order.run({[&] {
                 ended = work.start(root, done) != detail::arrival::later;
                 returned = true;
               },
               [&] { happened.set(); }});
    EXPECT_EQ(ended + done.calls, 1);
    EXPECT_FALSE(done.within_start);
    EXPECT_EQ(work.take(), 7);
    completed_later += done.calls;
  });
  EXPECT_GT(completed_later, 0);
  EXPECT_LT(completed_later, static_cast<int>(orders));
}

// A coroutine outside a runtime that awaits a task.
struct awaiting {
  static testing_support::foreign_coroutine start(task<int> work, awaiting& seen) {
    seen.started_on = std::this_thread::get_id();
    seen.value = co_await std::move(work);
    ++seen.resumed;
    seen.resumed_on = std::this_thread::get_id();
    seen.resumed_within_start = !seen.start_returned;
  }

  int value = 0;
  int resumed = 0;
  bool start_returned = false;
  bool resumed_within_start = false;
  std::thread::id started_on;
  std::thread::id resumed_on;
};

TEST(Interleavings, ACoroutineResumesWhereItStartedATaskThatEndedBeforeTheStartReturned) {
  int resumed_elsewhere = 0;
  auto orders = in_all_orders_of_atomics([&](interleaving& order) {
    event happened;
    awaiting seen;
    order.run({[&] {
                 awaiting::start(value_after(happened), seen);
                 seen.start_returned = true;
               },
               [&] { happened.set(); }});
    EXPECT_EQ(seen.resumed, 1);
    EXPECT_EQ(seen.value, 7);
    EXPECT_EQ(seen.resumed_on == seen.started_on, seen.resumed_within_start);
    resumed_elsewhere += seen.resumed_on != seen.started_on;
  });
  EXPECT_GT(resumed_elsewhere, 0);
  EXPECT_LT(resumed_elsewhere, static_cast<int>(orders));
}

static async_generator<int> two_values(event& first, event& second) {
  co_await first;
  co_yield 1;
  co_await second;
  co_yield 2;
}

static testing_support::foreign_coroutine take_all(async_generator<int> from,
                                                   std::vector<int>& values, int& ended) {
  while (auto* value = co_await from.next()) values.push_back(*value);
  ++ended;
}

TEST(Interleavings, AGeneratorDeliversEachValueOnce) {
  in_all_orders_of_atomics([](interleaving& order) {
    event first, second;
    std::vector<int> values;
    int ended = 0;
    order.run({[&] { take_all(two_values(first, second), values, ended); },
               [&] {
                 first.set();
                 second.set();
               }});
    EXPECT_EQ(values, (std::vector{1, 2}));
    EXPECT_EQ(ended, 1);
  });
}

}  // namespace lade
