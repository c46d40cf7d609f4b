// slot_ring: the scheduling of a link, a bounded queue of slots between coroutines.

#pragma once

#include <lade/buffer_pool.hpp>
#include <lade/detail/coroutines/mutex.hpp>
#include <lade/detail/coroutines/waiter.hpp>
#include <lade/detail/data/item_bytes.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/detail/observability/overview.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/item_order.hpp>

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

namespace lade::detail {

// When the consumer wakes feeders that wait for a slot: as soon as one slot is free, when a quarter
// of the slots is free, or when half of them is free. With several feeders, their number of slots
// does not count, since each holds one. The later, the fewer switches between threads, and the
// fewer items ahead of the consumer.
enum class refill : std::uint8_t { at_once, at_quarter, at_half };

struct slot_ring_options {
  std::size_t slots = 1;
  std::size_t feeders = 1;

  // Workers between feeders and consumer. 0: a slot that a feeder has filled is done.
  std::size_t workers = 0;

  item_order order = item_order::input;  // without workers, both mean the order of filling

  // With workers: whether filled slots get numbers, for take_more() and put_back().
  bool numbers_slots = true;

  refill refills = refill::at_quarter;

  // Whether the consumer owns a slot from the beginning, from take_first_slot() on, and not only
  // from its first item on. So it may free a slot when it takes the next item, which needs the lock
  // once per item, and feeders work no further ahead. While it owns none, because it waits or was
  // stopped, a slot is kept for it.
  bool consumer_owns_slot = false;

  // Whether feeders wait while the memory budget is exhausted.
  bool waits_for_memory = false;

  // The limit in bytes of the unfinished results and of those that wait for the consumer. A feeder
  // gets a slot only if one more result is within the limit.
  // - An unfinished result counts as the largest result so far. Before the first result, at most
  //   `workers` are unfinished, or one without workers.
  // - One result is always allowed.
  // - With several feeders, unfinished results do not count: each feeder may exceed the limit by
  //   one.
  std::uint64_t bytes = unlimited_bytes;

  // Whether the statistics count the time in which at least one feeder waits for a slot
  // (output_wait) or for memory (memory_wait), and the items in the slots (depth). At most one ring
  // of a stage may set either.
  bool measures_feeders = false;
  bool measures_depth = false;
};

// Passes the slots of a stage between its coroutines:
//
//   free ─ feeders ─> filled ─ workers ─> done ─ consumer ─> free
//
// Feeders take free slots and fill them, workers take filled slots and finish them, and the
// consumer takes done slots and frees them. Without workers, filled slots are done. The stage
// defines the contents of a slot.
//
// - Ownership: a coroutine that took a slot owns its contents until it passes the slot on. The
//   mutex orders the accesses of successive owners.
// - Lock: mutex_ guards all members below it.
// - Waiting: a coroutine that finds no slot parks, under the same lock as it looked. The thread
//   that provides a slot assigns it to a parked coroutine and settles that one under the lock, then
//   unlocks and resumes it. So no wake-up is lost, and a resumed coroutine does not look again.
// - Batching: the consumer wakes feeders when wake_feeder_at() slots are free, not at every slot.
//   The remaining slots keep all workers busy.
// - Several feeders: each holds one slot while it waits for its next item. So with as many slots
//   beyond the number of feeders as may be queued, a slow feeder never stops the others.
// - Memory: with `waits_for_memory`, feeders also park while the budget is exhausted. The consumer
//   wakes them when it frees slots and the memory suffices. Exception: a feeder never parks for
//   memory if the consumer waits and no slot is in use, so a run always makes progress.
// - Bytes: feeders also park while another result may exceed the limit in bytes. The consumer wakes
//   them when it takes a result, and a worker when it has finished one.
// - End: after end_input(), feeders get `none`, workers get `none` when no filled slot is left, and
//   the consumer when all slots are delivered. After close() everybody gets `none`.
class slot_ring {
 public:
  static constexpr std::size_t none = ~std::size_t{0};
  static constexpr std::size_t several = none - 1;  // of a worker: see take_more

  class free_awaiter;
  class filled_awaiter;
  class done_awaiter;

  // `memory`: the budget; items are started while their estimated allocations fit. `wanted`: the
  // demand of the consumer. Its items are numbers of slots.
  slot_ring(const slot_ring_options& options, const buffer_pool& memory,
            std::shared_ptr<demand> wanted);
  ~slot_ring();

  // Sets the stage whose statistics the waits count in. Must be called before the first wait.
  void count_for(stage_counters& counters) noexcept {
    counters_ = &counters;
    if (options_.measures_depth) counters.depth.begin(this);
  }

  const std::shared_ptr<demand>& wanted() const noexcept { return wanted_; }

  // For a consumer that owns a slot from the beginning: takes that slot. Must be called once,
  // before any other access.
  std::size_t take_first_slot() noexcept;

  // Await a slot, or `none` if there will be no more. The argument is the slot to pass on: one that
  // the feeder filled, that the worker finished, or that the consumer is done with; at first
  // `none`. take_done_or_stop() throws error(stopped), and has passed on the slot, if the awaiting
  // coroutine is asked to stop. The ring must be closed before a stop ends the other waits.
  //
  // take_filled() resumes a consumer that waits for the finished slot. If there is another filled
  // slot, the consumer runs inline before the worker gets it. Exception: with `posts_consumer`, an
  // idle thread of the consumer's executor runs the consumer meanwhile.
  [[nodiscard]] free_awaiter take_free(std::size_t filled) noexcept;
  [[nodiscard]] filled_awaiter take_filled(std::size_t finished,
                                           bool posts_consumer = false) noexcept;
  [[nodiscard]] done_awaiter take_done(std::size_t freed) noexcept;
  [[nodiscard]] done_awaiter take_done_or_stop(std::size_t freed) noexcept;

  // For a feeder that takes no other slot: passes on a slot that it has filled, or returns a free
  // slot that it will not fill.
  void fill(std::size_t slot) noexcept;
  void return_free(std::size_t slot) noexcept;

  // For the owner of a slot: the bytes of the result in it, which are recorded before the slot is
  // passed on. A slot without a result needs no call. Without a limit in bytes, they are 0.
  void record_bytes(std::size_t slot, std::uint64_t bytes) noexcept { bytes_[slot] = bytes; }
  std::uint64_t bytes(std::size_t slot) const noexcept { return bytes_.empty() ? 0 : bytes_[slot]; }

  // For a worker that works on several slots at once. take_more() returns another filled slot, or
  // `none`. finish_early() finishes one of them; then take_filled() takes `several` instead of a
  // slot.
  //
  // `behind`: slots filled before the one of that number are not returned. Such a slot could be
  // held up by a worker that waits for the memory of later ones.
  std::size_t take_more(std::uint64_t behind = 0) noexcept;
  void finish_early(std::size_t slot) noexcept;

  // For a worker that owns the slot: its number in the order in which slots were filled. This,
  // take_more() and put_back() require numbers_slots.
  std::uint64_t number_of(std::size_t slot) const noexcept { return numbers_[slot]; }

  // For a worker that cannot work on a slot of take_more() now. Returns the slot to the filled
  // ones, in the order in which they were filled, for any worker.
  void put_back(std::size_t slot) noexcept;

  // No slot will be filled any more. With workers, no feeder may own a slot. Any thread.
  void end_input() noexcept;

  // Limits how many items are worked on (`working`) and held (`held`) at a time, within the numbers
  // of workers and slots; in a ring with several feeders, these are what works. Items in flight
  // beyond the limit are finished. Any thread.
  void bound(std::size_t working, std::size_t held) noexcept;

  // Ends all waits, now and later. Any thread.
  void close() noexcept;

  // Items that wait for a worker, are worked on, or are done and not yet taken.
  struct levels {
    std::size_t waiting = 0;
    std::size_t working = 0;
    std::size_t done = 0;
  };
  levels count() const;

  // A snapshot for reports. Calls `item`, which describes an item, for every slot that is filled or
  // done and not yet taken, in the order of delivery. Blocks all transitions of slots meanwhile.
  stage_overview look(const std::function<item_overview(std::size_t slot, bool done)>& item) const;

 private:
  // outside: free, or owned by a feeder or the consumer. filled: until a worker has finished it.
  enum class place : std::uint8_t { outside, filled, done };

  // The reason why feeders are parked.
  enum class missing : std::uint8_t { nothing, slot, memory };

  // The number of a slot where there is one for each slot.
  using short_number = std::uint32_t;

  // A FIFO of slots, with capacity for all of them.
  class queue {
   public:
    explicit queue(std::size_t slots) : slots_(slots) {}
    bool empty() const noexcept { return size_ == 0; }
    std::size_t size() const noexcept { return size_; }
    std::size_t front() const noexcept { return (*this)[0]; }
    std::size_t operator[](std::size_t i) const noexcept { return slots_[place_of(i)]; }
    void push(std::size_t slot) noexcept { slots_[place_of(size_++)] = short_number(slot); }
    void swap(std::size_t i, std::size_t j) noexcept {
      std::swap(slots_[place_of(i)], slots_[place_of(j)]);
    }
    void push_front(std::size_t slot) noexcept {
      first_ = place_of(slots_.size() - 1);
      slots_[first_] = short_number(slot);
      ++size_;
    }
    std::size_t pop() noexcept {
      auto slot = front();
      first_ = place_of(1);
      --size_;
      return slot;
    }

   private:
    std::size_t place_of(std::size_t i) const noexcept {
      auto place = first_ + i;
      return place < slots_.size() ? place : place - slots_.size();
    }

    std::vector<short_number> slots_;
    std::size_t first_ = 0;
    std::size_t size_ = 0;
  };

  // Called with the mutex held. Each passes a slot on and assigns another one, or `none`. Returns
  // false if the coroutine must park. Coroutines in `woken` must be resumed after the mutex is
  // released. They may be called twice for one wait.
  bool settle_feeder(free_awaiter& feeder, listed_waiter*& woken) noexcept;
  bool settle_consumer(done_awaiter& consumer, wait_list& woken) noexcept;

  // Called with the mutex held. A returned coroutine must be resumed after the mutex is released;
  // null: none.
  void record_filled(std::size_t slot) noexcept;
  listed_waiter* pass_filled(std::size_t slot) noexcept;
  bool has_work() const noexcept { return !filled_.empty() && working_ < most_working_; }
  bool is_over() const noexcept { return closed_ || input_over_; }
  void begin_work(filled_awaiter& worker) noexcept;
  listed_waiter* claim_worker() noexcept;
  listed_waiter* finish_work(filled_awaiter& worker, wait_list& feeders) noexcept;
  std::size_t capacity() const noexcept;
  bool another_fits() const noexcept;
  std::size_t wake_feeder_at() const noexcept;
  bool deliverable() const noexcept {
    return !ready_.empty() && places_[ready_.front()] == place::done;
  }
  bool drained() const noexcept { return closed_ || (input_over_ && in_flight_ == 0); }
  std::size_t awaited() const noexcept;
  void record_wanted() noexcept { wanted_->await(awaited()); }
  std::size_t pop_done() noexcept;
  listed_waiter* finish(std::size_t slot) noexcept;
  listed_waiter* finish_result(std::size_t slot, wait_list& feeders) noexcept;
  bool may_begin() const noexcept;
  std::size_t begin_item() noexcept;
  void return_slot(std::size_t slot) noexcept { free_.push_back(short_number(slot)); }  // reserved
  void return_slot_of_consumer(std::size_t slot) noexcept;
  void record_missing(missing now) noexcept;
  void record_depth() noexcept;
  listed_waiter* claim_feeder() noexcept;
  void claim_feeders(wait_list& woken) noexcept;
  void settle_feeders(wait_list& woken) noexcept;
  listed_waiter* claim_consumer(std::size_t slot) noexcept;
  void begin_consumer_wait() noexcept;
  void end_consumer_wait() noexcept;
  void end_stopped_wait(std::size_t freed) noexcept;

  const buffer_pool& memory_;
  stage_counters* counters_ = nullptr;
  const slot_ring_options options_;
  const std::shared_ptr<demand> wanted_;

  mutable mutex mutex_;
  std::vector<short_number> free_;
  queue filled_;
  queue ready_;  // in the order of delivery; the front may not be done
  std::vector<place> places_;
  std::vector<std::uint64_t>
      numbers_;  // numbers of slots, in filling order; only with numbers_slots
  std::uint64_t last_number_ = 0;
  std::vector<std::uint64_t> bytes_;  // of the results in slots; empty without a limit
  waiting_bytes waiting_bytes_;       // of the results that are done and not yet taken
  // In completion order only. begun_: slots that are filled and not done, in the order of their
  // items; others_: all other slots; where_: the place of each slot in its list.
  std::list<std::size_t> begun_;
  std::list<std::size_t> others_;
  std::vector<std::list<std::size_t>::iterator> where_;
  std::size_t most_working_;  // workers, or feeders if there are several
  std::size_t most_held_;
  std::size_t working_ = 0;     // slots that workers own
  std::size_t in_flight_ = 0;   // slots filled and not yet taken by the consumer
  std::size_t unfinished_ = 0;  // slots assigned to a feeder and not yet done
  bool input_over_ = false;
  bool closed_ = false;
  bool kept_for_consumer_;  // whether a free slot is kept for the consumer: see consumer_owns_slot
  wait_list feeders_;
  missing missing_ = missing::nothing;
  wait_list consumers_;  // one at most
  bool consumer_waits_ = false;
  wait_list workers_;  // in LIFO order: the last one has the warmest caches
};

class slot_ring::free_awaiter : private listed_waiter {
 public:
  free_awaiter(slot_ring& ring, std::size_t filled) noexcept : ring_(ring), slot_(filled) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> feeder) {
    listed_waiter* woken = nullptr;
    bool parked = park_unstoppable(feeder, ring_.mutex_, ring_.feeders_,
                                   [this, &woken] { return ring_.settle_feeder(*this, woken); });
    if (woken) woken->resume_later();
    return parked;
  }
  std::size_t await_resume() const noexcept { return slot_; }

 private:
  friend class slot_ring;

  slot_ring& ring_;
  std::size_t slot_;
};

class slot_ring::filled_awaiter : private listed_waiter {
 public:
  filled_awaiter(slot_ring& ring, std::size_t finished, bool posts_consumer) noexcept
      : posts_consumer_(posts_consumer), ring_(ring), slot_(finished) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> worker) {
    note(worker);
    return take();
  }
  std::size_t await_resume() const noexcept { return slot_; }

 private:
  friend class slot_ring;

  bool take();  // returns whether the worker has parked

  const bool posts_consumer_;  // first, in the padding of the base: thousands of them may wait
  slot_ring& ring_;
  std::size_t slot_;
};

class slot_ring::done_awaiter : private waiter {
 public:
  done_awaiter(slot_ring& ring, std::size_t freed, bool stoppable) noexcept
      : ring_(ring), slot_(freed), stoppable_(stoppable) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> consumer) {
    auto& memory = ring_.memory_;  // once the consumer has parked, it may resume and end the ring
    wait_list feeders;
    auto settle = [this, &feeders] { return ring_.settle_consumer(*this, feeders); };
    bool parked = stoppable_ ? park(consumer, ring_.mutex_, ring_.consumers_, settle)
                             : park_unstoppable(consumer, ring_.mutex_, ring_.consumers_, settle);
    if (parked) memory.reconsider();  // which may resume others
    feeders.resume_all_later();
    return parked;
  }
  std::size_t await_resume() {
    if (stoppable_) end_stoppable_wait();
    return slot_;
  }

 private:
  friend class slot_ring;

  void end_stoppable_wait();

  slot_ring& ring_;
  std::size_t slot_;
  bool stoppable_;
};

inline slot_ring::free_awaiter slot_ring::take_free(std::size_t filled) noexcept {
  return {*this, filled};
}
inline slot_ring::filled_awaiter slot_ring::take_filled(std::size_t finished,
                                                        bool posts_consumer) noexcept {
  return {*this, finished, posts_consumer};
}
inline slot_ring::done_awaiter slot_ring::take_done(std::size_t freed) noexcept {
  return {*this, freed, false};
}
inline slot_ring::done_awaiter slot_ring::take_done_or_stop(std::size_t freed) noexcept {
  return {*this, freed, true};
}

}  // namespace lade::detail
