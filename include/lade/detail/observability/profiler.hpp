// How a profile gets between the stages of a pipeline.

#pragma once

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

// First the whole pipeline is run, so that the profiler gets to know the stages. Then each stage is
// on trial: run alone, where what it takes from others is all made before it begins. Every node
// that is opened in these runs asks the profiler how.
class profiler {
 public:
  struct stage {
    node_ptr last;
    std::string name;
  };

  profiler(std::uint64_t source_items, run_options options)
      : source_items_(source_items), options_(std::move(options)) {}

  // How many items are taken of a source, and the options that stages are run with.
  std::uint64_t source_items() const noexcept { return source_items_; }
  const run_options& options() const noexcept { return options_; }

  // Sources first. Stages are added before the first trial.
  const std::vector<stage>& stages() const noexcept { return stages_; }
  void add(stage opened) { stages_.push_back(std::move(opened)); }

  // From now on, runs are trials of the last stage of the pipeline that they run, with this
  // concurrency instead of its own.
  void begin_trial(std::optional<unsigned> concurrency) noexcept {
    on_trial_ = true;
    concurrency_ = concurrency;
  }
  bool is_on_trial() const noexcept { return on_trial_; }

  // Whether a node yields what the stage on trial takes; and with which concurrency the stage runs
  // of which a node is a part.
  bool feeds_trial(const planned_node& at) const noexcept;
  std::optional<unsigned> concurrency_of(const planned_node& at) const noexcept;

  // Counts the nodes that are opened: what opens no other is a source.
  std::size_t& opened() noexcept { return opened_; }

  // What the run had done when all that a stage takes had been made.
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
