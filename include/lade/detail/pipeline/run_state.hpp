// The state of one run that its stages share.

#pragma once

#include <lade/autotune.hpp>
#include <lade/context.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/detail/observability/overview.hpp>
#include <lade/detail/pipeline/plan.hpp>
#include <lade/detail/pipeline/progress.hpp>
#include <lade/detail/pipeline/stage_key.hpp>
#include <lade/detail/pipeline/tuned_stages.hpp>
#include <lade/detail/runtime/executor.hpp>
#include <lade/detail/runtime/pool_share.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/hooks.hpp>
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

class profiler;

class run_state {
 public:
  // `children`: the scope in which stages start their coroutines; it must outlive the run_state.
  // `before`: the run of the previous epoch, if there is one. `profiling`: the profile that it is a
  // trial of; must outlive it. Throws error(invalid_argument) for options that cannot work, and
  // error if the failure log cannot be opened.
  run_state(lade::runtime& where, const run_options& options, scope& children,
            const run_state* before = nullptr, profiler* profiling = nullptr);

  // Plans the run of the pipeline that ends in `last`, once, before it is opened. The pipeline must
  // outlive the run.
  void make_plan(const node_base& last) { plan_.emplace(last, progress_); }
  const detail::plan& plan() const noexcept { return *plan_; }

  // Null if the run is no trial of a profile.
  profiler* profiling() const noexcept { return profiling_; }

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

  // Calls `call(hooks)` if the run has hooks. An exception of a hook ends the run.
  template <class Call>
  void tell_hooks(Call call) noexcept {
    if (!options_.hooks) return;
    try {
      call(*options_.hooks);
    } catch (...) {
      end_by(std::current_exception());
    }
  }

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

  // Records a failure and returns its number, from 1 on. The log is written and on_failure called
  // on the CPU pool, so neither a slow disk nor a blocking listener delays the thread on which the
  // item failed.
  std::uint64_t record(failure_record failure);
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
  std::optional<detail::plan> plan_;
  profiler* const profiling_;
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
  std::uint64_t failed_ = 0;
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

}  // namespace detail

}  // namespace lade
