// profile: how fast each stage of a pipeline is alone.

#pragma once

#include <lade/detail/observability/profiler.hpp>
#include <lade/pipeline.hpp>
#include <lade/run_options.hpp>
#include <lade/runtime.hpp>
#include <lade/stats.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lade {

struct profile_options {
  std::uint64_t items = 256;  // of each source: 1 to 1,073,741,824

  // How many items a stage works on at a time, one trial each: 1 to 1,048,576. If empty: 1, 2, 4,
  // ... up to the threads of the pool, and up to four times as many as the stage says for tasks.
  std::span<const unsigned> concurrency = {};

  // What stages are run with: the epoch, the seed, what becomes of items that fail and how many
  // may, and the bounds of automatic stages. All else is for other runs.
  run_options run = {};
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
// error(invalid_argument) that names the option for one that cannot work.
//
// The environment variable LADE_PROFILE=N has the first run of a program profiled for N items
// before it begins, on rank 0 alone, with the options of that run, and the table written to
// standard error; or why there is none, if N is no number or the profile fails. The run begins all
// the same.
template <class T>
std::vector<stage_profile> profile(runtime& where, const pipeline<T>& what,
                                   const profile_options& options = {});

// A table of it, a line for each trial, and a sentence that names the slowest stage. A star marks
// the concurrency that the pipeline describes.
std::string table(std::span<const stage_profile> stages);

namespace detail {

std::vector<stage_profile> profile(runtime& where, const node_ptr& last,
                                   const profile_options& options);

}  // namespace detail

template <class T>
std::vector<stage_profile> profile(runtime& where, const pipeline<T>& what,
                                   const profile_options& options) {
  return detail::profile(where, what.last(), options);
}

}  // namespace lade
