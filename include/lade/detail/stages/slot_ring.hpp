// The scheduling of a concurrent stage, which passes slots between its coroutines.

#pragma once

#include <lade/buffer_pool.hpp>
#include <lade/context.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/detail/observability/overview.hpp>
#include <lade/item_order.hpp>
#include <lade/stats.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace lade {

namespace detail {

// Passes the slots of a stage between its coroutines:
//
//   free ─ feeder ─> filled ─ worker ─> done ─ consumer ─> free
//
// The feeder takes free slots and fills them, workers take filled slots and finish them, and the
// consumer takes done slots and frees them. The stage defines the contents of a slot.
//
// - Ownership: a coroutine that took a slot owns its contents until it passes the slot on. The
//   mutex orders the accesses of successive owners.
// - Lock: mutex_ guards all members below it.
// - Waiting: a coroutine that finds no slot parks, under the same lock as it looked. Whoever
//   provides a slot unparks a coroutine under the lock and assigns the slot to it, then unlocks and
//   resumes it. So no wake-up is lost, and a resumed coroutine does not look again.
// - Batching: the consumer wakes the feeder when wake_feeder_at() slots are free, not at every
//   slot. The remaining slots keep all workers busy.
// - Memory: the feeder also parks while the budget is exhausted. The consumer wakes it when it
//   frees slots and the memory suffices. Exception: the feeder never parks for memory if the
//   consumer waits and no slot is in use, so a run always makes progress.
// - End: after end_input(), workers get `none` when no filled slot is left, and the consumer when
//   all slots are delivered. After close() everybody gets `none`.
class slot_ring {
 public:
  static constexpr std::size_t none = ~std::size_t{0};
  static constexpr std::size_t several = none - 1;  // of a worker: see take_more

  // `home`: the executor of the feeder and the consumer. `memory`: the budget; items are started
  // while their estimated allocations fit. `behind`: the demand that the consumer serves.
  slot_ring(std::size_t slots, std::size_t workers, item_order order, executor& home,
            const buffer_pool& memory, stage_counters& counters,
            std::shared_ptr<const demand> behind = nullptr);

  // The demand of the consumer. Its items are numbers of slots.
  std::shared_ptr<const demand> wanted() const noexcept { return wanted_; }

  // Await a slot, or `none` if there will be no more. The argument is the slot to pass on: one that
  // the feeder filled for a worker, that the worker finished, or that the consumer is done with; at
  // first `none`. Workers also pass their executor.
  auto take_free(std::size_t filled) noexcept {
    return awaiter<&slot_ring::free_or_park>(*this, filled, home_);
  }
  auto take_filled(std::size_t finished, executor& home) noexcept {
    return awaiter<&slot_ring::filled_or_park>(*this, finished, home);
  }
  auto take_done(std::size_t freed) noexcept {
    return awaiter<&slot_ring::done_or_park>(*this, freed, home_);
  }

  // For a worker that works on several slots at once. take_more() returns another filled slot, or
  // `none`. finish_early() finishes one of them; then take_filled() takes `several` instead of a
  // slot.
  //
  // `behind`: slots filled before the one of that number are not returned. Such a slot could be
  // held up by a worker that waits for the memory of later ones.
  std::size_t take_more(std::uint64_t behind = 0) noexcept;
  void finish_early(std::size_t slot) noexcept;

  // For a worker that owns the slot: its number in the order in which slots were filled.
  std::uint64_t number_of(std::size_t slot) const noexcept { return numbers_[slot]; }

  // For a worker that cannot work on a slot of take_more() now. Returns the slot to the filled
  // ones, in the order in which they were filled, for any worker.
  void put_back(std::size_t slot) noexcept;

  // For the feeder. The slot is done without work; the input has ended.
  void fill_done(std::size_t slot) noexcept;
  void end_input() noexcept;

  // Limits how many items are worked on (`working`) and held (`held`) at a time, within the numbers
  // of workers and slots. Items in flight beyond the limit are finished. Any thread.
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
  // outside: free, or owned by the feeder or the consumer. filled: until a worker has finished it.
  enum class place : std::uint8_t { outside, filled, done };

  struct waiting {
    executor& home;
    std::size_t slot;
    unsigned distance;
    std::coroutine_handle<> coroutine = nullptr;
    waiting* next = nullptr;  // in a list of parked coroutines

    // Resumes the coroutine. On a reactor's thread the wake-up may wait for the end of the turn:
    // the resumed coroutine then finds everything that has completed in it.
    void post() {
      auto work = resumption(coroutine, distance);
      work.may_wait = true;
      home.post(work);
    }
    void resume() { home.is_current() ? coroutine.resume() : post(); }
  };

  // Parked coroutines, in LIFO order.
  class parked_list {
   public:
    bool empty() const noexcept { return first_ == nullptr; }
    std::size_t size() const noexcept { return size_; }
    void push(waiting& last) noexcept {
      last.next = std::exchange(first_, &last);
      ++size_;
    }
    waiting* pop() noexcept {
      --size_;
      return std::exchange(first_, first_->next);
    }
    void post_all() noexcept {
      while (!empty()) pop()->post();
    }

   private:
    waiting* first_ = nullptr;
    std::size_t size_ = 0;
  };

  // A FIFO of slots, with capacity for all of them.
  class queue {
   public:
    explicit queue(std::size_t slots) : slots_(slots) {}
    bool empty() const noexcept { return size_ == 0; }
    std::size_t size() const noexcept { return size_; }
    std::size_t front() const noexcept { return (*this)[0]; }
    std::size_t operator[](std::size_t i) const noexcept { return slots_[place_of(i)]; }
    std::size_t& operator[](std::size_t i) noexcept { return slots_[place_of(i)]; }
    void push(std::size_t slot) noexcept { slots_[place_of(size_++)] = slot; }
    void push_front(std::size_t slot) noexcept {
      first_ = place_of(slots_.size() - 1);
      slots_[first_] = slot;
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

    std::vector<std::size_t> slots_;
    std::size_t first_ = 0;
    std::size_t size_ = 0;
  };

  template <bool (slot_ring::*Park)(waiting&) noexcept>
  class awaiter : private waiting {
   public:
    awaiter(slot_ring& slots, std::size_t returned, executor& where) noexcept
        : waiting{where, returned, slots.counters_.distance}, ring_(slots) {}
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> parked) noexcept {
      coroutine = parked;
      return (ring_.*Park)(*this);
    }
    std::size_t await_resume() const noexcept { return slot; }

   private:
    slot_ring& ring_;
  };

  // Each assigns a slot, or parks the coroutine. Returns whether it parked.
  bool free_or_park(waiting& feeder) noexcept;
  bool filled_or_park(waiting& worker) noexcept;
  bool done_or_park(waiting& consumer) noexcept;

  // Called with the mutex held. A returned coroutine must be resumed after the mutex is released;
  // null: none.
  void note_filled(std::size_t slot) noexcept;
  waiting* fill(std::size_t slot) noexcept;
  bool has_work() const noexcept { return !filled_.empty() && working_ < most_working_; }
  void begin_work(waiting& worker) noexcept;
  waiting* claim_worker() noexcept;
  waiting* finish_work(waiting& worker) noexcept;
  std::size_t room() const noexcept;
  std::size_t wake_feeder_at() const noexcept;
  bool deliverable() const noexcept {
    return !ready_.empty() && places_[ready_.front()] == place::done;
  }
  bool drained() const noexcept { return closed_ || (input_over_ && in_flight_ == 0); }
  std::size_t awaited() const noexcept;
  void note_wanted() noexcept { wanted_->await(awaited()); }
  std::size_t pop_done() noexcept;
  waiting* finish(std::size_t slot) noexcept;
  bool may_begin() const noexcept;
  std::size_t begin_item() noexcept;
  void park_feeder(waiting& feeder) noexcept;
  waiting* take_feeder() noexcept;
  waiting* claim_feeder() noexcept;
  waiting* claim_consumer(std::size_t slot) noexcept;

  executor& home_;
  const buffer_pool& memory_;
  stage_counters& counters_;
  const item_order order_;
  const std::shared_ptr<demand> wanted_;

  mutable std::mutex mutex_;
  std::vector<std::size_t> free_;
  queue filled_;
  queue ready_;  // in the order of delivery; the front may not be done
  std::vector<place> places_;
  std::vector<std::uint64_t> numbers_;  // numbers of slots, in filling order
  std::uint64_t last_number_ = 0;
  // In completion order only. begun_: slots that are filled and not done, in the order of their
  // items; others_: all other slots; where_: the place of each slot in its list.
  std::list<std::size_t> begun_;
  std::list<std::size_t> others_;
  std::vector<std::list<std::size_t>::iterator> where_;
  std::size_t most_working_;
  std::size_t most_held_;
  std::size_t working_ = 0;     // slots that workers own
  std::size_t in_flight_ = 0;   // slots filled and not yet taken by the consumer
  std::size_t unfinished_ = 0;  // slots begun by the feeder and not yet done
  bool input_over_ = false;
  bool closed_ = false;
  waiting* feeder_ = nullptr;
  bool feeder_has_room_ = false;  // it waits for memory, not for a slot
  waiting* consumer_ = nullptr;
  parked_list workers_;
};

}  // namespace detail
}  // namespace lade
