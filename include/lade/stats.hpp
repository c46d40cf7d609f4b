// stats: counts and times of every stage of a run, and which stage is the bottleneck.

#pragma once

#include <lade/lineage.hpp>
#include <lade/process.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
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
// - merge by arrival, tee, route, route_batches: `slots` and the waits; `depth` is 0
// - inline map, filter, flat_map and batch_by: `busy`, `durations` and `slowest`
// - other inline stages, and sources: none
//
// The waits are `input_wait`, `output_wait`, `memory_wait` and `next_starved`. Where there are no
// workers, `workers` and `paused` are 0. from_shards has workers if its concurrency is above 1.
struct stage_statistics {
  // If several stages have the same name, the second from the source on is "name (2)". The same
  // holds in errors, failures, hooks and traces.
  std::string name;
  unsigned workers = 0;                  // number of workers; 0 for a stage without workers
  unsigned own_threads = 0;              // threads of its dedicated pool; 0 without one
  unsigned shared_threads = 0;           // runtime threads shared by automatic stages; else 0
  bool on_reactor = false;               // whether its workers wait rather than compute
  std::size_t slots = 0;                 // capacity in items; 0 if it passes them on at once
  std::size_t depth = 0;                 // of `slots`: items in them now, working or done included
  bool gathers = false;                  // whether it holds results of several paths or inputs
  unsigned inputs = 1;                   // stages that it takes items from; 0 for a source
  std::uint64_t in = 0;                  // items taken from the stage before
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
  std::chrono::nanoseconds elapsed{};       // time since the run began, until it ended
  std::chrono::nanoseconds first_item{};    // of `elapsed`: until the first delivery; 0: none yet
  unsigned threads = 0;                     // threads of the CPU pool
  unsigned cpus = 0;                        // CPUs that the process may use
  std::chrono::nanoseconds sink_wait{};     // time the consumer waited for items
  std::chrono::nanoseconds sink_blocked{};  // time finished items waited for the consumer
  std::chrono::nanoseconds memory_wait{};   // time no item was started for lack of memory
  duration_counts sink_waits;               // single waits of `sink_wait` that are over
  std::uint64_t delivered = 0;              // items that the consumer has got
  std::vector<stage_statistics> stages;     // from the source on
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

namespace detail {

using clock = std::chrono::steady_clock;

// A live histogram of durations. Any thread may add and read.
class duration_histogram {
 public:
  void add(std::chrono::nanoseconds duration, std::uint64_t times = 1) noexcept;
  duration_counts now() const noexcept;
  void clear() noexcept;

 private:
  std::array<std::atomic<std::uint64_t>, duration_counts{}.counts.size()> counts_{};
};

// The sum of waits so far, including the wait in progress. One wait at a time. Any thread may read:
// begin() subtracts the start time and end() adds the end time, so one atomic holds the whole
// state.
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

  std::atomic<std::int64_t> sum_ = 0;  // minus the start time during a wait: negative only then
};

// The same, with a histogram of the waits that are over.
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

  // Discards all waiting before `now`, also that of a wait in progress.
  void count_from(clock::time_point now) noexcept;

  std::chrono::nanoseconds until(clock::time_point now) const noexcept;
  duration_counts ended() const noexcept { return ended_.now(); }

 private:
  wait_sum sum_;
  std::atomic<std::int64_t> begun_ = 0;  // start of the current or last wait
  std::atomic<std::int64_t> from_ = std::numeric_limits<std::int64_t>::min();  // start of counting
  std::atomic<std::int64_t> before_ = 0;  // part of `sum_` that does not count
  duration_histogram ended_;
};

// The time that the calls of a function have lasted. Calls in flight count up to the moment of
// reading, so a stage inside long calls does not look idle. Any thread may read.
//
// Each caller holds one part of the sum, which it alone writes, without a lock. The mutex guards
// the list of callers, and the sum of destroyed callers. While a call ends, a reader may see the
// new value of `sum_` or of `returned_` alone. It takes the larger one, so no call is lost.
class call_time {
 public:
  // The calls of one worker, one at a time. Calls take no lock. The destructor ends a call in
  // flight, whose coroutine was destroyed.
  class caller {
   public:
    explicit caller(call_time& time) noexcept;

    // `other` must be between two calls. The time that it has measured remains in the sum.
    caller(caller&& other) noexcept : caller(other.time_) {}
    caller& operator=(caller&&) = delete;
    ~caller();

    void begin(clock::time_point now) noexcept;
    void end(clock::time_point now) noexcept;

    // Adds an estimate of calls that were not measured and have returned.
    void add(std::chrono::nanoseconds estimate) noexcept;

   private:
    friend class call_time;

    call_time& time_;
    // Between two calls, `sum_` equals `returned_`. During a call, `sum_` is less by its start
    // time, and so negative.
    std::atomic<std::int64_t> sum_ = 0;
    std::atomic<std::int64_t> returned_ = 0;
    caller* next_ = nullptr;
    caller* previous_ = nullptr;
  };

  struct sums {
    std::chrono::nanoseconds all{};
    std::chrono::nanoseconds returned{};
  };
  sums until(clock::time_point now) const;

 private:
  void enter(caller& added) noexcept;
  void leave(const caller& gone) noexcept;

  mutable std::mutex mutex_;
  caller* first_ = nullptr;
  std::int64_t of_gone_ = 0;  // the time of callers that were destroyed
};

// The time during which at least one of several waiters has waited.
class shared_waiting_time {
 public:
  void begin(clock::time_point now) noexcept {
    if (waiting_.fetch_add(1, std::memory_order_relaxed) == 0) any_.begin(now);
  }
  void end(clock::time_point now) noexcept {
    if (waiting_.fetch_sub(1, std::memory_order_relaxed) == 1) any_.end(now);
  }
  bool is_waiting() const noexcept { return waiting_.load(std::memory_order_relaxed) > 0; }

  // Never decreases from call to call. `any_` may: a wait may begin on one thread before another
  // thread has recorded the end of the last one.
  std::chrono::nanoseconds until(clock::time_point now) const noexcept {
    auto waited = any_.until(now).count();
    auto told = reported_.load(std::memory_order_relaxed);
    while (told < waited && !reported_.compare_exchange_weak(told, waited)) {}
    return std::chrono::nanoseconds(std::max(told, waited));
  }

 private:
  std::atomic<unsigned> waiting_ = 0;  // number of waiters
  wait_sum any_;
  mutable std::atomic<std::int64_t> reported_ = 0;  // highest result so far
};

// Usage of a thread, as the system counts it. Reading the switches doubles the cost.
struct thread_usage {
  std::int64_t cpu = 0;          // CPU time in nanoseconds
  std::int64_t waits = 0;        // voluntary switches: the thread waited
  std::int64_t preemptions = 0;  // involuntary switches: other threads got its CPU

  static thread_usage now(bool with_switches) noexcept;
};

// CPU time of calls, and time in which they were runnable without a CPU, in nanoseconds. Any
// thread.
struct cpu_times {
  std::atomic<std::int64_t> computed = 0, preempted = 0;

  // Adds a call with weight `times`. `before` and `after`: usage of its thread. `taken`: duration
  // of the call.
  void add(const thread_usage& before, const thread_usage& after, std::chrono::nanoseconds taken,
           std::int64_t times) noexcept;
};

// Measures the CPU time of a worker's calls and adds it to counters. It measures every call that
// follows a long one. Of the others it measures one in sixteen, drawn at random, with weight 16.
// The time without a CPU is measured only after a long call: short calls end before it matters.
class cpu_sampler {
 public:
  cpu_sampler(cpu_times& counters, bool wanted) noexcept : counters_(counters), wanted_(wanted) {}

  // Call both on the same thread. `taken`: time between the two calls.
  void begin() noexcept;
  void end(std::chrono::nanoseconds taken) noexcept;

 private:
  cpu_times& counters_;
  bool wanted_;
  bool long_ = true;  // whether the last call was long, or there was none
  bool counts_switches_ = false;
  std::uint32_t draw_ = 1;
  std::int64_t weight_ = 0;  // of the current call; 0: not measured
  thread_usage before_;
};

// The ten longest calls of a stage. Any other call costs one comparison. Any thread.
class slowest_calls {
 public:
  static constexpr std::size_t most = 10;

  // Whether a call of that duration belongs to them so far. Only then does its item need a name.
  bool take(std::chrono::nanoseconds duration) const noexcept {
    return duration.count() > least_.load(std::memory_order_relaxed);
  }
  void add(slow_item call);

  // The calls, longest first.
  std::vector<slow_item> now() const;

 private:
  std::atomic<std::int64_t> least_ = -1;  // shortest of the ten; -1 while there are fewer
  mutable std::mutex mutex_;
  std::vector<slow_item> calls_;
};

// The workers of a stage; members as in stage_statistics.
struct stage_workers {
  unsigned workers = 0;
  unsigned own_threads = 0;
  unsigned shared_threads = 0;
  bool on_reactor = false;
  std::size_t slots = 0;
  bool gathers = false;
};

// The live counters of one stage. Any thread may add. Readers see values that are a moment old.
// Members that are not atomic are written and read with the mutex of the run held.
class stage_counters {
 public:
  // `namesakes`: number of stages with this name that have been opened.
  explicit stage_counters(std::string name, unsigned from_end = 0,
                          std::shared_ptr<std::atomic<unsigned>> namesakes = {})
      : number(next_number()),
        distance(from_end),
        name_(std::move(name)),
        namesakes_(std::move(namesakes)),
        opened_as_(namesakes_ ? ++*namesakes_ : 0) {}

  // name(): unique among the stages of the run. given_name(): without a number.
  std::string name() const;
  const std::string& given_name() const noexcept { return name_; }

  const std::uint64_t number;  // from 1; unique in the process
  const unsigned distance;     // number of stages behind it, plus itself, in the order of opening

  std::atomic<unsigned> workers = 0;  // as in `resources`, or fewer while being tuned
  stage_workers resources;
  unsigned inputs = 1;
  std::string groups;  // "of 8": size of its groups, if a later stage splits them
  std::atomic<std::uint64_t> in = 0, out = 0, failed = 0, skipped = 0, substituted = 0, retried = 0,
                             repeated = 0, bytes = 0;
  std::atomic<std::size_t> depth = 0;
  std::atomic<std::uint64_t> allocated = 0;     // bytes of buffers
  std::atomic<std::uint64_t> most_at_once = 0;  // most bytes allocated at once without waiting
  call_time busy;
  call_time paused;
  cpu_times cpu;
  std::atomic<std::int64_t> awaited = 0;
  waiting_time input_wait, output_wait, next_starved;
  shared_waiting_time memory_wait;
  duration_histogram latency;
  slowest_calls slowest;

  void record_at_once(std::uint64_t taken) noexcept {
    auto most = most_at_once.load(std::memory_order_relaxed);
    while (taken > most &&
           !most_at_once.compare_exchange_weak(most, taken, std::memory_order_relaxed)) {}
  }

  stage_statistics snapshot(clock::time_point moment) const;

 private:
  static std::uint64_t next_number() noexcept;

  std::string name_;
  std::shared_ptr<std::atomic<unsigned>> namesakes_;
  unsigned opened_as_;  // number among the stages of this name, in the order of opening
};

// Adds to a counter that one thread at a time writes, without a locked instruction.
template <class T>
void increment(std::atomic<T>& counter, T by = 1) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

// A wait that lasts as long as the object.
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
