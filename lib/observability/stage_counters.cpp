#include "figures.hpp"

#include <lade/context.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/stats.hpp>

#include <algorithm>
#include <ctime>
#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>

namespace lade {

std::string context::stage_name() const { return stage ? stage->name() : std::string(); }

}  // namespace lade

namespace lade::detail {

using std::chrono::nanoseconds;

nanoseconds wait_sum::until(clock::time_point now) const noexcept {
  auto sum = sum_.load(std::memory_order_relaxed);
  return nanoseconds(std::max<std::int64_t>(sum < 0 ? sum + of(now) : sum, 0));
}

nanoseconds waiting_time::until(clock::time_point now) const noexcept {
  return std::max(sum_.until(now) - nanoseconds(before_.load()), nanoseconds());
}

void waiting_time::count_from(clock::time_point now) noexcept {
  before_ += until(now).count();
  from_ = wait_sum::of(now);
  ended_.clear();
}

// Of calls with equal durations, keeps the earlier one.
void slowest_calls::add(slow_item call) {
  std::lock_guard lock(mutex_);
  auto shorter = std::ranges::find_if(
      calls_, [&](const slow_item& each) { return each.duration < call.duration; });
  calls_.insert(shorter, std::move(call));
  if (calls_.size() > most) calls_.pop_back();
  if (calls_.size() == most)
    least_.store(calls_.back().duration.count(), std::memory_order_relaxed);
}

std::vector<slow_item> slowest_calls::now() const {
  std::lock_guard lock(mutex_);
  return calls_;
}

static std::int64_t nanoseconds_of(clock::time_point time) noexcept {
  return nanoseconds(time.time_since_epoch()).count();
}

void call_time::enter(caller& added) noexcept {
  std::lock_guard lock(mutex_);
  added.next_ = std::exchange(first_, &added);
  if (added.next_) added.next_->previous_ = &added;
}

void call_time::leave(const caller& gone) noexcept {
  std::lock_guard lock(mutex_);
  (gone.previous_ ? gone.previous_->next_ : first_) = gone.next_;
  if (gone.next_) gone.next_->previous_ = gone.previous_;
  of_gone_ += gone.returned_.load(std::memory_order_relaxed);
}

call_time::caller::caller(call_time& time) noexcept : time_(time) { time_.enter(*this); }

call_time::caller::~caller() {
  if (sum_.load(std::memory_order_relaxed) < 0) end(clock::now());
  time_.leave(*this);
}

void call_time::caller::begin(clock::time_point now) noexcept {
  increment(sum_, -nanoseconds_of(now));
}

void call_time::caller::end(clock::time_point now) noexcept {
  auto sum = sum_.load(std::memory_order_relaxed) + nanoseconds_of(now);
  returned_.store(sum, std::memory_order_relaxed);
  sum_.store(sum, std::memory_order_relaxed);
}

void call_time::caller::add(nanoseconds estimate) noexcept {
  increment(returned_, estimate.count());
  increment(sum_, estimate.count());
}

// If a call ends meanwhile, `returned` may be newer than `sum`, since end() stores it first.
call_time::sums call_time::until(clock::time_point now) const {
  std::lock_guard lock(mutex_);
  auto all = of_gone_;
  auto returned = of_gone_;
  for (auto* each = first_; each; each = each->next_) {
    auto sum = each->sum_.load(std::memory_order_relaxed);
    auto of_returned = each->returned_.load(std::memory_order_relaxed);
    all += std::max(sum < 0 ? sum + nanoseconds_of(now) : sum, of_returned);
    returned += of_returned;
  }
  return {nanoseconds(all), nanoseconds(returned)};
}

thread_usage thread_usage::now(bool with_switches) noexcept {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  rusage used{};
  if (with_switches) getrusage(RUSAGE_THREAD, &used);
  return {std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec, used.ru_nvcsw, used.ru_nivcsw};
}

// The system does not report how long a thread waited and how long it was preempted. So the time
// without a CPU is divided in proportion to the numbers of both kinds of switches.
void cpu_times::add(const thread_usage& before, const thread_usage& after, nanoseconds taken,
                    std::int64_t times) noexcept {
  auto cpu = after.cpu - before.cpu;
  computed.fetch_add(times * cpu, std::memory_order_relaxed);
  auto preemptions = after.preemptions - before.preemptions;
  if (preemptions <= 0) return;
  auto all = static_cast<double>(preemptions + after.waits - before.waits);
  auto without = static_cast<double>(std::max<std::int64_t>(taken.count() - cpu, 0));
  preempted.fetch_add(
      times * static_cast<std::int64_t>(without * static_cast<double>(preemptions) / all),
      std::memory_order_relaxed);
}

// Samples at random, since a fixed interval could coincide with a period in the items.
void cpu_sampler::begin() noexcept {
  if (!wanted_) return;
  draw_ = draw_ * 1664525 + 1013904223;
  bool drawn = draw_ >> 28 == 0;
  weight_ = long_ ? 1 : drawn ? 16 : 0;
  counts_switches_ = long_;
  if (weight_ > 0) before_ = thread_usage::now(counts_switches_);
}

void cpu_sampler::end(nanoseconds taken) noexcept {
  constexpr nanoseconds costs_little = std::chrono::microseconds(50);
  long_ = taken >= costs_little;
  if (weight_ > 0) counters_.add(before_, thread_usage::now(counts_switches_), taken, weight_);
}

std::uint64_t stage_counters::next_number() noexcept {
  static std::atomic<std::uint64_t> last = 0;
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void take_quantiles(stage_statistics& stage) {
  stage.p50 = stage.durations.quantile(0.50);
  stage.p90 = stage.durations.quantile(0.90);
  stage.p99 = stage.durations.quantile(0.99);
}

stage_statistics stage_counters::snapshot(clock::time_point moment) const {
  stage_statistics now;
  now.name = name();
  now.workers = workers;
  now.most_workers = most_workers;
  now.own_threads = resources.own_threads;
  now.shared_threads = resources.shared_threads;
  now.on_reactor = resources.on_reactor;
  now.slots = slots;
  now.depth = depth.now();
  now.gathers = resources.gathers;
  now.inputs = inputs;
  now.substituted = substituted;
  now.retried = retried;
  now.repeated = repeated;
  now.in = in;
  now.out = out;
  now.failed = failed;
  now.skipped = skipped;
  now.bytes = bytes;
  auto calls = busy.until(moment);
  now.busy = calls.all;
  now.returned = calls.returned;
  now.cpu = nanoseconds(cpu.computed);
  now.preempted = nanoseconds(cpu.preempted);
  now.awaited = nanoseconds(awaited);
  now.paused = paused.until(moment).all;
  now.input_wait = input_wait.until(moment);
  now.output_wait = output_wait.until(moment);
  now.memory_wait = memory_wait.until(moment);
  now.next_starved = next_starved.until(moment);
  now.input_waits = input_wait.ended();
  now.output_waits = output_wait.ended();
  now.durations = latency.now();
  now.slowest = slowest.now();
  take_quantiles(now);
  return now;
}

}  // namespace lade::detail
