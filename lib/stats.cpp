#include "figures.hpp"

#include <lade/detail/json.hpp>
#include <lade/printable.hpp>
#include <lade/stats.hpp>

#include <algorithm>
#include <bit>
#include <ctime>
#include <numeric>
#include <utility>

namespace lade {

using detail::grouped;
using detail::percent;
using detail::share;
using detail::short_rate;
using detail::short_time;
using detail::utilisation;
using nanoseconds = std::chrono::nanoseconds;

std::uint64_t duration_counts::total() const noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

nanoseconds duration_counts::quantile(double part) const noexcept {
  auto all = total();
  if (all == 0) return {};
  auto wanted = std::clamp(part, 0.0, 1.0) * static_cast<double>(all - 1);
  auto rank = std::min(static_cast<std::uint64_t>(wanted), all - 1);  // rounding can exceed it
  std::size_t bucket = 0;
  while (rank >= counts[bucket]) rank -= counts[bucket++];
  return duration_of(bucket);
}

nanoseconds duration_counts::duration_of(std::size_t i) noexcept {
  auto eighths = static_cast<double>(per_octave + i % per_octave) + 0.5;
  auto octave = static_cast<double>(std::uint64_t{1} << (i / per_octave));
  return nanoseconds(static_cast<std::int64_t>(eighths / per_octave * octave));
}

duration_counts& duration_counts::operator-=(const duration_counts& earlier) noexcept {
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] -= earlier.counts[i];
  return *this;
}

static void take_quantiles(stage_statistics& stage) {
  stage.p50 = stage.durations.quantile(0.50);
  stage.p90 = stage.durations.quantile(0.90);
  stage.p99 = stage.durations.quantile(0.99);
}

static void subtract(stage_statistics& stage, const stage_statistics& earlier) {
  stage.in -= earlier.in;
  stage.out -= earlier.out;
  stage.failed -= earlier.failed;
  stage.skipped -= earlier.skipped;
  stage.substituted -= earlier.substituted;
  stage.retried -= earlier.retried;
  stage.bytes -= earlier.bytes;
  stage.busy -= earlier.busy;
  stage.returned -= earlier.returned;
  stage.cpu -= earlier.cpu;
  stage.awaited -= earlier.awaited;
  stage.input_wait -= earlier.input_wait;
  stage.output_wait -= earlier.output_wait;
  stage.memory_wait -= earlier.memory_wait;
  stage.starving -= earlier.starving;
  stage.input_waits -= earlier.input_waits;
  stage.output_waits -= earlier.output_waits;
  stage.durations -= earlier.durations;
  take_quantiles(stage);
  std::erase_if(stage.slowest, [&](const slow_item& each) {
    return std::ranges::find(earlier.slowest, each) != earlier.slowest.end();
  });
}

// Stages that have been opened since stand in front.
run_statistics operator-(const run_statistics& later, const run_statistics& earlier) {
  auto result = later;
  result.elapsed -= earlier.elapsed;
  result.sink_wait -= earlier.sink_wait;
  result.sink_blocked -= earlier.sink_blocked;
  result.memory_wait -= earlier.memory_wait;
  result.sink_waits -= earlier.sink_waits;
  result.delivered -= earlier.delivered;
  auto known = std::min(result.stages.size(), earlier.stages.size());
  for (std::size_t i = 1; i <= known; ++i)
    subtract(result.stages[result.stages.size() - i], earlier.stages[earlier.stages.size() - i]);
  return result;
}

static double per_second(std::uint64_t items, nanoseconds elapsed) {
  return elapsed.count() > 0
             ? static_cast<double>(items) * 1e9 / static_cast<double>(elapsed.count())
             : 0;
}

static double not_waited(nanoseconds waited, nanoseconds elapsed) {
  return std::clamp(1 - share(waited, elapsed), 0.0, 1.0);
}

double qps(const stage_statistics& stage, nanoseconds elapsed) {
  return per_second(stage.out, elapsed);
}
double qps(const run_statistics& run) { return per_second(run.delivered, run.elapsed); }

std::optional<double> readiness(const stage_statistics& stage, nanoseconds elapsed) {
  if (stage.slots == 0) return std::nullopt;
  return not_waited(stage.starving, elapsed);
}
double readiness(const run_statistics& run) { return not_waited(run.sink_wait, run.elapsed); }

using detail::table_row;

static table_row row_of(const stage_statistics& stage, const run_statistics& run) {
  auto some = [](std::uint64_t count) { return count ? grouped(count) : std::string("-"); };
  auto part = [&](nanoseconds time) {
    return time.count() ? percent(share(time, run.elapsed)) : "-";
  };
  auto ready = readiness(stage, run.elapsed);
  return {printable(stage.name),
          some(stage.workers),
          some(stage.in),
          grouped(stage.out),
          short_rate(qps(stage, run.elapsed)),
          some(stage.failed),
          stage.busy.count() ? percent(utilisation(stage, run)) : "-",
          ready ? percent(*ready) : "-",
          short_time(stage.p50),
          short_time(stage.p99),
          part(stage.input_wait),
          part(stage.output_wait)};
}

static std::string name_of(const slow_item& call) {
  auto positions = "item " + to_string(call.positions);
  return call.item.empty() ? positions : printable(call.item) + " (" + positions + ")";
}

static std::string slowest_lines(const stage_statistics& stage) {
  if (stage.slowest.empty()) return {};
  auto text = "slowest items of " + printable(stage.name) + "\n";
  for (auto& each : stage.slowest)
    text += "  " + short_time(each.duration) + "  " + name_of(each) + "\n";
  return text;
}

std::string table(const run_statistics& run, const table_options& options) {
  std::vector<table_row> rows{{"stage", "workers", "in", "out", "per s", "failed", "busy", "ready",
                               "p50", "p99", "waits for input", "waits for room"}};
  for (auto& stage : run.stages) rows.push_back(row_of(stage, run));
  auto text = detail::aligned(rows);
  if (options.slowest)
    for (auto& stage : run.stages) text += slowest_lines(stage);
  return text;
}

static std::string seconds(nanoseconds time) {
  return detail::json_of(std::chrono::duration<double>(time).count(), 9);
}

static std::string to_json(const slow_item& call) {
  const std::pair<const char*, std::string> members[] = {
      {"item", detail::json_of(call.item)},
      {"positions", detail::json_of(call.positions)},
      {"duration", seconds(call.duration)},
  };
  return detail::json_object(members);
}

static std::string slowest_json(const stage_statistics& stage) {
  std::vector<std::string> calls;
  for (auto& each : stage.slowest) calls.push_back(to_json(each));
  return detail::json_array(calls);
}

static std::string to_json(const stage_statistics& stage, nanoseconds elapsed) {
  auto ready = readiness(stage, elapsed);
  const std::pair<const char*, std::string> members[] = {
      {"name", detail::json_of(stage.name)},
      {"workers", std::to_string(stage.workers)},
      {"own_threads", std::to_string(stage.own_threads)},
      {"shared_threads", std::to_string(stage.shared_threads)},
      {"on_reactor", stage.on_reactor ? "true" : "false"},
      {"slots", std::to_string(stage.slots)},
      {"gathers", stage.gathers ? "true" : "false"},
      {"inputs", std::to_string(stage.inputs)},
      {"in", std::to_string(stage.in)},
      {"out", std::to_string(stage.out)},
      {"failed", std::to_string(stage.failed)},
      {"skipped", std::to_string(stage.skipped)},
      {"substituted", std::to_string(stage.substituted)},
      {"retried", std::to_string(stage.retried)},
      {"bytes", std::to_string(stage.bytes)},
      {"qps", detail::json_of(qps(stage, elapsed), 3)},
      {"readiness", ready ? detail::json_of(*ready, 4) : "null"},
      {"busy", seconds(stage.busy)},
      {"returned", seconds(stage.returned)},
      {"cpu", seconds(stage.cpu)},
      {"awaited", seconds(stage.awaited)},
      {"input_wait", seconds(stage.input_wait)},
      {"output_wait", seconds(stage.output_wait)},
      {"memory_wait", seconds(stage.memory_wait)},
      {"starving", seconds(stage.starving)},
      {"p50", seconds(stage.p50)},
      {"p90", seconds(stage.p90)},
      {"p99", seconds(stage.p99)},
      {"input_wait_p50", seconds(stage.input_waits.quantile(0.50))},
      {"input_wait_p90", seconds(stage.input_waits.quantile(0.90))},
      {"input_wait_p99", seconds(stage.input_waits.quantile(0.99))},
      {"output_wait_p50", seconds(stage.output_waits.quantile(0.50))},
      {"output_wait_p90", seconds(stage.output_waits.quantile(0.90))},
      {"output_wait_p99", seconds(stage.output_waits.quantile(0.99))},
      {"slowest", slowest_json(stage)},
  };
  return detail::json_object(members);
}

std::string to_json(const run_statistics& run) {
  std::vector<std::string> stages;
  for (auto& stage : run.stages) stages.push_back(to_json(stage, run.elapsed));
  const std::pair<const char*, std::string> members[] = {
      {"elapsed", seconds(run.elapsed)},
      {"first_item", seconds(run.first_item)},
      {"threads", std::to_string(run.threads)},
      {"cpus", std::to_string(run.cpus)},
      {"sink_wait", seconds(run.sink_wait)},
      {"sink_wait_p50", seconds(run.sink_waits.quantile(0.50))},
      {"sink_wait_p90", seconds(run.sink_waits.quantile(0.90))},
      {"sink_wait_p99", seconds(run.sink_waits.quantile(0.99))},
      {"sink_blocked", seconds(run.sink_blocked)},
      {"memory_wait", seconds(run.memory_wait)},
      {"delivered", std::to_string(run.delivered)},
      {"qps", detail::json_of(qps(run), 3)},
      {"readiness", detail::json_of(readiness(run), 4)},
      {"stages", detail::json_array(stages)},
      {"verdict", detail::json_of(verdict(run))},
  };
  return detail::json_object(members);
}

namespace detail {

// Durations below 8 ns have a bucket each; above, a power of two has eight.
void duration_histogram::add(nanoseconds duration, std::uint64_t times) noexcept {
  constexpr auto per_octave = duration_counts::per_octave;
  auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(duration.count(), 1));
  auto octave = static_cast<std::size_t>(std::bit_width(value)) - 1;
  auto eighth = octave >= 3 ? (value >> (octave - 3)) & 7 : (value << (3 - octave)) & 7;
  auto bucket = std::min(octave, duration_counts::octaves - 1) * per_octave + eighth;
  counts_[bucket].fetch_add(times, std::memory_order_relaxed);
}

duration_counts duration_histogram::now() const noexcept {
  duration_counts result;
  for (std::size_t i = 0; i < counts_.size(); ++i)
    result.counts[i] = counts_[i].load(std::memory_order_relaxed);
  return result;
}

nanoseconds waiting_time::until(clock::time_point now) const noexcept {
  auto sum = sum_.load(std::memory_order_relaxed);
  return nanoseconds(sum < 0 ? std::max<std::int64_t>(sum + of(now), 0) : sum);
}

// Those that are as long as the shortest of ten are not taken: a stage of equal calls keeps the
// first.
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

call_time::part* call_time::take() {
  std::lock_guard lock(mutex_);
  for (auto& each : parts_)
    if (!each.taken.exchange(true, std::memory_order_acquire)) return &each;
  return &parts_.emplace_back();
}

call_time::caller::~caller() {
  if (!part_) return;
  if (part_->sum.load(std::memory_order_relaxed) < 0) end(clock::now());
  part_->taken.store(false, std::memory_order_release);
}

void call_time::caller::begin(clock::time_point now) noexcept {
  bump(part_->sum, -nanoseconds_of(now));
}

void call_time::caller::end(clock::time_point now) noexcept {
  auto sum = part_->sum.load(std::memory_order_relaxed) + nanoseconds_of(now);
  part_->returned.store(sum, std::memory_order_relaxed);
  part_->sum.store(sum, std::memory_order_relaxed);
}

void call_time::caller::add(nanoseconds estimate) noexcept {
  bump(part_->returned, estimate.count());
  bump(part_->sum, estimate.count());
}

// A call that ends meanwhile counts as returned before it counts as ended: the larger of both.
call_time::sums call_time::until(clock::time_point now) const {
  std::int64_t all = 0;
  std::int64_t returned = 0;
  std::lock_guard lock(mutex_);
  for (auto& each : parts_) {
    auto sum = each.sum.load(std::memory_order_relaxed);
    auto of_returned = each.returned.load(std::memory_order_relaxed);
    all += std::max(sum < 0 ? sum + nanoseconds_of(now) : sum, of_returned);
    returned += of_returned;
  }
  return {nanoseconds(all), nanoseconds(returned)};
}

static std::int64_t thread_cpu_time() noexcept {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// At random, so that no rhythm in the items meets one in the samples.
void cpu_sampler::begin() noexcept {
  if (!wanted_) return;
  draw_ = draw_ * 1664525 + 1013904223;
  bool drawn = draw_ >> 28 == 0;
  weight_ = long_ ? 1 : drawn ? 16 : 0;
  if (weight_ > 0) began_ = thread_cpu_time();
}

void cpu_sampler::end(nanoseconds taken) noexcept {
  constexpr nanoseconds costs_little = std::chrono::microseconds(50);
  long_ = taken >= costs_little;
  if (weight_ > 0)
    counter_.fetch_add(weight_ * (thread_cpu_time() - began_), std::memory_order_relaxed);
}

std::string stage_counters::name() const {
  // From the source on: the last that was opened has no number.
  auto number = namesakes_ ? *namesakes_ - opened_as_ + 1 : 1;
  return number == 1 ? name_ : name_ + " (" + std::to_string(number) + ")";
}

stage_statistics stage_counters::snapshot(clock::time_point moment) const {
  stage_statistics now;
  now.name = name();
  now.workers = workers;
  now.own_threads = staff.own_threads;
  now.shared_threads = staff.shared_threads;
  now.on_reactor = staff.on_reactor;
  now.slots = staff.slots;
  now.gathers = staff.gathers;
  now.inputs = inputs;
  now.substituted = substituted;
  now.retried = retried;
  now.in = in;
  now.out = out;
  now.failed = failed;
  now.skipped = skipped;
  now.bytes = bytes;
  auto calls = busy.until(moment);
  now.busy = calls.all;
  now.returned = calls.returned;
  now.cpu = nanoseconds(cpu);
  now.awaited = nanoseconds(awaited);
  now.input_wait = input_wait.until(moment);
  now.output_wait = output_wait.until(moment);
  now.memory_wait = memory_wait.until(moment);
  now.starving = starving.until(moment);
  now.input_waits = input_wait.ended();
  now.output_waits = output_wait.ended();
  now.durations = latency.now();
  now.slowest = slowest.now();
  take_quantiles(now);
  return now;
}

}  // namespace detail
}  // namespace lade
