// profile: how fast each stage of a pipeline is alone.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/profiler.hpp>
#include <lade/pipeline.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/stats.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lade {

struct profile_options {
  std::uint64_t items = 256;  // of each source

  // How many items a stage works on at a time, one trial each. If empty: 1, 2, 4, ... up to the
  // threads of the pool, and up to four times as many as the stage says for tasks.
  std::span<const unsigned> concurrency = {};
};

// One stage, run alone.
struct stage_profile {
  struct trial {
    unsigned concurrency = 0;  // 0 for a stage without workers of its own
    bool as_described = false;
    std::uint64_t items = 0;                // that it has given
    std::chrono::nanoseconds elapsed{};     // from the first that was asked for to the end
    double qps = 0;                         // items in a second
    std::optional<double> readiness = {};   // see stats.hpp
    std::chrono::nanoseconds p50{}, p99{};  // of the time for one item
  };

  std::string stage;
  std::vector<trial> trials;  // the least concurrency first
};

// Runs the pipeline once for the first items of its sources, and then every stage alone, several
// times with as many items at a time as the options say: what it takes is made before, held in
// memory, and not counted. What a stage gives alone is what it could give if the others did not
// hold it up, so the slowest stage is the one to work on.
//
// Blocks the thread, which must be none of the runtime's. Throws what the stages throw, and
// error(invalid_argument) for no items or a concurrency of 0.
//
// The environment variable LADE_PROFILE=N has the first run of a program profiled for N items
// before it begins, and the table written to standard error.
template <class T>
std::vector<stage_profile> profile(runtime& where, const pipeline<T>& what,
                                   const profile_options& options = {});

// A table of it, a line for each trial, and a sentence that names the slowest stage. A star marks
// the concurrency that the pipeline describes.
std::string table(std::span<const stage_profile> stages);

namespace detail {

// Throws error(invalid_argument) for options that cannot work.
void require_profile(const profile_options& options);

// What to try after a stage has run as it is described.
std::vector<unsigned> trials_for(const stage_statistics& described, unsigned threads,
                                 std::span<const unsigned> wanted);

stage_profile::trial trial_of(const stage_statistics& stage, std::uint64_t items,
                              std::chrono::nanoseconds elapsed);

inline async_generator<std::uint64_t> run_profiled(
    std::function<task<std::uint64_t>(const opening&)> stage, opening run) {
  auto count = co_await stage(run);
  co_yield count;
}

// Runs one stage in a run of its own.
inline task<stage_profile::trial> try_stage(runtime& where, profiler& profiling,
                                            const profiler::stage& stage,
                                            std::optional<unsigned> concurrency,
                                            stage_statistics& seen) {
  auto alone =
      make_pipeline<std::uint64_t>(1, [&profiling, &stage, concurrency](const opening& from) {
        auto run = from;
        run.profiling = &profiling;
        run.hoards = !profiling.stages().empty();
        run.concurrency = concurrency;
        return run_profiled(stage.run, run);
      });
  seen = {};
  auto run = alone.start(where);
  auto items = co_await run.next();
  auto now = run.statistics() - profiling.take_begin();
  for (auto& each : now.stages)
    if (each.name == stage.name) seen = each;
  co_return trial_of(seen, *items, now.elapsed);
}

template <class T>
task<std::vector<stage_profile>> profile_stages(runtime& where, pipeline<T> what,
                                                profile_options options) {
  profiler profiling(options.items);
  profiler::stage whole{{}, "", [what](const opening& run) { return count_items(what.open(run)); }};
  stage_statistics seen;
  co_await try_stage(where, profiling, whole, std::nullopt, seen);
  profiling.note_all_known();
  std::vector<stage_profile> result;
  for (auto& stage : profiling.stages()) {
    auto& profiled = result.emplace_back();
    profiled.stage = stage.name;
    auto described = co_await try_stage(where, profiling, stage, std::nullopt, seen);
    described.as_described = true;
    profiled.trials.push_back(described);
    for (auto each : trials_for(seen, where.pool().size(), options.concurrency)) {
      auto trial = co_await try_stage(where, profiling, stage, each, seen);
      profiled.trials.push_back(trial);
    }
    std::ranges::sort(profiled.trials, {}, &stage_profile::trial::concurrency);
  }
  co_return result;
}

template <class T>
task<> tell_profile(runtime& where, pipeline<T> what, std::uint64_t items) {
  auto stages = co_await profile_stages(where, std::move(what), {.items = items});
  std::fputs(table(stages).c_str(), stderr);
}

}  // namespace detail

template <class T>
std::vector<stage_profile> profile(runtime& where, const pipeline<T>& what,
                                   const profile_options& options) {
  detail::require_profile(options);
  return sync_wait(where, detail::profile_stages(where, what, options));
}

}  // namespace lade
