// The live counts and times of the stages of a run. stage_statistics is a snapshot of them.

#pragma once

#include <lade/stats.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace lade::detail {

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
    start_.store(wait_sum::of(now), std::memory_order_relaxed);
    sum_.begin(now);
  }
  void end(clock::time_point now) noexcept {
    auto start = std::max(start_.load(std::memory_order_relaxed), from_.load());
    ended_.add(std::chrono::nanoseconds(wait_sum::of(now) - start));
    sum_.end(now);
  }

  // Discards all waiting before `now`, also that of a wait in progress.
  void count_from(clock::time_point now) noexcept;

  std::chrono::nanoseconds until(clock::time_point now) const noexcept;
  duration_counts ended() const noexcept { return ended_.now(); }

 private:
  wait_sum sum_;
  std::atomic<std::int64_t> start_ = 0;  // start of the current or last wait
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
    auto reported = reported_.load(std::memory_order_relaxed);
    while (reported < waited && !reported_.compare_exchange_weak(reported, waited)) {}
    return std::chrono::nanoseconds(std::max(reported, waited));
  }

 private:
  std::atomic<unsigned> waiting_ = 0;  // number of waiters
  wait_sum any_;
  mutable std::atomic<std::int64_t> reported_ = 0;  // highest result so far
};

// The number of items in the slots of a stage. A stage that is opened again, for the next round of
// a repeat, has other slots. Then the gauge shows theirs, even while those of the round before end.
class depth_gauge {
 public:
  // `slots`: identifies them, in begin() of a round and in all its calls of set().
  void begin(const void* slots) noexcept {
    slots_.store(slots, std::memory_order_relaxed);
    depth_.store(0, std::memory_order_relaxed);
  }
  void set(const void* slots, std::size_t depth) noexcept {
    if (slots_.load(std::memory_order_relaxed) == slots)
      depth_.store(depth, std::memory_order_relaxed);
  }
  std::size_t now() const noexcept { return depth_.load(std::memory_order_relaxed); }

 private:
  std::atomic<const void*> slots_ = nullptr;
  std::atomic<std::size_t> depth_ = 0;
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

// The live counters of one stage. Any thread may add and read; readers see values that are a moment
// old. Exception: `resources`, `inputs` and `groups` are guarded by the mutex of the run.
class stage_counters {
 public:
  // `given_name`: the name of the node, which other stages may have too. `name`, `from_end`: those
  // of planned_node.
  stage_counters(std::string given_name, std::string name, unsigned from_end)
      : number(next_number()),
        distance(from_end),
        given_name_(std::move(given_name)),
        name_(std::move(name)) {}
  explicit stage_counters(const std::string& name) : stage_counters(name, name, 0) {}

  const std::string& given_name() const noexcept { return given_name_; }
  const std::string& name() const noexcept { return name_; }

  const std::uint64_t number;  // from 1; unique in the process
  const unsigned distance;     // from the end of the plan; the last stage: 1

  std::atomic<unsigned> workers = 0;       // as in `resources`, or fewer while being tuned
  std::atomic<std::size_t> slots = 0;      // the same
  std::atomic<unsigned> most_workers = 0;  // as in stage_statistics
  stage_workers resources;
  unsigned inputs = 1;
  std::string groups;  // "of 8": size of its groups, if a later stage splits them
  std::atomic<std::uint64_t> in = 0, out = 0, failed = 0, skipped = 0, substituted = 0, retried = 0,
                             repeated = 0, bytes = 0;
  depth_gauge depth;
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

  const std::string given_name_;
  const std::string name_;
};

// Adds to a counter without a locked instruction. One thread at a time may do so.
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

}  // namespace lade::detail
