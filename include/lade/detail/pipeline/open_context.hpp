// What a stage is opened with.

#pragma once

#include <lade/detail/memory/demand.hpp>
#include <lade/detail/pipeline/index.hpp>
#include <lade/detail/pipeline/path_place.hpp>
#include <lade/detail/pipeline/plan.hpp>
#include <lade/detail/pipeline/progress.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/pipeline/stage_key.hpp>
#include <lade/failure.hpp>
#include <lade/lineage.hpp>
#include <lade/stats.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace lade::detail {

class node_base;

// A pass over the sources of a stage: all of the run's, or those that a stage has for itself.
struct source_pass {
  // A source numbers its items from `first` on, up to `first + span - 1`.
  std::uint64_t first = 0;
  std::uint64_t span = most_positions;

  // The keys of random choices: the run's, or, before a cache, those of the pass that filled it.
  std::uint64_t epoch = 0;
  std::uint64_t seed = 0;

  // The positions that sources leave out because a cache has their items; null if there are none.
  std::shared_ptr<const lineage> kept = nullptr;

  // Whether it is a further pass, from the first item on, whose items are repeats. It is not part
  // of the state.
  bool repeats = false;
};

// The run, and the place in it that a stage is opened at. A stage passes a changed copy to the
// stages before it, so stages are opened from the last to the sources. Valid as long as the run.
struct open_context {
  // That of the consumer of the run. The run has its plan.
  open_context(std::shared_ptr<run_state> of_run, std::stop_token until);

  std::shared_ptr<run_state> run;
  const planned_node* at;                    // the stage that is being opened
  std::stop_token stop;                      // requested when the next stage needs no more items
  std::shared_ptr<const demand> wanted;      // the demand of the consumer of the items
  std::shared_ptr<const source_pass> pass;   // over the sources before the stage
  std::shared_ptr<const path_place> path{};  // of the route or tee that the stage is in, or null

  // For an input, which is not open yet.
  open_context of(const node_base& input) const;
  open_context until(std::stop_token requested) const;
  open_context taken_by(std::shared_ptr<const demand> taker) const;
  open_context over(source_pass sources) const;
  open_context in(std::shared_ptr<const path_place> opened) const;

  // For stages with several inputs: the context of the i-th. Throws error(limit_exceeded) if the
  // positions do not suffice for all.
  open_context branch(std::size_t i) const;

  const planned_rules& rules() const noexcept { return at->rules; }

  // Where sources and stages record what they deliver, and look up what a resumed run leaves out.
  detail::progress& progress() const noexcept {
    return pass->repeats ? run->unsaved() : run->progress();
  }

  // For stages that notice while they run that there is no exact state.
  void refuse_state(const std::string& why) const;

  // For sources: whether the item at a position has been delivered or is in the cache.
  bool leaves_out(std::uint64_t position) const {
    return progress().is_delivered(position) || is_kept(position);
  }
  bool is_kept(std::uint64_t position) const {
    return pass->kept && pass->kept->contains(position);
  }

  // The counters of the stage.
  stage_counters& add_stage(std::string name, std::size_t inputs = 1) const;

  // For stages whose choices depend on the epoch. Does nothing before a cache that has been filled:
  // there they depend on the epoch of the pass that filled it.
  // `of_run`: its seed, if they depend on it as well.
  void depends_on_epoch(std::string_view chooser, std::optional<std::uint64_t> of_run = {}) const;
  void depends_on_epoch(const std::vector<order_step>& steps) const;

  // The key of shuffles besides their seed: the epoch, combined in a repeat with the round.
  std::uint64_t round() const noexcept;

  // In a trial of a profile: the concurrency that the stage has instead of its own.
  std::optional<unsigned> concurrency_of_trial() const;

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
auto begin_with(const F& begin, const open_context& run, stage_counters& counters) {
  try {
    return begin();
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
  }
}

// The order in which a run visits a list; in a resumed run, that of the items that are left.
// Throws error(invalid_argument) if the state is of another list.
visit_order begin_order(std::vector<order_step> steps, std::uint64_t items, std::string identity,
                        const open_context& run);

}  // namespace lade::detail
