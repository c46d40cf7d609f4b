// What a run tells about itself: counts and times of every stage, and which one limits it.

#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lade {

// One stage of a run, at one moment. Times are summed over its workers.
struct stage_statistics {
  std::string name;
  unsigned workers = 0;             // that may be busy at a time; 0 for a stage without its own
  unsigned own_threads = 0;         // of its own pool; 0 for a stage on the runtime's
  bool on_reactor = false;          // its workers wait rather than compute
  std::uint64_t in = 0;             // items taken from the stage before
  std::uint64_t out = 0;            // items given to the next stage
  std::uint64_t failed = 0;         // items whose function threw
  std::uint64_t skipped = 0;        // of these, dropped by its policy
  std::uint64_t substituted = 0;    // of these, replaced by its policy
  std::uint64_t retried = 0;        // calls for an item for which one had failed
  std::uint64_t bytes = 0;          // of what it gave, where items have a size
  std::chrono::nanoseconds busy{};  // spent inside of its function
  std::chrono::nanoseconds input_wait{};   // its feeder waited for the stage before
  std::chrono::nanoseconds output_wait{};  // its feeder waited for room: the next stage is slow
  std::chrono::nanoseconds starving{};     // the next stage waited for this one
  std::chrono::nanoseconds p50{}, p90{}, p99{};  // of the time its function takes for one item
};

struct run_statistics {
  std::chrono::nanoseconds elapsed{};
  unsigned threads = 0;                     // of the CPU pool
  unsigned cpus = 0;                        // that the process may use
  std::chrono::nanoseconds sink_wait{};     // the consumer waited for items
  std::chrono::nanoseconds sink_blocked{};  // finished items waited for the consumer
  std::chrono::nanoseconds memory_wait{};   // no item was begun, for want of memory
  std::uint64_t delivered = 0;
  std::vector<stage_statistics> stages;  // from the source on
};

// A table of the stages, a line each, for people.
std::string table(const run_statistics& run);

// One line of JSON with the same names as above; times in seconds.
std::string to_json(const run_statistics& run);

// One sentence: which stage limits the run, how it shows, and what to change.
std::string verdict(const run_statistics& run);

namespace detail {

using clock = std::chrono::steady_clock;

// Counts durations in buckets of an eighth of their power of two: quantiles to within 7 %.
class duration_histogram {
 public:
  void add(std::chrono::nanoseconds duration) noexcept;
  std::chrono::nanoseconds quantile(double share) const noexcept;

 private:
  static constexpr std::size_t per_octave = 8;
  static constexpr std::size_t octaves = 48;
  std::array<std::atomic<std::uint32_t>, per_octave * octaves> counts_{};
};

// The live counters of one stage. Any thread adds; readers see values a moment old.
class stage_counters {
 public:
  explicit stage_counters(std::string name) : name_(std::move(name)) {}

  const std::string& name() const noexcept { return name_; }

  unsigned workers = 0;
  unsigned own_threads = 0;
  bool on_reactor = false;
  std::atomic<std::uint64_t> in = 0, out = 0, failed = 0, skipped = 0, substituted = 0, retried = 0,
                             bytes = 0;
  std::atomic<std::int64_t> busy = 0, input_wait = 0, output_wait = 0, starving = 0;
  duration_histogram latency;

  stage_statistics snapshot() const;

 private:
  std::string name_;
};

// For counters that one thread at a time adds to: no locked instruction.
template <class T>
void bump(std::atomic<T>& counter, T by = 1) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

// Adds the time of its life to a counter.
class stopwatch {
 public:
  explicit stopwatch(std::atomic<std::int64_t>& counter) noexcept
      : counter_(counter), start_(clock::now()) {}
  stopwatch(const stopwatch&) = delete;
  ~stopwatch() { counter_.fetch_add((clock::now() - start_).count(), std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t>& counter_;
  clock::time_point start_;
};

}  // namespace detail
}  // namespace lade
