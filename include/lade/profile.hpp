// profile: measures each stage of a pipeline alone.

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
  std::uint64_t items = 256;  // items of each source: 1 to 1,073,741,824

  // Concurrency values to try, one trial each: 1 to 1,048,576. If empty: 1, 2, 4, ... up to the
  // threads of the pool, or for tasks, and for generators that wait, up to four times the stage's
  // own value. For functions that do not wait, a value above the threads of the pool counts as that
  // number.
  std::span<const unsigned> concurrency = {};

  // Options of the trials: the epoch, the seed, the policy, retries and budget for items that fail,
  // and the limits of automatic stages. All other members are ignored.
  run_options run = {};
};

// Measurements of one stage, run alone.
struct stage_profile {
  struct trial {
    unsigned concurrency = 0;               // 0 for an inline stage
    bool as_described = false;              // the concurrency is the pipeline's
    std::uint64_t items = 0;                // items that it has yielded
    std::chrono::nanoseconds elapsed{};     // time from the first request to the end
    double qps = 0;                         // items per second
    std::optional<double> readiness = {};   // see stats.hpp
    std::chrono::nanoseconds p50{}, p99{};  // quantiles of the time for one item
  };

  std::string stage;
  std::vector<trial> trials;  // by ascending concurrency
};

// Runs the pipeline once for the first items of its sources. Then runs every stage alone, once with
// each concurrency. The stage's input is made before and held in memory, and does not count as
// time. The rate of a stage alone is the rate that it reaches if no other stage delays it. So the
// stage to improve is the slowest one.
//
// Blocks the calling thread, which must not be a thread of the runtime. Throws the exceptions of
// the stages. Throws error(invalid_argument) naming the option if an option is invalid.
//
// The environment variable LADE_PROFILE=N profiles the first run of a program for N items before it
// begins, on rank 0 only, with the options of that run. The table is written to standard error. If
// N is not a number or the profile fails, the reason is written instead. The run begins in any
// case.
template <class T>
std::vector<stage_profile> profile(runtime& where, const pipeline<T>& what,
                                   const profile_options& options = {});

// A table with one line per trial, and a sentence that names the slowest stage. A star marks the
// concurrency that the pipeline describes.
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
