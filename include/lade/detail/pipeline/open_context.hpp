// open_context: the context in which a stage is opened for a run.

#pragma once

#include <lade/detail/memory/demand.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/pipeline/index.hpp>
#include <lade/detail/pipeline/path_place.hpp>
#include <lade/detail/pipeline/plan.hpp>
#include <lade/detail/pipeline/progress.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/pipeline/stage_key.hpp>
#include <lade/failure.hpp>
#include <lade/lineage.hpp>

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

// A pass over the sources of a stage: all sources of the run, or the sources that only this stage
// reads.
struct source_pass {
  // Sources number their items from `first` to `first + span - 1`.
  std::uint64_t first = 0;
  std::uint64_t span = most_positions;

  // Keys of random choices: of the run, or, before a cache, of the pass that filled the cache.
  std::uint64_t epoch = 0;
  std::uint64_t seed = 0;

  // Distinguishes the rounds of a repeat: positions of the rounds before. 0 in the first one. The
  // same for all sources, so that shuffles with equal seeds give equal orders.
  std::uint64_t round = 0;

  // Skipped positions: their items are in a cache. Null if there are none.
  std::shared_ptr<const lineage> kept = nullptr;

  // Whether it is a further pass over the sources, whose items are repeats. It is not part of the
  // state (the checkpoint).
  bool repeats = false;
};

// The context in which a stage is opened: the run, and a place in its plan. A stage opens the
// stages before it with a changed copy, so stages are opened from the last to the sources. Valid as
// long as the run.
struct open_context {
  // The context of the consumer of the run, which must have a plan.
  open_context(std::shared_ptr<run_state> of_run, std::stop_token until);

  std::shared_ptr<run_state> run;
  const planned_node* at;                    // stage that is being opened
  std::stop_token stop;                      // requested when the next stage needs no more items
  std::shared_ptr<const demand> wanted;      // demand of the consumer of the items
  std::shared_ptr<const source_pass> pass;   // pass over the sources before the stage
  std::shared_ptr<const path_place> path{};  // innermost path of a route or tee; null: none

  // Copies with one change. of(): for an input that is not open yet.
  open_context of(const node_base& input) const;
  open_context until(std::stop_token requested) const;
  open_context taken_by(std::shared_ptr<const demand> taker) const;
  open_context over(source_pass sources) const;
  open_context in(std::shared_ptr<const path_place> opened) const;

  // For stages with several inputs: the context of the i-th input. Throws error(limit_exceeded) if
  // there are too few positions for all inputs.
  open_context branch(std::size_t i) const;

  const planned_rules& rules() const noexcept { return at->rules; }

  // The record of deliveries, which also has the positions that a resumed run skips.
  detail::progress& progress() const noexcept {
    return pass->repeats ? run->unsaved() : run->progress();
  }

  // For stages that choose which item is next: the log of their choices, for a state. A cache
  // behind such a stage keeps all items or none: without the kept items, it would choose
  // differently among the rest. `what`: the stage and all options that its choices depend on.
  choice_log choosing(const std::string& what) const;

  // For stages that find at run time that there is no exact state.
  void refuse_state(const std::string& why) const;

  // For sources: whether to skip a position, because its item is delivered or in the cache.
  bool leaves_out(std::uint64_t position) const {
    return progress().is_delivered(position) || is_kept(position);
  }
  bool is_kept(std::uint64_t position) const {
    return pass->kept && pass->kept->contains(position);
  }

  // Adds the stage to the statistics of the run and returns its counters.
  stage_counters& add_stage(std::size_t inputs = 1) const;

  // For stages whose choices depend on the epoch. Does nothing before a filled cache, since the
  // epoch of the pass that filled the cache counts there. `of_run`: the seed of the run, if the
  // choices depend on the seed as well.
  void depends_on_epoch(std::string_view chooser, std::optional<std::uint64_t> of_run = {}) const;
  void depends_on_epoch(const std::vector<order_step>& steps) const;

  // The key of shuffles besides their seed: the epoch, in a repeat combined with the round.
  std::uint64_t round() const noexcept;

  // In a trial of a profile: the concurrency of the stage, instead of its option.
  std::optional<unsigned> concurrency_of_trial() const;

  // Throws error(stopped) if the stage is asked to stop. Sources must call it for every item.
  // Otherwise a stage that drops all items would keep a run alive.
  void throw_if_stopped(std::string_view doing) const;
  void throw_if_stopped(const stage_counters& counters) const {
    if (stop.stop_requested()) throw_if_stopped(counters.name());
  }

  // Records a failure as run_state::failures().fail does, for stages that call the user's function
  // inline. After a stop it counts nothing and returns error(stopped).
  std::exception_ptr failure(stage_counters& counters, const failure_policy& policy,
                             std::string item, const lineage& origin) const;
};

// Returns `begin()`. Adds the name of the stage to an exception that it throws.
template <class F>
auto begin_with(const F& begin, const open_context& run, stage_counters& counters) {
  try {
    return begin();
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
  }
}

// Throws error(limit_exceeded) if the position of an item belongs to another source.
void require_own_position(std::uint64_t place, const open_context& run);

// The order in which a run visits a list; in a resumed run, of the remaining items. Throws
// error(invalid_argument) if the state (the checkpoint) is of another list.
visit_order begin_order(std::vector<order_step> steps, std::uint64_t items, std::string identity,
                        const open_context& run);

}  // namespace lade::detail
