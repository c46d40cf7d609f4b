// What a run tells about itself: counts and times of every stage, and which one limits it.

#pragma once

#include <lade/lineage.hpp>
#include <lade/process.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lade {

// How many durations lie in each eighth of a power of two: quantiles to within 7 %.
class duration_counts {
 public:
  std::uint64_t total() const noexcept;
  std::chrono::nanoseconds quantile(double share) const noexcept;

  // About how long those lasted that are counted at `i`.
  static std::chrono::nanoseconds duration_of(std::size_t i) noexcept;

  // What came after `earlier`, which is part of this.
  duration_counts& operator-=(const duration_counts& earlier) noexcept;

  static constexpr std::size_t per_octave = 8;
  static constexpr std::size_t octaves = 48;
  std::array<std::uint64_t, per_octave * octaves> counts{};
};

// A call of a stage's function that took long.
struct slow_item {
  std::string item;   // its key, as far as it has one
  lineage positions;  // source positions of the item, and of items dropped just before it
  std::chrono::nanoseconds duration{};

  friend bool operator==(const slow_item&, const slow_item&) = default;
};

// One stage of a run, at one moment. Times are summed over its workers; a stage that works
// in place has no `cpu` and no waits (but `starving` if it holds items), and `busy` and `durations`
// if it is a map, filter, flat_map or batch_by.
struct stage_statistics {
  // Of several stages of one name, the second from the source on is "name (2)": here, in errors,
  // failures, hooks and traces alike.
  std::string name;
  unsigned workers = 0;             // that may be busy at a time; 0 for a stage without its own
  unsigned own_threads = 0;         // of its own pool; 0 for a stage on the runtime's
  unsigned shared_threads = 0;      // of the runtime's that automatic stages share; 0 for others
  bool on_reactor = false;          // its workers wait rather than compute
  std::size_t slots = 0;            // items that it may hold; 0 for one that passes them on at once
  bool gathers = false;             // what it holds are results of several paths or inputs
  unsigned inputs = 1;              // stages that it takes items from; 0 for a source
  std::uint64_t in = 0;             // items taken from the stage before
  std::uint64_t out = 0;            // items given to the next stage
  std::uint64_t failed = 0;         // items whose function threw
  std::uint64_t skipped = 0;        // of these, dropped by its policy
  std::uint64_t substituted = 0;    // of these, replaced by its policy
  std::uint64_t retried = 0;        // calls for an item for which one had failed
  std::uint64_t repeated = 0;       // in `out`: repeats of items for others that are missing
  std::uint64_t bytes = 0;          // in `out`: what was read, or written as pixels and elements
  std::chrono::nanoseconds busy{};  // inside its function, calls that have not returned included
  std::chrono::nanoseconds returned{};  // of busy, in calls that have returned
  std::chrono::nanoseconds cpu{};       // of returned, computing: sampled; 0 for tasks and in place
  std::chrono::nanoseconds preempted{};    // of returned, ready to compute without a CPU: as cpu
  std::chrono::nanoseconds awaited{};      // of returned, in calls for parts that awaited: flat_map
  std::chrono::nanoseconds paused{};       // pauses of its workers before they try an item again
  std::chrono::nanoseconds input_wait{};   // its feeder waited for the stage before
  std::chrono::nanoseconds output_wait{};  // its feeder waited for room: the next stage is slow
  std::chrono::nanoseconds memory_wait{};  // its feeder, or some of its calls, waited for memory
  std::chrono::nanoseconds starving{};     // the next stage waited for this one
  duration_counts input_waits, output_waits;  // the single waits of the same that are over
  duration_counts durations;  // of calls for an item; of flat_map for a part, or the end
  std::chrono::nanoseconds p50{}, p90{}, p99{};  // of these
  std::vector<slow_item> slowest;                // the ten longest of these, the longest first
};

struct run_statistics {
  std::chrono::nanoseconds elapsed{};       // since the run began, until it has ended
  std::chrono::nanoseconds first_item{};    // of that, until the consumer had one; 0: it has none
  unsigned threads = 0;                     // of the CPU pool
  unsigned cpus = 0;                        // that the process may use
  std::chrono::nanoseconds sink_wait{};     // the consumer waited for items
  std::chrono::nanoseconds sink_blocked{};  // finished items waited for the consumer
  std::chrono::nanoseconds memory_wait{};   // no item was begun, for want of memory
  duration_counts sink_waits;               // the single waits of sink_wait that are over
  std::uint64_t delivered = 0;
  std::vector<stage_statistics> stages;  // from the source on
};

// What happened between two moments of a run: counts, times and quantiles of that interval alone,
// and those of the ten slowest items of each stage that are new since then. `first_item` is 0 if
// the consumer had its first item before.
run_statistics operator-(const run_statistics& later, const run_statistics& earlier);

// Items given in a second, by a stage or to the consumer.
double qps(const stage_statistics& stage, std::chrono::nanoseconds elapsed);
double qps(const run_statistics& run);

// The share of the time in which who takes the items of a stage, or of the run, did not find it
// empty. Near 1, what comes behind is slower; near 0, what comes before it is. Nothing for a stage
// that holds no items.
std::optional<double> readiness(const stage_statistics& stage, std::chrono::nanoseconds elapsed);
double readiness(const run_statistics& run);

// What a run tells every so often; see run_options.hpp.
struct run_report {
  run_statistics total;     // since the run began
  run_statistics interval;  // since the last report
  process_statistics process;
  bool last = false;  // the run has ended
};

struct table_options {
  bool slowest = false;  // the slowest items of each stage too, a line each
};

// A table of the stages, a line each, for people.
std::string table(const run_statistics& run, const table_options& options = {});

// One line of JSON with the same names as above; times in seconds, rates in items a second.
std::string to_json(const run_statistics& run);

// One sentence: what limits the run, how it shows, and what to change. For a run that has found its
// pace, or an interval of it: the first seconds are those of caches that fill.
std::string verdict(const run_statistics& run);

namespace detail {

using clock = std::chrono::steady_clock;

// Counts durations as they come. Any thread.
class duration_histogram {
 public:
  void add(std::chrono::nanoseconds duration, std::uint64_t times = 1) noexcept;
  duration_counts now() const noexcept;
  void clear() noexcept;

 private:
  std::array<std::atomic<std::uint64_t>, duration_counts{}.counts.size()> counts_{};
};

// How long somebody has waited so far, the wait that is not over included. One wait at a time; any
// thread reads.
class wait_sum {
 public:
  void begin(clock::time_point now) noexcept { add(-of(now)); }
  void end(clock::time_point now) noexcept { add(of(now)); }
  std::chrono::nanoseconds until(clock::time_point now) const noexcept;

  static std::int64_t of(clock::time_point time) noexcept {
    return std::chrono::nanoseconds(time.time_since_epoch()).count();
  }

 private:
  void add(std::int64_t nanoseconds) noexcept {
    sum_.fetch_add(nanoseconds, std::memory_order_relaxed);
  }

  std::atomic<std::int64_t> sum_ = 0;  // during a wait, less its beginning: below 0 only then
};

// The same, and how long the waits took that are over.
class waiting_time {
 public:
  void begin(clock::time_point now) noexcept {
    begun_.store(wait_sum::of(now), std::memory_order_relaxed);
    sum_.begin(now);
  }
  void end(clock::time_point now) noexcept {
    auto begun = std::max(begun_.load(std::memory_order_relaxed), from_.load());
    ended_.add(std::chrono::nanoseconds(wait_sum::of(now) - begun));
    sum_.end(now);
  }

  // What has been waited before counts no more, also of a wait that is not over.
  void count_from(clock::time_point now) noexcept;

  std::chrono::nanoseconds until(clock::time_point now) const noexcept;
  duration_counts ended() const noexcept { return ended_.now(); }

 private:
  wait_sum sum_;
  std::atomic<std::int64_t> begun_ = 0;
  std::atomic<std::int64_t> from_ = std::numeric_limits<std::int64_t>::min();
  std::atomic<std::int64_t> before_ = 0;  // of the sum, what does not count
  duration_histogram ended_;
};

// How long the calls of a function have lasted. Calls that have not returned count up to the moment
// that is asked about, so that a stage inside long calls is not taken for an idle one. Any thread
// reads.
class call_time {
  struct part;

 public:
  // The calls of one worker, one at a time. They take no lock and share no cache line with others.
  // A call that has not ended with it, since its coroutine was destroyed, ends then.
  class caller {
   public:
    explicit caller(call_time& sum) : sum_(sum), part_(sum.take()) {}
    caller(caller&& other) noexcept
        : sum_(other.sum_), part_(std::exchange(other.part_, nullptr)) {}
    caller& operator=(caller&&) = delete;
    ~caller();

    void begin(clock::time_point now) noexcept;
    void end(clock::time_point now) noexcept;

    // Calls that were not measured, and have returned.
    void add(std::chrono::nanoseconds estimate) noexcept;

   private:
    call_time& sum_;
    part* part_;
  };

  struct sums {
    std::chrono::nanoseconds all{};
    std::chrono::nanoseconds returned{};
  };
  sums until(clock::time_point now) const;

 private:
  static constexpr std::size_t cache_line = 64;

  // Written by one caller at a time. Between two calls, `sum` and `returned` are equal; during one,
  // `sum` is less by its beginning, and below 0.
  struct alignas(cache_line) part {
    std::atomic<std::int64_t> sum = 0;
    std::atomic<std::int64_t> returned = 0;
    part* next_free = nullptr;  // while no caller has it
  };

  part* take();
  void give_back(part& gone) noexcept;

  mutable std::mutex mutex_;
  std::deque<part> parts_;  // what callers that are gone have counted stays
  part* first_free_ = nullptr;
};

// How long at least one of several has waited.
class shared_waiting_time {
 public:
  void begin(clock::time_point now) noexcept {
    if (waiting_.fetch_add(1, std::memory_order_relaxed) == 0) any_.begin(now);
  }
  void end(clock::time_point now) noexcept {
    if (waiting_.fetch_sub(1, std::memory_order_relaxed) == 1) any_.end(now);
  }
  bool is_waiting() const noexcept { return waiting_.load(std::memory_order_relaxed) > 0; }

  // Never less than before, though one wait may begin on a thread before the end of another has
  // been noted.
  std::chrono::nanoseconds until(clock::time_point now) const noexcept {
    auto waited = any_.until(now).count();
    auto told = told_.load(std::memory_order_relaxed);
    while (told < waited && !told_.compare_exchange_weak(told, waited)) {}
    return std::chrono::nanoseconds(std::max(told, waited));
  }

 private:
  std::atomic<unsigned> waiting_ = 0;
  wait_sum any_;
  mutable std::atomic<std::int64_t> told_ = 0;
};

// What the system has counted of a thread. To ask for the switches costs as much as the rest.
struct thread_usage {
  std::int64_t cpu = 0;          // nanoseconds
  std::int64_t waits = 0;        // how often it left its CPU to wait
  std::int64_t preemptions = 0;  // how often others were given its CPU

  static thread_usage now(bool with_switches) noexcept;
};

// How long calls have computed, and how long they could have but had no CPU. Any thread.
struct cpu_times {
  std::atomic<std::int64_t> computed = 0, preempted = 0;

  // Counts a call `times` times, by the usage of its thread before and after it.
  void add(const thread_usage& before, const thread_usage& after, std::chrono::nanoseconds taken,
           std::int64_t times) noexcept;
};

// Measures the CPU time that a worker's calls take and adds it to counters: of all that follow a
// long one, and of one in sixteen others, which counts for all. Of those that follow a long one
// also how long they had no CPU: others are over before that matters.
class cpu_sampler {
 public:
  cpu_sampler(cpu_times& counters, bool wanted) noexcept : counters_(counters), wanted_(wanted) {}

  // On the same thread. `taken` is the time that passed in between.
  void begin() noexcept;
  void end(std::chrono::nanoseconds taken) noexcept;

 private:
  cpu_times& counters_;
  bool wanted_;
  bool long_ = true;  // the last call was, or there was none
  bool counts_switches_ = false;
  std::uint32_t draw_ = 1;
  std::int64_t weight_ = 0;
  thread_usage before_;
};

// The ten calls of a stage that took longest. All others cost a comparison. Any thread.
class slowest_calls {
 public:
  static constexpr std::size_t most = 10;

  // Whether a call is among them so far. Only then its item needs a name.
  bool take(std::chrono::nanoseconds duration) const noexcept {
    return duration.count() > least_.load(std::memory_order_relaxed);
  }
  void add(slow_item call);

  // The longest first.
  std::vector<slow_item> now() const;

 private:
  std::atomic<std::int64_t> least_ = -1;  // of those taken, if they are complete
  mutable std::mutex mutex_;
  std::vector<slow_item> calls_;
};

// Who works for a stage; as in its statistics.
struct stage_workers {
  unsigned workers = 0;
  unsigned own_threads = 0;
  unsigned shared_threads = 0;
  bool on_reactor = false;
  std::size_t slots = 0;
  bool gathers = false;
};

// The live counters of one stage. Any thread adds; readers see values a moment old. What is no
// atomic is written and read with the mutex of the run held.
class stage_counters {
 public:
  // `namesakes` counts the stages of this name that have been opened.
  explicit stage_counters(std::string name, unsigned from_end = 0,
                          std::shared_ptr<std::atomic<unsigned>> namesakes = {})
      : number(next_number()),
        distance(from_end),
        name_(std::move(name)),
        namesakes_(std::move(namesakes)),
        opened_as_(namesakes_ ? ++*namesakes_ : 0) {}

  // The name to show, of which no other stage of the run has the same; and as it was given.
  std::string name() const;
  const std::string& given_name() const noexcept { return name_; }

  const std::uint64_t number;  // from 1 on; no other of the process ever has it
  const unsigned distance;     // stages behind it and itself, in the order in which they are opened

  std::atomic<unsigned> workers = 0;  // of its staff, or fewer while their number is tuned
  stage_workers staff;
  unsigned inputs = 1;
  std::string groups;  // "of 8": what it puts together, if that is taken apart behind it
  std::atomic<std::uint64_t> in = 0, out = 0, failed = 0, skipped = 0, substituted = 0, retried = 0,
                             repeated = 0, bytes = 0;
  std::atomic<std::uint64_t> allocated = 0;     // bytes of buffers
  std::atomic<std::uint64_t> most_at_once = 0;  // bytes that were allocated without waiting
  call_time busy;
  call_time paused;
  cpu_times cpu;
  std::atomic<std::int64_t> awaited = 0;
  waiting_time input_wait, output_wait, starving;
  shared_waiting_time memory_wait;
  duration_histogram latency;
  slowest_calls slowest;

  void note_at_once(std::uint64_t taken) noexcept {
    auto most = most_at_once.load(std::memory_order_relaxed);
    while (taken > most &&
           !most_at_once.compare_exchange_weak(most, taken, std::memory_order_relaxed)) {}
  }

  stage_statistics snapshot(clock::time_point now) const;

 private:
  static std::uint64_t next_number() noexcept;

  std::string name_;
  std::shared_ptr<std::atomic<unsigned>> namesakes_;
  unsigned opened_as_;  // among the stages of this name, from the sink on
};

// For counters that one thread at a time adds to: no locked instruction.
template <class T>
void bump(std::atomic<T>& counter, T by = 1) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

// A wait as long as its life.
template <class Sum>
class stopwatch {
 public:
  explicit stopwatch(Sum& sum) noexcept : sum_(sum) { sum_.begin(clock::now()); }
  stopwatch(const stopwatch&) = delete;
  ~stopwatch() { sum_.end(clock::now()); }

 private:
  Sum& sum_;
};

}  // namespace detail
}  // namespace lade
