// run_state: the state of one run that its stages share.

#pragma once

#include <lade/autotune.hpp>
#include <lade/context.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/pipeline/failure_journal.hpp>
#include <lade/detail/pipeline/plan.hpp>
#include <lade/detail/pipeline/progress.hpp>
#include <lade/detail/pipeline/run_children.hpp>
#include <lade/detail/pipeline/run_clock.hpp>
#include <lade/detail/pipeline/stage_key.hpp>
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

namespace lade::detail {

class profiler;

// Owned jointly by the run and by the coroutines of its stages. Any thread may call its members,
// except that begin(), make_plan() and end() are for the run itself. mutex_ guards the members that
// its comment names; the others are constant, atomic, or have a separate lock.
class run_state {
 public:
  // `children`: the scope in which stages start their coroutines; it must outlive the run_state.
  // `before`: the run of the previous epoch; null for the first. `profiling`: the profile that this
  // run is a trial of; null for none; must outlive it. Throws error(invalid_argument) for options
  // that cannot work, and error if the failure log cannot be opened.
  run_state(lade::runtime& where, const run_options& options, scope& children,
            const run_state* before = nullptr, profiler* profiling = nullptr);
  ~run_state();

  // Plans the run of the pipeline that ends in `last`. Must be called once, before the pipeline is
  // opened. The pipeline must outlive the run.
  void make_plan(const node_base& last) { plan_.emplace(last, progress_, options_.on_error); }
  const detail::plan& plan() const noexcept { return *plan_; }

  // Null unless the run is a trial of a profile.
  profiler* profiling() const noexcept { return profiling_; }

  lade::runtime& runtime() noexcept { return runtime_; }
  const run_options& options() const noexcept { return options_; }
  std::uint64_t epoch() const noexcept { return options_.epoch.value_or(0); }
  context make_context(std::stop_token stop = {}) noexcept;

  // The demand of the run's consumer.
  const std::shared_ptr<demand>& wanted() const noexcept { return wanted_; }

  // The executor for plain functions of stages with automatic concurrency. Null if they may use the
  // whole pool.
  executor* automatic_share() const noexcept { return automatic_share_.get(); }

  // Start and stop the clock of the run's statistics. Further calls of end() do nothing.
  void begin() noexcept;
  void end() noexcept;

  // Counts an item that the consumer has taken.
  void count_delivered() noexcept;

  // Set when the last open_input has ended, at the latest at the end of the run.
  event& input_over() noexcept { return input_over_; }

  // The opened stages, and the failures of their items.
  stage_registry& stages() noexcept { return stages_; }
  const stage_registry& stages() const noexcept { return stages_; }
  failure_journal& failures() noexcept { return failures_; }
  const failure_journal& failures() const noexcept { return failures_; }

  // Throws `error` instead of std::bad_alloc, for a consumer that takes an item.
  [[noreturn]] static void lacks_memory_to_take();

  // A step of the pipeline whose choices depend on the epoch.
  struct epoch_chooser {
    const void* step;
    std::string name;
    std::optional<std::uint64_t> seed;  // seed of the run, if the choices depend on it as well
  };

  // Records such a step when it is opened; returns all of them, each once.
  void record_epoch_dependent(const void* step, std::string_view name,
                              std::optional<std::uint64_t> seed);
  std::vector<epoch_chooser> epoch_dependent() const;

  // Whether the caller must start the work that the key identifies: true at the first call for each
  // key. A key is the address of an object that lives as long as the run.
  bool is_first_start(const void* key);

  // Reports a warning, one sentence without a newline, to on_warning or standard error.
  void warn(const std::string& text) const;

  // Ends the run with an exception that is not the failure of an item; with the failure of an item
  // if one has ended the run before. Called by coroutines of the run.
  void end_by(std::exception_ptr failure) noexcept {
    children_.fail(failures_.reason_to_end(std::move(failure)));
  }

  // The coroutines that run beside the generators of the stages.
  run_children& children() noexcept { return children_; }

  detail::progress& progress() noexcept { return progress_; }
  const detail::progress& progress() const noexcept { return progress_; }

  // The record of further passes over the pipeline, which keeps nothing: it refuses a state.
  detail::progress& unsaved() noexcept { return unsaved_; }

  // The arrows that connect the spans of an item in the trace.
  item_arrows& arrows() noexcept { return arrows_; }

  // Whether stages keep records for a stall report; the report: statistics, bottleneck, memory, and
  // each watched stage.
  bool watches_stalls() const noexcept { return options_.stall.after.count() > 0; }
  std::string overview() const;

  // The stages with automatic concurrency, shared by all epochs.
  tuned_stages& tuned() noexcept { return *tuned_; }
  stage_key output_key() const noexcept { return {tuned_.get(), 0}; }  // of the output queue

  lade::state state() const;
  run_statistics statistics() const;
  std::stop_source over;  // requested at the end of the run

  // Of the output queue. next_starved: the consumer waited. output_wait: the queue was full.
  // memory_wait: no item was started for lack of memory.
  stage_counters output{"run"};

 private:
  friend class open_input;

  lade::runtime& runtime_;
  run_options options_;
  const std::shared_ptr<demand> wanted_ = std::make_shared<demand>();
  memory_claim claim_{wanted_};
  std::shared_ptr<pool_share> automatic_share_;
  std::shared_ptr<tuned_stages> tuned_;
  detail::progress progress_;
  detail::progress unsaved_{std::nullopt};
  std::optional<detail::plan> plan_;
  profiler* const profiling_;
  event input_over_;
  std::atomic<unsigned> inputs_ = 0;
  mutable std::mutex mutex_;  // guards epoch_dependent_ and started_
  std::vector<epoch_chooser> epoch_dependent_;
  std::vector<const void*> started_;  // keys of is_first_start()
  run_clock clock_;
  item_arrows arrows_;
  run_children children_;
  stage_registry stages_;
  failure_journal failures_;
};

// A token of a stage that may still add items to a run, such as a source, a repeat, or a cache
// being filled. Movable. The end of the last token of a run sets run_state::input_over().
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
  std::shared_ptr<run_state> run_;  // null once ended
};

// Assigns the context of a coroutine to a stage: its time counts in the statistics of the stage,
// and it has the priority of the stage on the pool.
inline void work_for(stage_counters& stage, context& execution) noexcept {
  execution.stage = &stage;
  execution.stage_number = stage.number;
  execution.distance = stage.distance;
}

}  // namespace lade::detail
