// The order of things in a concurrent stage: which slot is free, filled, being worked on, done.

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

// Hands the slots of a stage around: a feeder takes free ones and fills them, workers claim filled
// ones and finish them, a consumer takes done ones and frees them. Feeder, workers and consumer
// are coroutines; one that has nothing to do parks here, and whoever has a slot for it hands it
// over and resumes it. What is in the slots is the stage's business.
class slot_ring {
 public:
  static constexpr std::size_t none = ~std::size_t{0};
  static constexpr std::size_t several = none - 1;  // for a worker: see take_more

  // `home` is where the feeder and the consumer run. Items are begun as long as what they take at
  // once will likely fit into `memory`. `behind` is the demand that the consumer serves.
  slot_ring(std::size_t slots, std::size_t workers, item_order order, executor& home,
            const buffer_pool& memory, stage_counters& counters,
            std::shared_ptr<const demand> behind = nullptr);

  // The demand of the consumer, by the numbers of the slots.
  std::shared_ptr<const demand> wanted() const noexcept { return wanted_; }

  // Each is awaited and gives a slot, or `none` when there will be no more. The feeder passes the
  // slot that it has filled for a worker, a worker the slot that it has finished, the consumer the
  // slot that it is done with; at first `none`. Each worker says where it runs.
  auto take_free(std::size_t filled) noexcept {
    return awaiter<&slot_ring::free_or_park>(*this, filled, home_);
  }
  auto take_filled(std::size_t finished, executor& home) noexcept {
    return awaiter<&slot_ring::filled_or_park>(*this, finished, home);
  }
  auto take_done(std::size_t freed) noexcept {
    return awaiter<&slot_ring::done_or_park>(*this, freed, home_);
  }

  // For a worker that goes on with several slots. It takes another one that waits, if there is one,
  // and finishes each by itself; then take_filled() gets `several` instead of a slot. None that was
  // filled before the one of that number: it would be held up by a worker that waits for the memory
  // of later ones.
  std::size_t take_more(std::uint64_t behind = 0) noexcept;
  void finish_early(std::size_t slot) noexcept;

  // For a worker: the place of a slot that it has in the order in which slots were filled.
  std::uint64_t number_of(std::size_t slot) const noexcept { return numbers_[slot]; }

  // For a worker: a slot that take_more() gave and that it cannot work on now. It goes before those
  // that were filled after it, for any worker.
  void put_back(std::size_t slot) noexcept;

  // For the feeder: the slot needs no work; there is no more input.
  void fill_done(std::size_t slot) noexcept;
  void end_input() noexcept;

  // From now on, so many items are worked on and held at a time, at most as many as there are
  // workers and slots. What has been begun beyond that is finished. Any thread.
  void bound(std::size_t working, std::size_t held) noexcept;

  // Ends all waiting, now and later. Any thread.
  void close() noexcept;

  // How many items wait for a worker, are worked on, or are done and not taken yet.
  struct levels {
    std::size_t waiting = 0;
    std::size_t working = 0;
    std::size_t done = 0;
  };
  levels count() const;

  // What is where. `item` is called for every slot that has been filled and that the consumer has
  // not taken, the first to be delivered first, and tells of it. Nobody takes a slot meanwhile.
  stage_overview look(const std::function<item_overview(std::size_t slot, bool done)>& item) const;

 private:
  enum class place : std::uint8_t { outside, filled, done };

  struct waiting {
    executor& home;
    std::size_t slot;
    unsigned distance;
    std::coroutine_handle<> coroutine = nullptr;
    waiting* next = nullptr;  // in a list of parked

    // On a reactor's thread, others are resumed after what has completed in the same turn: they
    // find all of it, instead of being woken for each.
    void post() {
      auto work = resumption(coroutine, distance);
      work.may_wait = true;
      home.post(work);
    }
    void resume() { home.is_current() ? coroutine.resume() : post(); }
  };

  // Those that parked, the last one first.
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

  // Slots, the first one first. Has room for all of them from the beginning.
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

  // Each gives a slot, or parks the coroutine; returns whether it parked.
  bool free_or_park(waiting& feeder) noexcept;
  bool filled_or_park(waiting& worker) noexcept;
  bool done_or_park(waiting& consumer) noexcept;

  // The rest is called with the mutex held. The pointers are to whom to resume after it has been
  // released, or null.
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
  queue ready_;  // in the order of delivery; the front may not be done yet
  std::vector<place> places_;
  std::vector<std::uint64_t> numbers_;  // of slots, in the order in which they were filled
  std::uint64_t last_number_ = 0;
  // In order of completion: the slots that are filled and not done, in the order of their items,
  // all others, and where each is.
  std::list<std::size_t> begun_;
  std::list<std::size_t> others_;
  std::vector<std::list<std::size_t>::iterator> where_;
  std::size_t most_working_;
  std::size_t most_held_;
  std::size_t working_ = 0;     // slots that workers have claimed and not finished
  std::size_t in_flight_ = 0;   // filled and not yet taken by the consumer
  std::size_t unfinished_ = 0;  // begun by the feeder and not yet done
  bool input_over_ = false;
  bool closed_ = false;
  waiting* feeder_ = nullptr;
  bool feeder_has_room_ = false;  // it waits for memory
  waiting* consumer_ = nullptr;
  parked_list workers_;
};

}  // namespace detail
}  // namespace lade
