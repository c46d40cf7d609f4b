// What concurrent stages share, whatever their items are.

#pragma once

#include <lade/autotune.hpp>
#include <lade/context.hpp>
#include <lade/detail/demand.hpp>
#include <lade/detail/overview.hpp>
#include <lade/detail/owner.hpp>
#include <lade/detail/path_place.hpp>
#include <lade/detail/run_state.hpp>
#include <lade/detail/slot_ring.hpp>
#include <lade/detail/stage_track.hpp>
#include <lade/detail/tuned_stages.hpp>
#include <lade/failure.hpp>
#include <lade/lineage.hpp>
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
  std::size_t slots = 1;
  unsigned workers = 1;
  bool on_reactor = false;
  thread_pool* pool = nullptr;  // where workers compute; null: the runtime's
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

  // With as much room behind the workers, if there is another number of them.
  concurrent_options with(std::optional<unsigned> other_workers) const {
    auto result = *this;
    if (!other_workers || workers == 0) return result;
    result.slots = slots - workers + *other_workers;
    result.workers = *other_workers;
    result.tuned_by.reset();
    result.shares_cpus = false;
    return result;
  }
};

// What tells the items of one stage apart, whatever the threads do: the source position that an
// item came from, the latest if there are several, and its number among the items that share it
// (parts of a flat_map).
struct item_identity {
  std::uint64_t position = 0;
  std::uint64_t part = 0;
};

// Identifies the items of a stage, one after the other.
class identify {
 public:
  item_identity operator()(const lineage& origin) noexcept {
    auto position = origin.latest();
    last_ = {position, started_ && position == last_.position ? last_.part + 1 : 0};
    started_ = true;
    return last_;
  }

 private:
  item_identity last_;
  bool started_ = false;
};

// A feeder, workers and a ring of slots: their surroundings, the order of things, what is known of
// each item but the item. The stage with the items derives from it.
class concurrent_core : public std::enable_shared_from_this<concurrent_core> {
 public:
  // What the stage before is stopped by, and the demand that it serves.
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  std::shared_ptr<const demand> wanted() const noexcept { return ring_.wanted(); }

  void close() noexcept;

 protected:
  struct slot_state {
    std::exception_ptr failure;
    lineage origin;
    item_identity identity;
    clock::time_point begun;            // when the function was first called for the item
    clock::time_point started;          // when it was called last
    std::chrono::nanoseconds waited{};  // by its worker for memory, before that
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
    void begin(slot_state& item, unsigned attempt);
    // `pause` is what comes next, if the function is called for the item again.
    template <class Name>
    void end(slot_state& item, const Name& name, std::optional<clock::duration> pause) {
      auto ended = clock::now();
      bool named = trace_ || stage_.counters_.slowest.take(ended - item.started);
      end(item, named ? name.text() : std::string(), ended, pause);
    }

    // Whether the worker has computed for so long that nearer work may go first now.
    bool had_its_turn() noexcept {
      if (computed_ < std::chrono::microseconds(20)) return false;
      computed_ = {};
      return true;
    }

   private:
    void end(slot_state& item, std::string name, clock::time_point ended,
             std::optional<clock::duration> pause);

    concurrent_core& stage_;
    const context& surroundings_;
    lade::trace* trace_;
    stage_track track_;
    call_time::caller busy_;
    cpu_sampler cpu_;
    clock::duration computed_{};  // in this turn
  };

  concurrent_core(const opening& run, stage_counters& counters, const concurrent_options& options);
  ~concurrent_core() = default;

  // For the feeder: an item has come for the slot.
  void note_input(slot_state& filled, const lineage& origin, const item_identity& identity);

  // For a worker between two items: where it belongs, which changes when there are more reactors.
  executor* update_home(const context& worker) noexcept;

  // For a trace, if there is one: how many items are in the slots.
  void note_levels() const;

  // Throws error(timed_out) if the call has taken too long: a result that comes too late is none.
  void require_in_time(const slot_state& item, const context& surroundings) const;

  // What is left for a call that begins now.
  std::chrono::nanoseconds time_left(const slot_state& item) const noexcept;

  // For the catch block of an attempt: the pause before the next, or nothing if it was the last.
  // Nobody wants what a stopped stage was working on: that it was interrupted is no failure.
  std::optional<clock::duration> failed(slot_state& item, std::string name, unsigned attempt,
                                        bool may_retry);

  static constexpr auto late = "wait for the stage's function";

  std::shared_ptr<run_state> run_;
  stage_counters& counters_;
  const concurrent_options options_;
  const path_place place_;  // before the slots, whose marks need it
  std::vector<slot_state> slots_;
  std::stop_source stop_;
  slot_ring ring_;
  memory_claim feeder_claim_;
  context feeder_context_;
  std::deque<memory_claim> worker_claims_;
  std::vector<context> worker_contexts_;
  std::exception_ptr input_failure_;

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

  std::stop_callback<close_on_stop<concurrent_core>> on_consumer_stop_;
  std::optional<registration> registered_;
};

}  // namespace lade::detail
