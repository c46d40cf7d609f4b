// The part of concurrent stages that does not depend on the type of their items.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/autotune.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/context.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/coroutines/promise.hpp>
#include <lade/detail/data/item_bytes.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/detail/observability/overview.hpp>
#include <lade/detail/pipeline/node.hpp>
#include <lade/detail/pipeline/path_place.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/pipeline/tuned_stages.hpp>
#include <lade/detail/stages/calls.hpp>
#include <lade/detail/stages/link.hpp>
#include <lade/detail/stages/slot_ring.hpp>
#include <lade/failure.hpp>
#include <lade/hooks.hpp>
#include <lade/lineage.hpp>
#include <lade/task.hpp>
#include <lade/thread_pool.hpp>
#include <lade/trace.hpp>

#include <any>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace lade::detail {

struct concurrent_options {
  std::uint64_t number = 0;  // number of the stage in its pipeline, for random numbers
  std::size_t slots = 1;
  unsigned workers = 1;
  bool on_reactor = false;
  thread_pool* pool = nullptr;        // pool on which workers compute; null: the runtime's
  memory_resource* memory = nullptr;  // resource from which workers allocate; null: the runtime's
  item_order order = item_order::input;
  failure_policy policy = {};
  std::any substitute = {};
  time_limits limits = {};

  // For automatic concurrency. tuned_by: the tuner that may reduce the workers and slots.
  // shares_cpus: whether calls of a computing function share CPUs with calls of other stages.
  // buffer: its option, if set.
  std::optional<tuner> tuned_by = {};
  bool shares_cpus = false;
  std::optional<unsigned> buffer = {};

  // The limit in bytes of the results that wait; see link_options::limit().
  std::uint64_t bytes = unlimited_bytes;
  measure_item measure = nullptr;

  unsigned items_at_a_time = 1;  // items per call of the function
  bool draws_random = true;      // whether the function draws random numbers

  // The options for a function that takes several items per call: slots for those items, and for as
  // many that wait. With fewer slots, few calls would get several items.
  concurrent_options for_items(unsigned at_a_time) const {
    auto result = *this;
    result.slots += 2 * std::size_t{workers} * (at_a_time - 1);
    result.items_at_a_time = at_a_time;
    return result;
  }

  // The options for another number of workers, with the same number of slots beyond theirs.
  concurrent_options with(std::optional<unsigned> other_workers) const {
    auto result = *this;
    if (!other_workers || workers == 0) return result;
    const auto for_each = 2 * std::size_t{items_at_a_time} - 1;
    result.slots = slots - workers * for_each + *other_workers * for_each;
    result.workers = *other_workers;
    result.tuned_by.reset();
    result.shares_cpus = false;
    return result;
  }
};

// The calls of one worker for the items in the slots of a stage.
class slot_calls {
 public:
  slot_calls() = default;
  slot_calls(const slot_calls&) = delete;
  virtual ~slot_calls() = default;

  // The items of one call are numbered from 0.
  //
  // Keeps the name of an item before the call moves the item away; see kept_name.
  virtual void keep_name(std::size_t number, std::size_t slot) noexcept = 0;
  virtual std::string name(std::size_t number) const noexcept = 0;

  // The views that hooks get: of the item before the call, and of the result after it.
  virtual item_view argument(std::size_t slot) const noexcept = 0;
  virtual item_view result(std::size_t slot) const noexcept = 0;

  // Copies the item for another attempt. Returns false if it cannot be copied. put_copy_back()
  // moves the copy into the slot.
  virtual bool copy(std::size_t number, std::size_t slot) = 0;
  virtual void put_copy_back(std::size_t number, std::size_t slot) = 0;
  virtual void drop_copy(std::size_t number) noexcept = 0;

  // reserves_memory(): whether a worker waits for memory before a call. memory_needed(): the need
  // of a call in bytes; 0 if the function does not report it.
  virtual bool reserves_memory() const noexcept { return false; }
  virtual std::size_t memory_needed(std::size_t) const { return 0; }

  // Calls the function, which moves the item out of its slot, and puts the result into the slot. If
  // the function returns a task, start() starts it and returns whether it has finished, and
  // finish() puts its result into the slot.
  using time_limit = std::optional<std::chrono::nanoseconds>;
  virtual void call(std::size_t slot, const item_random& draw, time_limit limit) = 0;
  virtual bool start(const promise_base&, completion&) { return true; }
  virtual void finish(std::size_t) {}

  // Calls a function that takes several items per call. It takes their slots from `call`.
  virtual void call(several_call&) {}
};

// The operation in the errors of exceeded time limits.
inline constexpr auto call_of_function = "wait for the stage's function";

// A link with workers: a concurrent stage without its items, which a derived class holds.
//
//   upstream ─ drain ─> [ filled ─ workers ─> done ] ─ deliver() ─> next stage
//
// - Threads: drain and consumer run on the runtime's pool; workers on the pool of the options, on
//   the share for automatic stages, or on reactors.
// - Lock: none here. The coroutine that owns a slot accesses its identity and its slot_record.
// - End: close() stops the upstream and ends all waits in the ring. Calls in progress run to their
//   end.
class concurrent_core : public link_base {
 public:
  // Starts the workers, which call the function, and the drain of `upstream`.
  void start_workers(generator upstream);

  const concurrent_options& options() const noexcept { return options_; }

 protected:
  // An item that a worker has taken, until it has ended.
  struct called_item {
    std::size_t slot = slot_ring::none;
    unsigned attempts = 0;                 // failed attempts
    bool kept = false;                     // whether there is a copy for another attempt
    clock::time_point first_started = {};  // first call of the function for the item
    clock::time_point started = {};        // latest call; in a pause, the earliest time of the next
    std::chrono::nanoseconds waited{};     // time that its worker waited for memory, excluded from
                                           // time limits
  };

  class calling_worker;
  class computing_worker;
  class task_worker;

  concurrent_core(const open_context& run, stage_counters& counters,
                  const concurrent_options& options);

  // Moves an item into a slot; drops it.
  virtual void put_item(std::size_t slot, void* item) = 0;
  virtual void drop_item(std::size_t slot) noexcept = 0;

  // Makes the substitute the result.
  virtual void substitute(std::size_t slot) = 0;

  // Called by each worker.
  virtual std::unique_ptr<slot_calls> begin_calls() = 0;

 private:
  void put(std::size_t slot, void* item, const lineage& origin) final;
  void trace_levels() const final;
  stage_workers assign_executors();

  // The workers of plain functions, and of functions that return tasks.
  static task<> compute(concurrent_core& self, const context& execution);
  static task<> await_tasks(task_worker worker);

  // For a worker itself, between two items. has_moved(): whether the number of reactors has grown,
  // so that the worker belongs to another one. move_home(): sets that reactor in the context of the
  // worker and returns it.
  bool has_moved(const context& worker) const noexcept;
  executor& move_home(const context& worker) noexcept;
  std::size_t number_of(const context& worker) const noexcept {
    return static_cast<std::size_t>(&worker - worker_contexts_.data());
  }

  // Throws error(timed_out) if the call took too long. A late result is no result.
  void require_in_time(const called_item& item, const context& execution) const;

  // The time left for a call that begins now, if there is a limit.
  slot_calls::time_limit time_left(const called_item& item) const noexcept;

  // Identifies the item in a slot, for random numbers.
  item_identity identity(std::size_t slot) const noexcept {
    return identities_.empty() ? item_identity() : identities_[slot];
  }

  // For the catch block of an attempt. Returns the pause before the next attempt, or nothing after
  // the last one, whose result is then the substitute. A substitute that cannot be copied fails the
  // item. In a stopped stage nothing counts as a failure, since calls are interrupted.
  std::optional<clock::duration> failed(const called_item& item, std::string name);

  const concurrent_options options_;
  const stage_random draws_;
  identify identify_;
  std::vector<item_identity> identities_;  // of the items in slots; empty if nothing draws
  std::deque<memory_claim> worker_claims_;
  std::optional<buffer_pool> worker_memory_;  // if options.memory is set
  std::vector<context> worker_contexts_;
};

// Opens the stages before, starts `stage` behind them, and returns its generator.
generator open_behind(const node_base& before, const open_context& run,
                      owner<concurrent_core> stage);

}  // namespace lade::detail
