// The state of one run that its stages share.

#pragma once

#include <lade/autotune.hpp>
#include <lade/context.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/detail/pipeline/failure_journal.hpp>
#include <lade/detail/pipeline/plan.hpp>
#include <lade/detail/pipeline/progress.hpp>
#include <lade/detail/pipeline/stage_registry.hpp>
#include <lade/detail/pipeline/tuned_stages.hpp>
#include <lade/detail/runtime/executor.hpp>
#include <lade/detail/runtime/pool_share.hpp>
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
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
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
  ~run_state();

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

  // The stages that it has opened, and the failures of their items.
  stage_registry& stages() noexcept { return stages_; }
  const stage_registry& stages() const noexcept { return stages_; }
  failure_journal& failures() noexcept { return failures_; }
  const failure_journal& failures() const noexcept { return failures_; }

  // Throws an error instead of the bad_alloc of a consumer that takes an item.
  [[noreturn]] static void lacks_memory_to_take();

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

  // Where further passes over the pipeline are recorded that are not part of the state: nowhere.
  detail::progress& unsaved() noexcept { return unsaved_; }

  // The arrows that connect the spans of an item in the trace.
  item_arrows& arrows() noexcept { return arrows_; }

  // Whether stages tell a stall report what they do, and the report: statistics, bottleneck,
  // memory, and each watched stage.
  bool watches_stalls() const noexcept { return options_.stall.after.count() > 0; }
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

  // Needs the executor until the children have ended.
  void use(executor& home);

  lade::runtime& runtime_;
  run_options options_;
  const std::shared_ptr<demand> wanted_ = std::make_shared<demand>();
  memory_claim claim_{wanted_};
  std::shared_ptr<pool_share> automatic_share_;
  std::deque<executor_use> used_;  // each once, until the children have ended
  std::shared_ptr<tuned_stages> tuned_;
  std::atomic<bool> looked_at_ = false;
  detail::progress progress_;
  detail::progress unsaved_{std::nullopt};
  std::optional<detail::plan> plan_;
  profiler* const profiling_;
  event input_over_;
  std::atomic<unsigned> inputs_ = 0;
  mutable std::mutex mutex_;
  clock::time_point started_ = clock::now();
  std::atomic<clock::time_point> first_item_ = clock::time_point();  // when it was taken
  std::atomic<clock::time_point> ended_ = clock::time_point();
  std::vector<epoch_chooser> epoch_dependent_;
  std::vector<const void*> background_;  // that has been started
  item_arrows arrows_;
  scope& children_;
  stage_registry stages_{*tuned_};
  failure_journal failures_;
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
