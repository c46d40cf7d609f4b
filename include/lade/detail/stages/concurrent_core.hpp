// The part of concurrent stages that does not depend on the type of their items.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/autotune.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/context.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/coroutines/promise.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/detail/observability/overview.hpp>
#include <lade/detail/observability/stage_track.hpp>
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

  // For automatic concurrency. tuned_by: what may reduce the workers and slots. shares_cpus:
  // whether calls of a computing function share CPUs with those of other stages. buffer: its
  // option, if set.
  std::optional<tuner> tuned_by = {};
  bool shares_cpus = false;
  std::optional<unsigned> buffer = {};

  unsigned items_at_a_time = 1;  // items per call of the function

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
  slot_calls(bool tells, bool makes_tasks, unsigned at_a_time = 1) noexcept
      : tells_memory(tells), are_tasks(makes_tasks), items_at_a_time(at_a_time) {}
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

  // Copies the item for another attempt. Returns false if it cannot be copied.
  virtual bool copy(std::size_t number, std::size_t slot) = 0;
  virtual void put_copy_back(std::size_t number, std::size_t slot) noexcept = 0;
  virtual void drop_copy(std::size_t number) noexcept = 0;

  // The memory need of a call in bytes; 0 if the function does not report it.
  virtual std::size_t memory_needed(std::size_t) const { return 0; }

  // Calls the function, which moves the item out of its slot, and puts the result into the slot. If
  // the function returns a task, start() starts it, and finish() puts its result into the slot.
  using time_limit = std::optional<std::chrono::nanoseconds>;
  virtual void call(std::size_t slot, const item_random& draw, time_limit limit) = 0;
  virtual bool start(const promise_base&, completion&) { return true; }
  virtual void finish(std::size_t) {}

  // Calls a function that takes several items per call. It takes their slots from `call`.
  virtual void call(several_call&) {}

  const bool tells_memory;  // whether a worker waits for memory before a call
  const bool are_tasks;
  const unsigned items_at_a_time;
};

// Makes the name of an item, if a record of its call needs the name.
struct called_name {
  std::string text() const { return calls.name(number); }
  const slot_calls& calls;
  std::size_t number = 0;
};

// The operation in the errors of exceeded time limits.
inline constexpr auto call_of_function = "wait for the stage's function";

// A link with workers: all of a concurrent stage but the items, which a derived class holds.
//
//   upstream ─ drain ─> [ filled ─ workers ─> done ] ─ deliver() ─> next stage
//
// - Threads: drain and consumer run on the runtime's pool; workers on the pool of the options, on
//   the share for automatic stages, or on reactors.
// - Lock: none here. The coroutine that owns a slot accesses its slot_state, as its slot_record.
// - End: close() stops the upstream and ends all waits in the ring. Calls in progress run to their
//   end.
class concurrent_core : public link_base {
 public:
  // Starts the workers, which call the function, and the drain of `upstream`.
  void start_workers(generator upstream);

  const concurrent_options& options() const noexcept { return options_; }

 protected:
  struct slot_state {
    slot_record* record = nullptr;  // of the same slot
    item_identity identity;
    clock::time_point begun;            // first call of the function for the item
    clock::time_point started;          // latest call
    clock::time_point next_attempt;     // earliest time of the next attempt
    unsigned attempts = 0;              // failed attempts
    std::chrono::nanoseconds waited{};  // time that its worker waited for memory, excluded from
                                        // time limits
  };

  // The records of the calls of one worker, written by that worker.
  class call_log {
   public:
    call_log(concurrent_core& stage, const context& execution);

    // The worker begins and ends a call.
    void begin_call(clock::time_point now);
    void end_call(clock::time_point now);

    // The function begins and ends to work on an item. `track`: the track of the item's spans.
    void begin_item(slot_state& item, stage_track& track, clock::time_point now);
    template <class Name>
    void end_item(slot_state& item, const Name& name, stage_track& track, clock::time_point now) {
      bool is_named = trace_ || stage_.counters().slowest.take(now - item.started);
      note(item, is_named ? name.text() : std::string(), track, now);
    }

    // Excludes from the time limits the time that the worker has waited for memory.
    void leave_out_waits(slot_state& item, clock::time_point now) const;

    // The worker begins and ends the pause before another attempt.
    void begin_pause() noexcept { pause_.begin(clock::now()); }
    void end_pause() noexcept { pause_.end(clock::now()); }

    // Whether the worker has computed long enough to yield its thread to later stages.
    bool had_its_turn() noexcept {
      if (computed_ < std::chrono::microseconds(20)) return false;
      computed_ = {};
      return true;
    }

   private:
    void note(slot_state& item, std::string name, stage_track& track, clock::time_point now);

    concurrent_core& stage_;
    const context& context_;
    lade::trace* trace_;
    call_time::caller busy_;
    call_time::caller pause_;
    cpu_sampler cpu_;
    clock::time_point began_;
    clock::duration computed_{};  // since it last yielded the thread
  };

  // The items of a worker that are in flight: called for, and not ended.
  class items_in_flight;

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

  static task<> work_on(concurrent_core& self, const context& execution);
  std::unique_ptr<slot_calls> begin_worker(std::exception_ptr& failure);
  void call(slot_calls& calls, std::size_t slot, call_memory& memory) const;

  // Returns the slot of the item that the worker tries again next. Suspends until its pause is
  // over.
  task<std::size_t> next_attempt(items_in_flight& in_hand, call_log& log) const;
  static task<> pause_before(const slot_state& item, call_log& log);

  // For a worker between two items: its executor, which changes when the number of reactors grows.
  executor* update_home(const context& worker) noexcept;

  // Throws error(timed_out) if the call took too long. A late result is no result.
  void require_in_time(const slot_state& item, const context& execution) const;

  // The time left for a call that begins now, if there is a limit.
  slot_calls::time_limit time_left(const slot_state& item) const noexcept;

  // For the catch block of an attempt. Returns the pause before the next attempt, or nothing after
  // the last one, whose result is then the substitute. A substitute that cannot be copied fails the
  // item. In a stopped stage nothing counts as a failure, since calls are interrupted.
  std::optional<clock::duration> failed(std::size_t slot, std::string name, bool may_retry);

  const concurrent_options options_;
  const stage_random draws_;
  identify identify_;
  std::vector<slot_state> slots_;
  std::deque<memory_claim> worker_claims_;
  std::optional<buffer_pool> worker_memory_;  // if options.memory is set
  std::vector<context> worker_contexts_;
};

// Opens the stages before, starts `stage` behind them, and returns its generator.
generator open_behind(const node_base& before, const open_context& run,
                      owner<concurrent_core> stage);

}  // namespace lade::detail
