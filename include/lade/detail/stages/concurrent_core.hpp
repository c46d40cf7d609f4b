// What concurrent stages share, whatever their items are.

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
  std::uint64_t number = 0;  // of the stage in its pipeline, for its random numbers
  std::size_t slots = 1;
  unsigned workers = 1;
  bool on_reactor = false;
  thread_pool* pool = nullptr;        // where workers compute; null: the runtime's
  memory_resource* memory = nullptr;  // where workers allocate; null: where the runtime does
  item_order order = item_order::input;
  failure_policy policy = {};
  std::any substitute = {};
  time_limits limits = {};

  // If the concurrency is automatic: by what workers and slots may be fewer, or, for a function
  // that computes, that its calls share CPUs with those of other stages; and its buffer, if it says
  // one.
  std::optional<tuner> tuned_by = {};
  bool shares_cpus = false;
  std::optional<unsigned> buffer = {};

  unsigned items_at_a_time = 1;  // that a call of the function takes

  // With room for what the function takes, and for as much that waits: else there are seldom
  // several.
  concurrent_options for_items(unsigned at_a_time) const {
    auto result = *this;
    result.slots += 2 * std::size_t{workers} * (at_a_time - 1);
    result.items_at_a_time = at_a_time;
    return result;
  }

  // With as much room behind the workers, if there is another number of them.
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

// What one worker does with the items in the slots of a stage.
class slot_calls {
 public:
  slot_calls(bool tells, bool makes_tasks, unsigned at_a_time = 1) noexcept
      : tells_memory(tells), are_tasks(makes_tasks), items_at_a_time(at_a_time) {}
  slot_calls(const slot_calls&) = delete;
  virtual ~slot_calls() = default;

  // Of the items that the function is called for at a time, each has a number: 0, if it is one.
  // Its name; see kept_name.
  virtual void keep_name(std::size_t number, std::size_t slot) noexcept = 0;
  virtual std::string name(std::size_t number) const noexcept = 0;

  // What hooks see: the item before the call, and the result after it.
  virtual item_view argument(std::size_t slot) const noexcept = 0;
  virtual item_view result(std::size_t slot) const noexcept = 0;

  // A copy of it, for another attempt; false if it cannot be copied.
  virtual bool copy(std::size_t number, std::size_t slot) = 0;
  virtual void put_copy_back(std::size_t number, std::size_t slot) noexcept = 0;
  virtual void drop_copy(std::size_t number) noexcept = 0;

  // What a call will take, if the function tells it.
  virtual std::size_t memory_needed(std::size_t) const { return 0; }

  // Calls the function, which takes the item out of its slot; the result is put into the slot. A
  // task is started by start(), and its result put into the slot by finish().
  using time_limit = std::optional<std::chrono::nanoseconds>;
  virtual void call(std::size_t slot, const item_random& draw, time_limit limit) = 0;
  virtual bool start(const promise_base&, completion&) { return true; }
  virtual void finish(std::size_t) {}

  // Calls a function that takes several items at a time, which takes their slots from `call`.
  virtual void call(several_call&) {}

  const bool tells_memory;  // whether memory is to be waited for before a call
  const bool are_tasks;
  const unsigned items_at_a_time;
};

// The name of an item that calls are made for.
struct called_name {
  std::string text() const { return calls.name(number); }
  const slot_calls& calls;
  std::size_t number = 0;
};

// What a limit of time says that it has ended.
inline constexpr auto call_of_function = "wait for the stage's function";

// A feeder, workers and a ring of slots: their surroundings, the order of things, what is known of
// each item but the item. The stage with the items derives from it.
class concurrent_core : public std::enable_shared_from_this<concurrent_core> {
 public:
  virtual ~concurrent_core() = default;

  // Starts the coroutines: one feeder, which fills the slots from the generator before, and the
  // workers, which call the function for them.
  void start(generator upstream);

  // The stage's items. Destroying the generator, also one that was never asked for an item, ends
  // the stage.
  static generator deliver(owner<concurrent_core> self);

  // What the stage before is stopped by, and the demand that it serves.
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  std::shared_ptr<const demand> wanted() const noexcept { return ring_.wanted(); }

  const concurrent_options& options() const noexcept { return options_; }

  void close() noexcept;

 protected:
  struct slot_state {
    std::exception_ptr failure;
    lineage origin;
    item_identity identity;
    clock::time_point begun;            // when the function was first called for the item
    clock::time_point started;          // when it was called last
    clock::time_point next_attempt;     // if it is to be tried again
    unsigned attempts = 0;              // that have failed
    std::chrono::nanoseconds waited{};  // by its worker for memory, that is left out
    underway mark;

    // For overviews of items that are in flight.
    std::string name;
    std::atomic<item_overview::doing> doing = item_overview::doing::waits_for_worker;
    std::atomic<clock::time_point> since = clock::time_point();

    void note(item_overview::doing what, clock::time_point now) noexcept;
  };

  // What is recorded of the calls of one worker, by that worker.
  class call_log {
   public:
    call_log(concurrent_core& stage, const context& surroundings);

    // The worker begins to compute, and ends.
    void begin_call(clock::time_point now);
    void end_call(clock::time_point now);

    // The function gets an item, and has done with it. `track` is where spans of that item go.
    void begin_item(slot_state& item, stage_track& track, clock::time_point now);
    template <class Name>
    void end_item(slot_state& item, const Name& name, stage_track& track, clock::time_point now) {
      bool is_named = trace_ || stage_.counters_.slowest.take(now - item.started);
      note(item, is_named ? name.text() : std::string(), track, now);
    }

    // Of the limits of time: what the worker has waited for memory does not count to them.
    void leave_out_waits(slot_state& item, clock::time_point now) const;

    // The worker waits until an item may be tried again.
    void begin_pause() noexcept { pause_.begin(clock::now()); }
    void end_pause() noexcept { pause_.end(clock::now()); }

    // Whether the worker has computed for so long that nearer work may go first now.
    bool had_its_turn() noexcept {
      if (computed_ < std::chrono::microseconds(20)) return false;
      computed_ = {};
      return true;
    }

   private:
    void note(slot_state& item, std::string name, stage_track& track, clock::time_point now);

    concurrent_core& stage_;
    const context& surroundings_;
    lade::trace* trace_;
    call_time::caller busy_;
    call_time::caller pause_;
    cpu_sampler cpu_;
    clock::time_point began_;
    clock::duration computed_{};  // in this turn
  };

  // The items that a worker's function has been called for and has not ended.
  class items_in_hand;

  concurrent_core(const open_context& run, stage_counters& counters,
                  const concurrent_options& options);

  // Moves an item into a slot; one that is finished, if there are no workers.
  virtual void put(std::size_t slot, void* item) = 0;
  virtual std::string name_of_item(const void* item) const = 0;
  virtual void drop_item(std::size_t slot) noexcept = 0;

  // What the function has given, if anything, and what is given instead of it.
  virtual void* result(std::size_t slot) noexcept = 0;
  virtual void count_result(std::size_t slot) = 0;
  virtual void drop_result(std::size_t slot) noexcept = 0;
  virtual void substitute(std::size_t slot) = 0;

  // For one worker.
  virtual std::unique_ptr<slot_calls> begin_calls() = 0;

  stage_counters& counters() const noexcept { return counters_; }

 private:
  // What other threads of the run call, while the core is there. Not the core itself: they must not
  // call a virtual function of an object from which another is just being derived.
  class registration final : private overviewed, private tunable {
   public:
    registration(concurrent_core& stage, const stage_key& key);
    registration(const registration&) = delete;
    ~registration() override;

   private:
    std::string overview(clock::time_point at) const override;
    void set(const tuner::setting& now) override;

    concurrent_core& stage_;
  };

  static task<> feed(concurrent_core& self, generator upstream);
  task<> fill_slots(generator& upstream);
  void fill(std::size_t slot, void* item, const lineage& origin, const item_identity& identity);

  static task<> work_on(concurrent_core& self, const context& surroundings);
  std::unique_ptr<slot_calls> begin_worker(std::exception_ptr& failure);
  void call(slot_calls& calls, std::size_t slot, call_memory& memory) const;

  // Which item a worker tries again next, of those that it has. Waits until it may.
  task<std::size_t> next_attempt(items_in_hand& in_hand, call_log& log) const;
  static task<> pause_before(const slot_state& item, call_log& log);

  // For a worker between two items: where it belongs, which changes when there are more reactors.
  executor* update_home(const context& worker) noexcept;

  // For a trace, if there is one: how many items are in the slots.
  void note_levels() const;

  // Throws error(timed_out) if the call has taken too long: a result that comes too late is none.
  void require_in_time(const slot_state& item, const context& surroundings) const;

  // What is left for a call that begins now, if there is a limit.
  slot_calls::time_limit time_left(const slot_state& item) const noexcept;

  // For the catch block of an attempt: the pause before the next, or nothing if it was the last,
  // with the substitute for the result. A substitute that cannot be copied fails the item.
  // Nobody wants what a stopped stage was working on: that it was interrupted is no failure.
  std::optional<clock::duration> failed(std::size_t slot, std::string name, bool may_retry);

  std::shared_ptr<run_state> run_;
  stage_counters& counters_;
  const concurrent_options options_;
  const stage_random draws_;
  const std::shared_ptr<const path_place> path_;  // before the slots, whose marks need it
  std::vector<slot_state> slots_;
  std::stop_source stop_;
  slot_ring ring_;
  memory_claim feeder_claim_;
  context feeder_context_;
  std::deque<memory_claim> worker_claims_;
  std::optional<buffer_pool> worker_memory_;  // if it is another than the runtime's
  std::vector<context> worker_contexts_;
  std::exception_ptr input_failure_;
  std::stop_callback<close_on_stop<concurrent_core>> on_consumer_stop_;
  std::optional<registration> registered_;
};

// Opens the stages before, starts the stage behind them, and gives its generator.
generator open_behind(const node_base& before, const open_context& run,
                      owner<concurrent_core> stage);

}  // namespace lade::detail
