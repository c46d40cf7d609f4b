// The state of one run that its stages share, and the context that a stage is opened with.

#pragma once

#include <lade/autotune.hpp>
#include <lade/context.hpp>
#include <lade/detail/demand.hpp>
#include <lade/detail/executor.hpp>
#include <lade/detail/overview.hpp>
#include <lade/detail/path_place.hpp>
#include <lade/detail/pool_share.hpp>
#include <lade/detail/progress.hpp>
#include <lade/detail/stage_key.hpp>
#include <lade/detail/tuned_stages.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/lineage.hpp>
#include <lade/random.hpp>
#include <lade/run_options.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/stats.hpp>
#include <lade/task.hpp>
#include <lade/trace.hpp>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <deque>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace lade {

namespace detail {

class run_state {
 public:
  // `children`: the scope in which stages start their coroutines; it must outlive the run_state.
  // `before`: the run of the previous epoch, if there is one. Throws error(invalid_argument) for
  // options that cannot work, and error if the failure log cannot be opened.
  run_state(lade::runtime& where, const run_options& options, scope& children,
            const run_state* before = nullptr);

  lade::runtime& runtime() noexcept { return runtime_; }
  const run_options& options() const noexcept { return options_; }
  std::uint64_t epoch() const noexcept { return options_.epoch.value_or(0); }
  context surroundings(std::stop_token stop = {}) noexcept;

  // The demand of the run's consumer.
  const std::shared_ptr<demand>& wanted() const noexcept { return wanted_; }

  // The executor for plain functions of stages with automatic concurrency; null if these may use
  // the whole pool.
  executor* automatic_share() const noexcept { return automatic_share_.get(); }

  // Start and stop the clock of the run's statistics. end() may be called again, and then does
  // nothing.
  void begin();
  void end() noexcept;

  // The consumer has taken an item.
  void count_delivered() noexcept;

  // Set when the last open_input has ended, at the latest when the run has.
  event& input_over() noexcept { return input_over_; }

  // The counters of a stage. A stage that is opened again keeps its counters. The reference is
  // valid as long as the run_state.
  stage_counters& add_stage(std::string name, const stage_key& stage, std::size_t inputs = 1);
  void note_workers(stage_counters& stage, const stage_workers& staff);
  void note_groups(stage_counters& stage, std::string groups);

  // Throws an error instead of the bad_alloc of a consumer that takes an item.
  [[noreturn]] static void lacks_memory_to_take();

  // Applies the failure policy to the exception that is being handled, so it must be called in a
  // catch block. Returns the exception that ends the run, with the names of stage and item, or null
  // if the item is dropped. `attempts`: how many calls have failed for the item.
  std::exception_ptr fail(stage_counters& stage, const failure_policy& policy, std::string item,
                          const lineage& origin, unsigned attempts = 1);
  std::vector<failure_record> failures() const;

  // Whether so many failures wait to be told that stages begin no further item:
  //   if (run.is_behind_with_failures()) co_await run.room_for_failures();
  // The wait ends early when the awaiting coroutine is asked to stop.
  bool is_behind_with_failures() const noexcept { return behind_; }
  task<> room_for_failures();

  // Has on_failure called no more: the consumer wants no more of the run.
  void tell_no_more_failures() noexcept { tells_failures_ = false; }

  // A step of the pipeline whose choices depend on the epoch.
  struct epoch_chooser {
    const void* step;
    std::string name;
    std::optional<std::uint64_t> seed;  // of the run, if the choices depend on that as well
  };

  // Records such a step when it is opened; all of them, each once.
  void note_epoch_dependent(const void* step, std::string_view name,
                            std::optional<std::uint64_t> seed);
  std::vector<epoch_chooser> epoch_dependent() const;

  // Whether work that lives as long as the run is to be started: of each, true once.
  bool begins_background(const void* work);

  // Reports a warning, one sentence without a newline, to on_warning or standard error.
  void warn(const std::string& text) const;

  // Ends the run with an exception that is not the failure of an item. Called by coroutines of the
  // run.
  void end_by(std::exception_ptr failure) noexcept { children_.fail(std::move(failure)); }

  // The exception that the consumer gets, when all children have ended. `failure`: the first
  // exception of a child. The result is an exception of on_failure or of the failure log, if there
  // is one; else `failure` together with all others that would have ended the run; else
  // error(stopped), whichever stage noticed the stop first.
  std::exception_ptr outcome(const std::exception_ptr& failure) const;

  // Whether one more item may exceed the memory budget. An item is estimated to need the mean of
  // the `items` so far.
  bool short_of_memory(std::uint64_t items) const;

  scope& children() noexcept { return children_; }

  // Starts a coroutine that runs concurrently with the stage's generators. `surroundings`: its
  // context, a part of the stage. The stage is kept alive until the coroutine has ended, and its
  // executor must live until all children have ended, since others may follow.
  void start(std::shared_ptr<const void> stage, const context& surroundings, task<> work);

  // When all have: their executors are no longer needed.
  void children_ended() noexcept;

  detail::progress& progress() noexcept { return progress_; }
  const detail::progress& progress() const noexcept { return progress_; }

  // The name of an opened stage; empty if it has no name or is not a stage of this run.
  std::string name_of(const stage_key& stage) const;
  std::string name_of(std::uint64_t stage_number) const;

  // The names of the opened stages, from the source to the sink. Where a state depends on the size
  // of batches or windows, the name includes it: "batch of 4".
  std::vector<std::string> stage_names() const;

  // The arrows that connect the spans of an item in the trace.
  item_arrows& arrows() noexcept { return arrows_; }

  // The stages that a stall report is made of.
  bool watches_stalls() const noexcept { return options_.stall.after.count() > 0; }
  void watch(const overviewed& stage);
  void unwatch(const overviewed& stage) noexcept;

  // The text of a stall report: statistics, bottleneck, memory, and each watched stage.
  std::string overview() const;

  // The stages with automatic concurrency, shared by all epochs. begin_looking() returns true once
  // in a run: that caller starts the tuning.
  tuned_stages& tuned() noexcept { return *tuned_; }
  bool begin_looking() noexcept { return !looked_at_.exchange(true); }

  lade::state state() const;
  run_statistics statistics() const;
  std::stop_source over;       // requested at the end
  stage_counters sink{"run"};  // starving: the consumer waited; output_wait: the last stage did
  waiting_time memory_wait;    // time in which no item was started for lack of memory

 private:
  friend class open_input;
  static constexpr std::size_t most_failures = 1000;
  static constexpr std::size_t most_unreported = 1000;  // before stages wait

  // Needs the executor until the children have ended.
  void use(executor& home);

  // Records a failure. Returns its number among those that count in the run's budget, from 1 on; 0
  // if it is none of them. The log is written and on_failure called on the CPU pool, so neither a
  // slow disk nor a blocking listener delays the thread on which the item failed.
  std::uint64_t record(failure_record failure, bool counts);
  task<> report_failures();
  std::optional<failure_record> next_unreported();
  void report(const failure_record& failure) noexcept;
  bool has_ended_by(const std::exception_ptr& failure) const;
  std::exception_ptr end_run(stage_error failure);
  // Whether the failure of this number exceeds the run's budget, whatever has failed after it.
  bool exceeds_budget(std::uint64_t failed) const;
  std::uint64_t items_begun() const noexcept;  // with the mutex held

  lade::runtime& runtime_;
  run_options options_;
  const std::shared_ptr<demand> wanted_ = std::make_shared<demand>();
  memory_claim claim_{wanted_};
  std::shared_ptr<pool_share> automatic_share_;
  std::deque<executor_use> used_;  // each once, until the children have ended
  std::shared_ptr<tuned_stages> tuned_;
  std::atomic<bool> looked_at_ = false;
  detail::progress progress_;
  event input_over_;
  std::atomic<unsigned> inputs_ = 0;
  mutable std::mutex mutex_;
  clock::time_point started_ = clock::now();
  std::atomic<clock::time_point> first_item_ = clock::time_point();  // when it was taken
  std::atomic<clock::time_point> ended_ = clock::time_point();
  std::deque<stage_counters> stages_;
  std::unordered_map<stage_key, stage_counters*, stage_key_hash> opened_;  // stages_ by key
  std::unordered_map<std::string, std::shared_ptr<std::atomic<unsigned>>> namesakes_;  // how many
  std::vector<epoch_chooser> epoch_dependent_;
  std::unordered_set<const void*> background_;  // that has been started
  std::vector<const overviewed*> watched_;      // from the sink on
  std::deque<failure_record> failures_;
  // A failure that ends the run: the exception as thrown, and its parts for the text of others().
  struct final_failure {
    std::exception_ptr thrown;
    stage_error failure;
  };
  std::vector<final_failure> final_failures_;
  std::uint64_t failed_ = 0;  // that count in the run's budget
  std::deque<failure_record> unreported_;
  bool reporting_ = false;            // report_failures is running
  std::shared_ptr<event> room_;       // set when fewer are unreported; null if not behind
  std::atomic<bool> behind_ = false;  // whether there is a room_
  std::atomic<bool> tells_failures_ = true;
  std::exception_ptr listener_failure_;  // the first exception of on_failure or of the log
  std::ofstream failure_log_;            // used by report_failures only
  item_arrows arrows_;
  scope& children_;
};

// A token of a stage that may still add items to a run: a source, a repeat, a cache being filled.
// Movable; the end of the last token of a run sets run_state::input_over().
class open_input {
 public:
  explicit open_input(std::shared_ptr<run_state> run) noexcept : run_(std::move(run)) {
    run_->inputs_.fetch_add(1, std::memory_order_relaxed);
  }
  open_input(open_input&&) noexcept = default;
  open_input& operator=(open_input&&) = delete;
  ~open_input() { end(); }

  void end() {
    auto run = std::exchange(run_, nullptr);
    if (run && run->inputs_.fetch_sub(1, std::memory_order_acq_rel) == 1) run->input_over_.set();
  }

 private:
  std::shared_ptr<run_state> run_;  // null after the end
};

// Assigns a coroutine's context to a stage: its time counts in the stage's statistics, and it has
// the stage's priority on the pool.
inline void work_for(stage_counters& stage, context& surroundings) noexcept {
  surroundings.stage = &stage;
  surroundings.stage_number = stage.number;
  surroundings.distance = stage.distance;
}

class profiler;

// The context that a stage is opened with when a run starts. A stage passes a changed copy to the
// stage before it, so stages are opened from the sink to the source.
struct opening {
  opening(std::shared_ptr<run_state> of_run, std::stop_token until)
      : run(std::move(of_run)),
        stop(std::move(until)),
        wanted(run->wanted()),
        epoch(run->epoch()),
        seed(run->options().seed) {}

  std::shared_ptr<run_state> run;
  std::stop_token stop;                  // requested when the next stage needs no more items
  std::shared_ptr<const demand> wanted;  // the demand of the consumer of the items
  std::uint64_t first = 0;               // position of the source's first item
  const void* stage = nullptr;           // the stage that is being opened
  unsigned recursion = 0;                // depth of nested calls of open()

  // Several sources: each owns the positions from `first` to `first + span - 1`. `inside_of`: the
  // part of the key of counters that differs if one description is opened for several inputs.
  std::uint64_t span = most_positions;
  std::uint64_t inside_of = 0;

  // The keys of random choices: the run's, or, before a cache, those of the pass that filled it.
  std::uint64_t epoch;
  std::uint64_t seed;

  // Before a cache; null elsewhere. `kept`: the positions that sources leave out because the cache
  // has their items. `indivisible`: set by stages whose items cannot be left out exactly.
  std::shared_ptr<const lineage> kept = nullptr;
  std::shared_ptr<std::atomic<bool>> indivisible = nullptr;
  bool before_cache = false;

  // For profiles. `profiling`: decides how pipelines are opened. `hoards`: the next stage is
  // materialized, all its items before the first is passed on. `concurrency`: overrides the one
  // that the stage was described with.
  profiler* profiling = nullptr;
  bool hoards = false;
  std::optional<unsigned> concurrency = {};

  // The stage behind which parts of one item cannot be told apart; null if there is none. A stage
  // that makes parts before it refuses a state.
  const char* mixes_parts = nullptr;

  // Whether a later stage makes several items of one, and whether it cannot tell then how many
  // members an item has.
  bool parts_behind = false;
  bool members_unknown = false;

  // Whether a later stage pairs items or takes them apart, so that a batch which a failure has cut
  // short would be paired or taken apart like none of another run: it is not delivered.
  bool keeps_batches_whole = false;

  // Where a later stage wants the tensors of batches; null: anywhere. Must outlive the run.
  memory_resource* batch_memory = nullptr;

  // In a path of a route or tee: the stage that assigns items to it, and the path's number.
  std::shared_ptr<void> split = {};
  path_place place = {};

  opening of(const void* opened) const;
  opening until(std::stop_token requested) const;
  opening taken_by(std::shared_ptr<const demand> taker) const;

  // For stages with several inputs: the context of the i-th of `count`. Throws
  // error(limit_exceeded) if the positions do not suffice for so many.
  opening branch(std::size_t i, std::size_t count) const;

  // For stages that make one item of several, behind which parts of one item cannot be told apart.
  // `how`: the name for errors; must outlive the opening.
  opening mixing_parts(const char* how) const;
  // For stages that reorder items. As mixing_parts; no later stage may make parts either, because
  // the lineage of a dropped item may be added to another item in a resumed run.
  opening reordering(const char* how) const;
  // For stages that make several items of one. `tells_members`: whether items that are groups have
  // a size.
  opening making_parts(const std::string& how, bool tells_members) const;
  // For stages that take items of several inputs or paths side by side.
  opening pairing() const;
  // For stages that copy batches to a device: the memory that they copy fastest from.
  opening batching_in(memory_resource& wanted) const;
  // For stages that batch items. If a later stage unbatches them, `size` and `step` become a part
  // of the state: it is valid only for batches of the same items.
  void grouping(stage_counters& stage, std::size_t size, std::size_t step) const;
  // For stages that remember more than lineages contain.
  void refuse_state(const std::string& why) const;

  // For sources: whether the item at a position has been delivered or is in the cache.
  bool leaves_out(std::uint64_t position) const {
    return run->progress().is_delivered(position) || (kept && kept->contains(position));
  }

  // For sources, before they begin: the part of their items that is this rank's. In a path they
  // have no state, since each path would count its positions like the others.
  void begin_source(std::uint64_t rank, std::uint64_t world) const;

  stage_key key() const noexcept { return {stage, inside_of}; }
  stage_counters& add_stage(std::string name, std::size_t inputs = 1) const {
    return run->add_stage(std::move(name), key(), inputs);
  }

  // For stages whose choices depend on the epoch. Does nothing before a cache that has been filled:
  // there they depend on the epoch of the pass that filled it.
  // `of_run`: its seed, if they depend on it as well.
  void depends_on_epoch(std::string_view chooser, std::optional<std::uint64_t> of_run = {}) const {
    if (!kept) run->note_epoch_dependent(stage, chooser, of_run);
  }
  void depends_on_epoch(const std::vector<order_step>& steps) const;

  // The key of shuffles besides their seed: the epoch, combined in a repeat with the round.
  std::uint64_t round() const noexcept;

  // Throws error(stopped) if the stage was asked to stop. Sources call it for every item, so that a
  // stage that drops all items does not keep a run alive.
  void throw_if_stopped(std::string_view doing) const;
  void throw_if_stopped(const stage_counters& counters) const {
    if (stop.stop_requested()) throw_if_stopped(counters.name());
  }

  // As run_state::fail, for stages that call the user's function inline. After a stop, it returns
  // the exception unchanged and does not count it.
  std::exception_ptr failure(stage_counters& stage, const failure_policy& policy, std::string item,
                             const lineage& origin) const;
};

// Returns `begin()`, and adds the name of the stage to an exception that it throws.
template <class F>
auto begin_with(const F& begin, const opening& run, stage_counters& counters) {
  try {
    return begin();
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
  }
}

// The order in which a run visits a list; in a resumed run, that of the items that are left.
// Throws error(invalid_argument) if the state is of another list.
visit_order begin_order(std::vector<order_step> steps, std::uint64_t items, std::string identity,
                        const opening& run);

}  // namespace detail
}  // namespace lade
