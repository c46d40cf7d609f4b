// What the stages of one run share.

#pragma once

#include <lade/autotune.hpp>
#include <lade/context.hpp>
#include <lade/detail/demand.hpp>
#include <lade/detail/overview.hpp>
#include <lade/detail/path_place.hpp>
#include <lade/detail/pool_share.hpp>
#include <lade/detail/progress.hpp>
#include <lade/detail/stage_key.hpp>
#include <lade/detail/tuned_stages.hpp>
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
#include <utility>
#include <vector>

namespace lade {

namespace detail {

class run_state {
 public:
  // `children` is where stages start their coroutines; it outlives them. `before` is the run of the
  // last epoch, if this is one of several.
  run_state(lade::runtime& where, const run_options& options, scope& children,
            const run_state* before = nullptr);

  lade::runtime& runtime() noexcept { return runtime_; }
  const run_options& options() const noexcept { return options_; }
  std::uint64_t epoch() const noexcept { return options_.epoch.value_or(0); }
  context surroundings(std::stop_token stop = {}) noexcept;

  // That of the run's consumer.
  const std::shared_ptr<demand>& wanted() const noexcept { return wanted_; }

  // What plain functions of automatic stages are called on, if they may not use the whole pool.
  executor* automatic_share() const noexcept { return automatic_share_.get(); }

  // From when on the time of the run counts, and until when: what is told of a run that has ended
  // is of the time in between. end() may be called again.
  void begin();
  void end() noexcept;

  // The consumer has taken an item.
  void count_delivered() noexcept;

  // Set when there is no open_input any more, at the latest when the run has ended.
  event& input_over() noexcept { return input_over_; }

  // The counters of a stage: one that is opened again goes on with those it had. The reference is
  // valid as long as the run_state is.
  stage_counters& add_stage(std::string name, const stage_key& stage, std::size_t inputs = 1);
  void note_workers(stage_counters& stage, const stage_workers& staff);
  void note_groups(stage_counters& stage, std::string groups);

  // For a catch block: what becomes of the item whose function has thrown, in as many attempts.
  // Gives the failure with stage and item named, or null if the run goes on without the item.
  std::exception_ptr fail(stage_counters& stage, const failure_policy& policy, std::string item,
                          const lineage& origin, unsigned attempts = 1);
  std::vector<failure_record> failures() const;

  // A stage whose choices depend on the epoch has been opened; the name of the first, or nothing.
  void note_epoch_dependent(std::string_view stage);
  std::string epoch_dependent() const;

  // Tells the program, in a sentence without an end of line.
  void warn(const std::string& text) const;

  // Calls a hook, if there are any. What it throws ends the run.
  template <class Call>
  void tell_hooks(Call call) noexcept {
    if (!options_.hooks) return;
    try {
      call(*options_.hooks);
    } catch (...) {
      end_by(std::current_exception());
    }
  }

  // Ends the run with what is not the failure of an item. For coroutines of the run.
  void end_by(std::exception_ptr failure) noexcept { children_.fail(std::move(failure)); }

  // What the run ends with, given what its first child has thrown: a failure together with all
  // others that would have ended the run; what a listener of failures has thrown; or that it was
  // stopped, whichever stage noticed it first. When all children have ended.
  std::exception_ptr outcome(const std::exception_ptr& failure) const;

  // Whether the memory for one more item may be missing, judged by what the run's `items` so far
  // have needed.
  bool short_of_memory(std::uint64_t items) const;

  scope& children() noexcept { return children_; }

  // Starts a coroutine of a stage that runs beside its generators, in surroundings that belong to
  // the stage, and keeps the stage until the coroutine has ended.
  void start(std::shared_ptr<const void> stage, const context& surroundings, task<> work);

  detail::progress& progress() noexcept { return progress_; }
  const detail::progress& progress() const noexcept { return progress_; }

  // The name of an opened stage; empty if it has none, or is none of this run.
  std::string name_of(const stage_key& stage) const;
  std::string name_of(const stage_counters* stage) const;

  // The names of the stages that have been opened, from the source on, with what they put together
  // where a state depends on it.
  std::vector<std::string> stage_names() const;

  // The arrows of its items, if there is a trace.
  item_arrows& arrows() noexcept { return arrows_; }

  // Stages to ask when nothing moves.
  bool watches_stalls() const noexcept { return options_.stall.after.count() > 0; }
  void watch(const overviewed& stage);
  void unwatch(const overviewed& stage) noexcept;

  // All that can be said of a run that does not move.
  std::string overview() const;

  // Those whose concurrency is automatic, in this run and in the epochs around it. The first of a
  // run whose setting may change has them looked at.
  tuned_stages& tuned() noexcept { return *tuned_; }
  bool begin_looking() noexcept { return !looked_at_.exchange(true); }

  lade::state state() const;
  run_statistics statistics() const;
  std::stop_source over;       // requested at the end
  stage_counters sink{"run"};  // starving: for the consumer; output_wait: the consumer was slow
  waiting_time memory_wait;    // not to begin an item that might not fit

 private:
  friend class open_input;
  static constexpr std::size_t most_failures = 1000;

  // Records a failure. The log and on_failure hear of it on the CPU pool: neither a slow disk nor a
  // listener that blocks holds up the thread on which an item has failed.
  void record(failure_record failure);
  task<> report_failures();
  std::optional<failure_record> next_unreported();
  void report(const failure_record& failure) noexcept;
  bool has_ended_by(const std::exception_ptr& failure) const;
  std::exception_ptr end_run(stage_error failure);
  bool over_budget(const stage_counters& stage, const failure_policy& policy);
  std::uint64_t items_begun() const noexcept;  // with the mutex held

  lade::runtime& runtime_;
  run_options options_;
  const std::shared_ptr<demand> wanted_ = std::make_shared<demand>();
  memory_claim claim_{wanted_};
  std::shared_ptr<pool_share> automatic_share_;
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
  std::string epoch_dependent_;
  std::vector<const overviewed*> watched_;  // from the sink on
  std::deque<failure_record> failures_;
  // What ends the run, as it is thrown and as it is told with others.
  struct final_failure {
    std::exception_ptr thrown;
    stage_error failure;
  };
  std::vector<final_failure> final_failures_;
  std::uint64_t failed_ = 0;
  std::deque<failure_record> unreported_;
  bool reporting_ = false;               // a child of the run reports what is unreported
  std::exception_ptr listener_failure_;  // what on_failure has thrown, or the log's writing
  std::ofstream failure_log_;            // for report_failures
  item_arrows arrows_;
  scope& children_;
};

// Held by what may still bring items into a run: a source, a repeat, a cache that is being filled.
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

// Has a coroutine work for a stage: it adds to its statistics, and is known to be as far from the
// end of the pipeline.
inline void work_for(stage_counters& stage, context& surroundings) noexcept {
  surroundings.stage = &stage;
  surroundings.distance = stage.distance;
}

class profiler;

// What a stage is given when a run begins.
struct opening {
  opening(std::shared_ptr<run_state> of_run, std::stop_token until)
      : run(std::move(of_run)),
        stop(std::move(until)),
        wanted(run->wanted()),
        epoch(run->epoch()),
        seed(run->options().seed) {}

  std::shared_ptr<run_state> run;
  std::stop_token stop;                  // requested when the stage behind needs no more
  std::shared_ptr<const demand> wanted;  // that of whoever takes the items
  std::uint64_t first = 0;               // the position of the source's first item
  const void* stage = nullptr;           // which is being opened
  unsigned recursion = 0;                // how many stages are being opened inside of each other

  // One of several sources: positions below `first + span` are its own, and its stages' counters
  // are kept by `inside_of` too, since the same description may be opened for several.
  std::uint64_t span = std::uint64_t{1} << 62;
  std::uint64_t inside_of = 0;

  // What random choices are keyed by: the run's, before a cache those of the pass that filled it.
  std::uint64_t epoch;
  std::uint64_t seed;

  // Before a cache: what sources leave out because it has that already, and where stages note that
  // nothing can be left out; null elsewhere.
  std::shared_ptr<const lineage> kept = nullptr;
  std::shared_ptr<std::atomic<bool>> indivisible = nullptr;

  // For profiles: what is asked how pipelines are opened, whether all that the next stage gives is
  // to be made first, and how many items a stage works on at a time; as it is described if not
  // given.
  profiler* profiling = nullptr;
  bool hoards = false;
  std::optional<unsigned> concurrency = {};

  // What prevents a state if items are taken apart before this stage; null if nothing.
  const char* mixes_parts = nullptr;

  // Whether items are taken apart behind this stage.
  bool parts_behind = false;
  // In a path: what gives it its items, and where the path is.
  std::shared_ptr<void> split = {};
  path_place place = {};

  opening of(const void* opened) const;
  opening until(std::stop_token requested) const;
  opening taken_by(std::shared_ptr<const demand> taker) const;

  // For stages that join several sources: what the i-th of `count` is opened with. Throws
  // error(limit_exceeded) if there are no positions left for so many.
  opening branch(std::size_t i, std::size_t count) const;

  // For stages behind which parts of one item are no longer to be told apart, or not in order.
  opening mixing_parts(const char* how) const;
  // For stages that give items in another order: the same, and that which was dropped before them
  // may come with other items the next time.
  opening reordering(const char* how) const;
  // For stages that make several items of one.
  opening making_parts(const std::string& how) const;
  // For stages that put several items together. Where these are taken apart again, a state that is
  // amid the parts is of just these items.
  void grouping(stage_counters& stage, std::size_t size, std::size_t step) const;
  // For stages that remember more than lineages tell.
  void refuse_state(const std::string& why) const;

  // For sources: whether the item at a position is not wanted again.
  bool leaves_out(std::uint64_t position) const {
    return run->progress().is_delivered(position) || (kept && kept->contains(position));
  }

  stage_key key() const noexcept { return {stage, inside_of}; }
  stage_counters& add_stage(std::string name, std::size_t inputs = 1) const {
    return run->add_stage(std::move(name), key(), inputs);
  }

  // For stages whose choices depend on the epoch. Before a cache that has kept a pass, they depend
  // on the epoch of that.
  void depends_on_epoch(std::string_view chooser) const {
    if (!kept) run->note_epoch_dependent(chooser);
  }
  void depends_on_epoch(const std::vector<order_step>& steps) const;

  // What shuffles are keyed by beside their seed: the epoch, and in a repeat the round.
  std::uint64_t round() const noexcept;

  // Throws error(stopped). Sources call it for every item, so that no stage that drops all items
  // keeps a run alive.
  void throw_if_stopped(std::string_view doing) const;
  void throw_if_stopped(const stage_counters& counters) const {
    if (stop.stop_requested()) throw_if_stopped(counters.name());
  }

  // For the catch block of a stage that calls the user's function where it stands: as
  // run_state::fail, but what comes of a stop passes unchanged and is not counted.
  std::exception_ptr failure(stage_counters& stage, const failure_policy& policy, std::string item,
                             const lineage& origin) const;
};

// Calls what a stage begins with, and names the stage in what that throws.
template <class F>
auto begin_with(const F& begin, const opening& run, stage_counters& counters) {
  try {
    return begin();
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
  }
}

// The order in which a run visits a list, or what is left of it.
visit_order begin_order(std::vector<order_step> steps, std::uint64_t items, std::string identity,
                        const opening& run);

}  // namespace detail
}  // namespace lade
