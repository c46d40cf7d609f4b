// The workers of a concurrent stage. A worker takes items from the ring, calls the function for
// them, and passes them on.

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

// The base of both workers: makes one call after the other, with its hooks, records and retries. If
// begin_function() fails, all items of the worker fail.
//
// Lives in the coroutine of the worker, which alone accesses it. The stage must outlive it.
class concurrent_core::calling_worker {
 public:
  calling_worker(concurrent_core& stage, const context& execution);

  // Makes the calls of this worker. Must be called first, on the executor of the worker.
  void begin_function();

 protected:
  // The observers of a call: hooks, and a track of the trace for the spans of its items.
  struct observers {
    observers(lade::trace* trace, const stage_counters& counters) noexcept
        : track(trace, counters) {}

    stage_track track;
    std::optional<hooked_call> hooked;
  };

  // A call for one item. A function that takes several items has several calls, numbered from 0.
  struct call {
    explicit call(concurrent_core& stage);

    called_item item;
    std::unique_ptr<observers> observed;  // null without hooks and trace
  };

  // Whether the worker may call the function. Not if begin_function() has failed, and not after a
  // stop: then drop() drops the item.
  bool may_call() const noexcept { return calls_ && !context_.stop.stop_requested(); }
  void drop(std::size_t slot) noexcept;

  // The steps of a call, in this order:
  // - begin(): starts the records.
  // - prepare(): copies the item for another attempt and enters the hooks. Rethrows their
  // exceptions.
  // - the call itself, unless prepare() has thrown
  // - end(): leaves the hooks and ends the records. `thrown`: the exception of prepare() or of the
  //   call, or null. Returns whether the worker must call again for the item, at item.started.
  void begin(call& of, std::size_t number, clock::time_point now);
  void prepare(call& of, std::size_t number);
  bool end(call& of, std::size_t number, const std::exception_ptr& thrown, clock::time_point now);

  // Suspends until the pause before another attempt is over, or a stop is requested.
  static task<> pause_before(concurrent_core& stage, clock::time_point next_attempt);

  concurrent_core& stage_;
  const context& context_;
  std::exception_ptr thrown_;  // by begin_function(); in a task_worker also by its call
  std::unique_ptr<slot_calls> calls_;
  call_time::caller busy_;

 private:
  std::exception_ptr end_hooks(call& of, const std::exception_ptr& thrown) const noexcept;
  void leave_out_waits(called_item& item, clock::time_point now) const;
  void record(call& of, std::size_t number, clock::time_point now);

  // Prepares another attempt after a pause. Returns false if the copy of the item cannot be moved
  // back: then the item fails.
  bool try_again(called_item& item, std::size_t number, clock::duration pause);
};

// The worker of a function that returns tasks. Awaits one task at a time. Retries an item at once
// after its pause, before it takes another.
class concurrent_core::task_worker final : private calling_worker {
 public:
  task_worker(concurrent_core& stage, const context& execution);

  using calling_worker::begin_function;

  // next() passes on the last item and awaits the next slot, which take() records. slot(): that
  // slot; slot_ring::none at first.
  slot_ring::filled_awaiter next() noexcept { return stage_.ring_.take_filled(slot()); }
  void take(std::size_t slot) noexcept;
  std::size_t slot() const noexcept { return call_.item.slot; }

  // The steps of a call for that item, in this order:
  // - begin(): returns false if the worker may not call; then the item is dropped.
  // - start(): makes the task, which the coroutine of the worker awaits by function().
  // - finish(): takes the result of the task.
  // - fail(): records an exception of start(), of the task or of finish().
  // - end(): returns whether the worker must call again for the item.
  bool begin();
  void start();
  void finish();
  void fail(std::exception_ptr thrown) noexcept { thrown_ = std::move(thrown); }
  bool end();
  slot_calls& function() const noexcept { return *calls_; }

  // has_moved(): whether the worker now belongs to another reactor. move_home(): sets that reactor
  // in the worker's context, and returns it; the worker must continue there.
  bool has_moved() const noexcept { return stage_.has_moved(context_); }
  executor& move_home() noexcept { return stage_.move_home(context_); }

  // must_wait(): whether the worker must suspend before its call: until the end of a pause, or
  // until failures have been reported. wait(): does so.
  bool must_wait() const noexcept;
  task<> wait();

 private:
  call call_;
};

// The worker of a plain function. Each call is for one item or for several. Failed items that may
// be retried stay with the worker, which calls for them before it takes others, in the order in
// which their pauses end. Of these items, it waits only for the memory of the first in the order of
// the input: the memory may be held until that item has been delivered.
class concurrent_core::computing_worker final : private calling_worker, private several_call {
 public:
  computing_worker(concurrent_core& stage, const context& execution);

  using calling_worker::begin_function;

  // Choose the item of the next call: take_attempt() a failed item, after its pause; take_filled()
  // an item of the ring, `none` at its end.
  bool has_attempts() const noexcept { return !attempts_.empty(); }
  task<> take_attempt();
  void take_filled(std::size_t slot) noexcept { take({.slot = slot}); }
  bool has_item() const noexcept { return next_.slot != none; }

  // Whether the worker has computed long enough to yield its thread to later stages. If so, starts
  // to measure its next turn.
  bool had_its_turn() noexcept;

  // must_reserve(): whether memory must be reserved before the call. needed(): how much, in bytes.
  bool must_reserve() const noexcept;
  std::size_t needed() const noexcept { return needed_for(*calls_, next_.slot); }
  void reserve(memory_charge reserved) noexcept { memory_.reserve(std::move(reserved)); }

  // Calls the function for the item, and for others that wait if it takes several. Returns the
  // finished slot for slot_ring::take_filled(), or slot_ring::several.
  std::size_t work();

  // Whether the latest call has lasted longer than it takes to wake a thread. Then the consumer
  // must not delay the next call.
  bool made_long_call() const noexcept { return made_long_call_; }

 private:
  struct numbered_call : call {
    using call::call;
    std::size_t needed = 0;  // memory that has been reserved for the item
  };

  std::size_t take() override;
  random draw(std::size_t slot) const override;
  void finish(std::size_t slot) noexcept override;
  void fail(std::size_t slot, const std::exception_ptr& why) noexcept override;

  // add_attempt(): throws std::bad_alloc if one call has failed more items than it may have at a
  // time. may_try(): whether the memory of the item is free; reserves it.
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
  std::vector<called_item> attempts_;  // failed items to retry, in the order of the input
  called_item next_;                   // item of the next call
  std::uint64_t last_ = 0;             // number_of() the latest item of a call for several
  bool takes_more_ = false;            // whether the call may take further items
  bool made_long_call_ = false;
  clock::time_point began_{};  // start of the call
};

}  // namespace lade::detail
