// stats: counts and times of every stage of a run, and which stage is the bottleneck.

#pragma once

#include <lade/lineage.hpp>
#include <lade/process.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lade {

// A histogram of durations with eight buckets per power of two. Quantiles are accurate to 7 %.
class duration_counts {
 public:
  std::uint64_t total() const noexcept;
  std::chrono::nanoseconds quantile(double share) const noexcept;

  // The duration that bucket `i` stands for.
  static std::chrono::nanoseconds duration_of(std::size_t i) noexcept;

  // Subtracts an earlier copy of the same histogram. The remaining counts were added since then.
  duration_counts& operator-=(const duration_counts& earlier) noexcept;

  static constexpr std::size_t per_octave = 8;
  static constexpr std::size_t octaves = 48;
  std::array<std::uint64_t, per_octave * octaves> counts{};
};

// A call of a stage's function that took long.
struct slow_item {
  std::string item;   // key of the item, if it has one
  lineage positions;  // source positions of the item, and of items dropped just before it
  std::chrono::nanoseconds duration{};

  friend bool operator==(const slow_item&, const slow_item&) = default;
};

// One stage of a run, at one moment. Times are sums over its workers. Every stage fills the counts
// of items and bytes. The other members depend on the stage:
//
// - with workers, for plain functions: all
// - with workers, for tasks: all but `cpu` and `preempted`
// - prefetch: `slots`, `depth` and the waits
// - merge by arrival, tee, route, route_batches: the same; `depth` counts the results that wait
//   behind the inputs or paths
// - inline map, filter, flat_map and batch_by: `busy`, `durations` and `slowest`
// - other inline stages, and sources: none
//
// `in` and `out` are numbers of items. Exceptions: batch_into counts samples, and route_batches
// takes items, which are members of batches, and yields batches.
//
// The waits are `input_wait`, `output_wait`, `memory_wait` and `next_starved`. Where there are no
// workers, `workers` and `paused` are 0. from_shards has workers if its concurrency is above 1.
struct stage_statistics {
  // If several stages have the same name, the second from the source on is "name (2)". The same
  // holds in errors, failures, hooks and traces.
  std::string name;
  unsigned workers = 0;                  // number of workers; 0 for a stage without workers
  unsigned most_workers = 0;             // limit of a search for `workers`; 0: they are fixed
  unsigned own_threads = 0;              // threads of its dedicated pool; 0 without one
  unsigned shared_threads = 0;           // runtime threads shared by automatic stages; else 0
  bool on_reactor = false;               // whether its workers wait rather than compute
  std::size_t slots = 0;                 // capacity in items; 0 if it passes them on at once
  std::size_t depth = 0;                 // of `slots`: items that wait, are worked on, or are done
  bool gathers = false;                  // whether it holds results of several paths or inputs
  unsigned inputs = 1;                   // stages that it takes items from; 0 for a source
  std::uint64_t in = 0;                  // items taken from the stage before; see above
  std::uint64_t out = 0;                 // items yielded to the next stage
  std::uint64_t failed = 0;              // items that failed because the function threw
  std::uint64_t skipped = 0;             // of `failed`: items dropped by the policy
  std::uint64_t substituted = 0;         // of `failed`: items replaced by the policy
  std::uint64_t retried = 0;             // further calls that were planned after a failed one
  std::uint64_t repeated = 0;            // of `out`: items repeated for missing ones
  std::uint64_t bytes = 0;               // of `out`: bytes read, or bytes of pixels and elements
  std::chrono::nanoseconds busy{};       // time in the function, calls in flight included
  std::chrono::nanoseconds returned{};   // of `busy`: time in calls that have returned
  std::chrono::nanoseconds cpu{};        // of `returned`: CPU time, sampled; 0 for tasks and inline
  std::chrono::nanoseconds preempted{};  // of `returned`: time runnable without a CPU; as `cpu`
  std::chrono::nanoseconds awaited{};    // of `returned`: flat_map's calls for parts that awaited
  std::chrono::nanoseconds paused{};     // time its workers paused before retries
  std::chrono::nanoseconds input_wait{};      // time it waited for its input; for all if several
  std::chrono::nanoseconds output_wait{};     // time it took no item: all slots were in use
  std::chrono::nanoseconds memory_wait{};     // time its feeder, or some calls, waited for memory
  std::chrono::nanoseconds next_starved{};    // time the next stage was starved by this one
  duration_counts input_waits, output_waits;  // single waits of input_wait and output_wait, if over
  duration_counts durations;  // durations of calls for an item; in flat_map for a part, or the end
  std::chrono::nanoseconds p50{}, p90{}, p99{};  // quantiles of `durations`
  std::vector<slow_item> slowest;                // the ten longest calls, longest first
};

struct run_statistics {
  std::chrono::nanoseconds elapsed{};        // time since the run began, until it ended
  std::chrono::nanoseconds first_item{};     // of `elapsed`: until the first delivery; 0: none yet
  unsigned threads = 0;                      // threads of the CPU pool
  unsigned cpus = 0;                         // CPUs that the process may use
  std::chrono::nanoseconds consumer_wait{};  // time the consumer waited for items
  std::chrono::nanoseconds output_wait{};    // time the output queue was full
  std::chrono::nanoseconds memory_wait{};    // time no item was started for lack of memory
  // Single waits of `consumer_wait` and `output_wait` that are over.
  duration_counts consumer_waits, output_waits;
  std::size_t depth = 0;        // finished items in the output queue: `ready` and one more at most
  std::uint64_t delivered = 0;  // items that the consumer has got
  std::vector<stage_statistics> stages;  // from the source on
};

// The interval between two snapshots of a run: its counts, times and quantiles. The slowest items
// of each stage are the ones among the ten of `later` that `earlier` does not have. `first_item` is
// 0 if the consumer had its first item before.
run_statistics operator-(const run_statistics& later, const run_statistics& earlier);

// Items per second: yielded by a stage, or delivered to the consumer.
double qps(const stage_statistics& stage, std::chrono::nanoseconds elapsed);
double qps(const run_statistics& run);

// The share of time, 0 to 1, in which the next stage, or the consumer, was not starved. Near 1, the
// bottleneck is behind the stage; near 0, it is the stage or is before it. Nothing for a stage that
// holds no items.
std::optional<double> readiness(const stage_statistics& stage, std::chrono::nanoseconds elapsed);
double readiness(const run_statistics& run);

// A periodic report of a run; see report_options in run_options.hpp.
struct run_report {
  run_statistics total;     // since the run began
  run_statistics interval;  // since the last report
  process_statistics process;
  bool last = false;  // whether the run has ended
};

struct table_options {
  bool slowest = false;  // adds a line for each of the slowest items of each stage
};

// A table for people, with one line per stage.
std::string table(const run_statistics& run, const table_options& options = {});

// One line of JSON with the member names above. Times are in seconds, rates in items per second.
std::string to_json(const run_statistics& run);

// The bottleneck report, in one sentence: the bottleneck, the evidence and the remedy. Use it for a
// run in its steady state, or for an interval of it. In the first seconds, caches fill.
std::string verdict(const run_statistics& run);

}  // namespace lade
