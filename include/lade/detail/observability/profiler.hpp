// profiler: the state of a profile, which changes how the nodes of a pipeline are opened.

#pragma once

#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/pipeline/node.hpp>
#include <lade/detail/pipeline/plan.hpp>
#include <lade/run_options.hpp>
#include <lade/stats.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lade::detail {

// A profile first runs the whole pipeline, in which the nodes register their stages. Then it runs
// one or more trials of each stage: pipelines that end in the stage, where all input items of the
// stage are made before it starts. So a trial measures this stage alone.
//
// Thread: the profile runs one trial at a time, and calls the other members between the runs or
// while their stages are opened. mutex_ guards the statistics.
class profiler {
 public:
  struct stage {
    node_ptr last;
    std::string name;
  };

  profiler(std::uint64_t source_items, run_options options)
      : source_items_(source_items), options_(std::move(options)) {}

  // The number of items to take from each source, and the options of the runs.
  std::uint64_t source_items() const noexcept { return source_items_; }
  const run_options& options() const noexcept { return options_; }

  // The stages, sources first. All are added before the first trial.
  const std::vector<stage>& stages() const noexcept { return stages_; }
  void add(stage opened) { stages_.push_back(std::move(opened)); }

  // Makes further runs trials of the last stage of their pipeline. `concurrency`: instead of the
  // one of the stage.
  void begin_trial(std::optional<unsigned> concurrency) noexcept {
    on_trial_ = true;
    concurrency_ = concurrency;
  }
  bool is_on_trial() const noexcept { return on_trial_; }

  // Whether the node is an input of the stage on trial.
  bool feeds_trial(const planned_node& at) const noexcept;

  // The concurrency of the trial, if the node is part of the stage on trial.
  std::optional<unsigned> concurrency_of(const planned_node& at) const noexcept;

  // The number of nodes opened so far. A node that opens no other is a source.
  std::size_t& opened() noexcept { return opened_; }

  // The statistics of the run when all input items had been made: the start of the trial.
  void record_begin(run_statistics now) {
    std::lock_guard lock(mutex_);
    before_ = std::move(now);
  }
  run_statistics take_begin() {
    std::lock_guard lock(mutex_);
    return std::exchange(before_, {});
  }

 private:
  const std::uint64_t source_items_;
  const run_options options_;
  std::size_t opened_ = 0;
  bool on_trial_ = false;
  std::optional<unsigned> concurrency_;
  std::vector<stage> stages_;
  std::mutex mutex_;
  run_statistics before_;
};

}  // namespace lade::detail
