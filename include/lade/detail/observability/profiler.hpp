// How profile() gets between the stages of a pipeline.

#pragma once

#include <lade/detail/common/counted.hpp>
#include <lade/detail/pipeline/node.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/run_options.hpp>
#include <lade/stats.hpp>
#include <lade/task.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace lade::detail {

// Opens a pipeline, or a part of it, runs it to its end and counts what it gives.
using counting_run = std::function<task<std::uint64_t>(const opening&)>;
counting_run counting(counted_ptr<const node_base> last);

// Every pipeline that is opened for a profile asks its profiler how. First the whole pipeline is
// opened, so that the profiler gets to know the stages; then each stage alone, where what it takes
// from others is all made before it begins.
class profiler {
 public:
  struct stage {
    stage_key key;
    std::string name;
    counting_run run;
  };

  profiler(std::uint64_t source_items, run_options options)
      : source_items_(source_items), options_(std::move(options)) {}

  // How many items are taken of a source, and what stages are run with.
  std::uint64_t source_items() const noexcept { return source_items_; }
  const run_options& options() const noexcept { return options_; }

  // Sources first. Stages are added until all are known.
  const std::vector<stage>& stages() const noexcept { return stages_; }
  void add(stage opened) {
    if (!all_known_) stages_.push_back(std::move(opened));
  }
  void note_all_known() noexcept { all_known_ = true; }
  bool knows(const stage_key& key) const noexcept {
    return std::ranges::find(stages_, key, &stage::key) != stages_.end();
  }

  // Counts the pipelines that are opened: what opens no other is a source.
  std::size_t& opened() noexcept { return opened_; }

  // What the run had done when all that a stage takes had been made.
  void note_begin(run_statistics now) {
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
  bool all_known_ = false;
  std::vector<stage> stages_;
  std::mutex mutex_;
  run_statistics before_;
};

}  // namespace lade::detail
