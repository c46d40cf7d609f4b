// The workers of a concurrent stage, and the items that they have taken.

#pragma once

#include <lade/detail/observability/stage_track.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/stages/concurrent_core.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace lade::detail {

// Makes the calls of the function and records them. If the function cannot be begun, all items of
// the worker fail.
class concurrent_core::calling_worker {
 public:
  calling_worker(concurrent_core& stage, const context& execution);

  // On the executor of the worker, before everything else.
  void begin_function();

 protected:
  // What observes a call: hooks, and a trace, in which the track has the spans of its items.
  struct observers {
    observers(lade::trace* trace, const stage_counters& counters) noexcept
        : track(trace, counters) {}

    stage_track track;
    std::optional<hooked_call> hooked;
  };

  // The call for an item. Calls are numbered from 0.
  struct call {
    explicit call(concurrent_core& stage);

    called_item item;
    std::unique_ptr<observers> observed;  // null without hooks and trace
  };

  // Whether items are called for: not if the function could not be begun, nor after a stop.
  bool calls() const noexcept { return calls_ && !context_.stop.stop_requested(); }
  void drop(std::size_t slot) noexcept;

  // For one call. prepare() copies the item for another attempt, and throws what copying or a hook
  // throws. end() takes what the call has thrown, or null, and returns whether the item is to be
  // tried again, from item.started on.
  void begin(call& of, std::size_t number, clock::time_point now);
  void prepare(call& of, std::size_t number);
  bool end(call& of, std::size_t number, const std::exception_ptr& thrown, clock::time_point now);

  // Waits until the pause before another attempt is over, or a stop is requested.
  static task<> pause_before(concurrent_core& stage, clock::time_point next_attempt);

  concurrent_core& stage_;
  const context& context_;
  std::exception_ptr thrown_;  // if the function could not be begun; of a task_worker, by the call
  std::unique_ptr<slot_calls> calls_;
  call_time::caller busy_;

 private:
  std::exception_ptr end_hooks(call& of, const std::exception_ptr& thrown) const noexcept;
  void leave_out_waits(called_item& item, clock::time_point now) const;
  void record(call& of, std::size_t number, clock::time_point now);
  void try_again(called_item& item, std::size_t number, clock::duration pause);
};

// The worker of a function that returns tasks, of which it awaits one at a time.
class concurrent_core::task_worker final : private calling_worker {
 public:
  task_worker(concurrent_core& stage, const context& execution);

  using calling_worker::begin_function;

  // next() passes on the last item and awaits the next slot, which take() records. slot(): that
  // slot; slot_ring::none at first.
  slot_ring::filled_awaiter next() noexcept { return stage_.ring_.take_filled(slot()); }
  void take(std::size_t slot) noexcept;
  std::size_t slot() const noexcept { return call_.item.slot; }

  // The call for that item. begin() returns false, and drops the item, if it is not called for.
  // start() makes the task, and the worker awaits function(); finish() takes its result. fail()
  // takes what any of these has thrown. end() returns whether the item is to be tried again.
  bool begin();
  void start();
  void finish();
  void fail(std::exception_ptr thrown) noexcept { thrown_ = std::move(thrown); }
  bool end();
  slot_calls& function() const noexcept { return *calls_; }

  // Whether the worker must wait before it calls for its item: for the end of a pause, for the
  // reports of failures, or for another reactor.
  bool must_wait() const noexcept;
  task<> wait();

 private:
  call call_;
};

// The worker of a plain function: one call after another, each for one item or for several. Items
// that have failed and may be tried again stay with the worker, which calls for them before it
// takes others. It begins with the item whose pause ends first. Of these items, it waits only for
// the memory of the first in the order of the input: the memory may be held until that item has
// been delivered.
class concurrent_core::computing_worker final : private calling_worker, private several_call {
 public:
  computing_worker(concurrent_core& stage, const context& execution);

  using calling_worker::begin_function;

  // The item of the next call: one that has failed, after its pause, or one from the ring.
  bool has_attempts() const noexcept { return !attempts_.empty(); }
  task<> take_attempt();
  void take_filled(std::size_t slot) noexcept { take({.slot = slot}); }
  bool has_item() const noexcept { return next_.slot != none; }

  // Whether the worker has computed long enough to yield its thread to later stages. If so, starts
  // to measure its next turn.
  bool had_its_turn() noexcept;

  // Whether the memory of the item must be reserved, and how much.
  bool must_reserve() const noexcept;
  std::size_t needed() const noexcept { return needed_for(*calls_, next_.slot); }
  void reserve(memory_charge reserved) noexcept { memory_.reserve(std::move(reserved)); }

  // Calls for the item, and for others that wait if the function takes several. Returns what
  // take_filled() of the ring takes.
  std::size_t work();

 private:
  struct numbered_call : call {
    using call::call;
    std::size_t needed = 0;  // memory that has been reserved for the item
  };

  std::size_t take() override;
  random draw(std::size_t slot) const override;
  void finish(std::size_t slot) noexcept override;
  void fail(std::size_t slot, const std::exception_ptr& why) noexcept override;

  // The attempts that are to be made, in the order of the input.
  void add_attempt(const called_item& item);
  bool may_try(const called_item& item) noexcept;

  void take(const called_item& item) noexcept;
  std::size_t finished(std::size_t slot) noexcept;
  void begin_time(clock::time_point now) noexcept;
  void end_time(clock::time_point now) noexcept;
  std::size_t call_for_one();
  void compute(std::size_t slot);
  void call_for_several();
  bool may_take_more() const;
  std::size_t take_waiting();
  std::size_t number_of(std::size_t slot) const noexcept;
  void end_early(std::size_t slot, const std::exception_ptr& thrown) noexcept;
  void end_memory() noexcept;
  std::exception_ptr not_ended() const;
  std::exception_ptr no_reason() const;

  call_memory memory_;
  cpu_sampler cpu_;
  clock::duration computed_{};  // since it last yielded the thread
  std::vector<std::unique_ptr<numbered_call>> in_flight_;
  std::vector<called_item> attempts_;
  called_item next_;           // until it is called for
  std::uint64_t last_ = 0;     // of several: number_of() the item that was begun last
  bool takes_more_ = false;    // whether the function may have others beside the first
  clock::time_point began_{};  // the call
};

}  // namespace lade::detail
