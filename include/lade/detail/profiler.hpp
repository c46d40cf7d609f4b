// How profile() gets between the stages of a pipeline.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/items.hpp>
#include <lade/detail/run_state.hpp>
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

template <class T>
async_generator<T> first_items(async_generator<T> items, std::uint64_t count) {
  for (; count > 0; --count) {
    auto* item = co_await items.next();
    if (!item) co_return;
    co_yield *item;
  }
}

// Gives the first item when all are there.
template <class T>
async_generator<T> hoard(async_generator<T> items, opening run) {
  std::vector<held_item<T>> all;
  while (auto* item = co_await items.next().apart())
    all.emplace_back(std::move(*item), items.origin());
  run.profiling->note_begin(run.run->statistics());
  for (auto& each : all) {
    run.throw_if_stopped("profile");
    with_lineage<T> yielded{each.origin, each.item};
    co_yield yielded;
  }
}

template <class T>
task<std::uint64_t> count_items(async_generator<T> items) {
  std::uint64_t count = 0;
  while (co_await items.next()) ++count;
  co_return count;
}

template <class Pipeline>
counting_run counting(const Pipeline& what) {
  return [what](const opening& run) { return count_items(what.open(run)); };
}

// Opens one stage with all that it takes made before. A source is cut short.
template <class Pipeline>
auto open_alone(const Pipeline& what, const opening& run) {
  auto before = run.profiling->opened();
  auto items = what.open_stage(run);
  if (run.profiling->opened() > before) return items;
  return first_items(std::move(items), run.profiling->source_items());
}

template <class Pipeline>
auto open_profiled(const Pipeline& what, const opening& from) {
  auto& profiling = *from.profiling;
  auto run = from;
  run.hoards = from.hoards && !profiling.knows(what.key(from));
  if (!run.hoards) run.concurrency.reset();
  auto before = ++profiling.opened();
  auto items = what.open_stage(run);
  bool is_source = profiling.opened() == before && !from.split;  // and not the way into a path
  if (is_source) items = first_items(std::move(items), profiling.source_items());
  if (from.hoards) return run.hoards ? std::move(items) : hoard(std::move(items), run);
  auto name = from.split ? std::string() : from.run->name_of(what.key(from));  // paths are parts
  if (!name.empty())
    profiling.add({what.key(from), std::move(name),
                   [what](const opening& alone) { return count_items(open_alone(what, alone)); }});
  return items;
}

}  // namespace lade::detail
