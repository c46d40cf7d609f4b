#include "figures.hpp"

#include <lade/detail/observability/stage_counters.hpp>
#include <lade/printable.hpp>
#include <lade/stats.hpp>
#include <lade/support/json.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace lade {

using detail::grouped;
using detail::percent;
using detail::share;
using detail::short_rate;
using detail::short_time;
using detail::utilisation;
using nanoseconds = std::chrono::nanoseconds;

static void subtract(stage_statistics& stage, const stage_statistics& earlier) {
  stage.in -= earlier.in;
  stage.out -= earlier.out;
  stage.failed -= earlier.failed;
  stage.skipped -= earlier.skipped;
  stage.substituted -= earlier.substituted;
  stage.retried -= earlier.retried;
  stage.repeated -= earlier.repeated;
  stage.bytes -= earlier.bytes;
  stage.busy -= earlier.busy;
  stage.returned -= earlier.returned;
  stage.cpu -= earlier.cpu;
  stage.preempted -= earlier.preempted;
  stage.awaited -= earlier.awaited;
  stage.paused -= earlier.paused;
  stage.input_wait -= earlier.input_wait;
  stage.output_wait -= earlier.output_wait;
  stage.memory_wait -= earlier.memory_wait;
  stage.next_starved -= earlier.next_starved;
  stage.input_waits -= earlier.input_waits;
  stage.output_waits -= earlier.output_waits;
  stage.durations -= earlier.durations;
  detail::take_quantiles(stage);
  std::erase_if(stage.slowest, [&](const slow_item& each) {
    return std::ranges::find(earlier.slowest, each) != earlier.slowest.end();
  });
}

// At least 1 ns: the consumer may take the first item while the earlier statistics are taken.
static nanoseconds first_item_since(const run_statistics& later, const run_statistics& earlier) {
  if (earlier.first_item.count() > 0 || later.first_item.count() == 0) return {};
  return std::max(later.first_item - earlier.elapsed, nanoseconds(1));
}

// Stages are aligned from the last one, because later opened stages are at the front.
run_statistics operator-(const run_statistics& later, const run_statistics& earlier) {
  auto result = later;
  result.elapsed -= earlier.elapsed;
  result.first_item = first_item_since(later, earlier);
  result.consumer_wait -= earlier.consumer_wait;
  result.output_wait -= earlier.output_wait;
  result.memory_wait -= earlier.memory_wait;
  result.consumer_waits -= earlier.consumer_waits;
  result.output_waits -= earlier.output_waits;
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
  return not_waited(stage.next_starved, elapsed);
}
double readiness(const run_statistics& run) { return not_waited(run.consumer_wait, run.elapsed); }

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
  return call.item.empty() ? positions : fmt::format("{} ({})", printable(call.item), positions);
}

static std::string slowest_lines(const stage_statistics& stage) {
  if (stage.slowest.empty()) return {};
  auto text = fmt::format("slowest items of {}\n", printable(stage.name));
  for (auto& each : stage.slowest)
    text += fmt::format("  {}  {}\n", short_time(each.duration), name_of(each));
  return text;
}

std::string table(const run_statistics& run, const table_options& options) {
  std::vector<table_row> rows{{"stage", "workers", "in", "out", "per s", "failed", "busy", "ready",
                               "p50", "p99", "starved", "blocked"}};
  for (auto& stage : run.stages) rows.push_back(row_of(stage, run));
  auto text = detail::aligned(rows);
  if (options.slowest)
    for (auto& stage : run.stages) text += slowest_lines(stage);
  return text;
}

static std::string seconds(nanoseconds time) {
  return support::json_of(std::chrono::duration<double>(time).count(), 9);
}

static std::string to_json(const slow_item& call) {
  const std::pair<const char*, std::string> members[] = {
      {"item", support::json_of(call.item)},
      {"positions", support::json_of(call.positions)},
      {"duration", seconds(call.duration)},
  };
  return support::json_object(members);
}

static std::string slowest_json(const stage_statistics& stage) {
  std::vector<std::string> calls;
  for (auto& each : stage.slowest) calls.push_back(to_json(each));
  return support::json_array(calls);
}

static std::string to_json(const stage_statistics& stage, nanoseconds elapsed) {
  auto ready = readiness(stage, elapsed);
  const std::pair<const char*, std::string> members[] = {
      {"name", support::json_of(stage.name)},
      {"workers", std::to_string(stage.workers)},
      {"most_workers", std::to_string(stage.most_workers)},
      {"own_threads", std::to_string(stage.own_threads)},
      {"shared_threads", std::to_string(stage.shared_threads)},
      {"on_reactor", stage.on_reactor ? "true" : "false"},
      {"slots", std::to_string(stage.slots)},
      {"depth", std::to_string(stage.depth)},
      {"gathers", stage.gathers ? "true" : "false"},
      {"inputs", std::to_string(stage.inputs)},
      {"in", std::to_string(stage.in)},
      {"out", std::to_string(stage.out)},
      {"failed", std::to_string(stage.failed)},
      {"skipped", std::to_string(stage.skipped)},
      {"substituted", std::to_string(stage.substituted)},
      {"retried", std::to_string(stage.retried)},
      {"repeated", std::to_string(stage.repeated)},
      {"bytes", std::to_string(stage.bytes)},
      {"qps", support::json_of(qps(stage, elapsed), 3)},
      {"readiness", ready ? support::json_of(*ready, 4) : "null"},
      {"busy", seconds(stage.busy)},
      {"returned", seconds(stage.returned)},
      {"cpu", seconds(stage.cpu)},
      {"preempted", seconds(stage.preempted)},
      {"awaited", seconds(stage.awaited)},
      {"paused", seconds(stage.paused)},
      {"input_wait", seconds(stage.input_wait)},
      {"output_wait", seconds(stage.output_wait)},
      {"memory_wait", seconds(stage.memory_wait)},
      {"next_starved", seconds(stage.next_starved)},
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
  return support::json_object(members);
}

std::string to_json(const run_statistics& run) {
  std::vector<std::string> stages;
  for (auto& stage : run.stages) stages.push_back(to_json(stage, run.elapsed));
  const std::pair<const char*, std::string> members[] = {
      {"elapsed", seconds(run.elapsed)},
      {"first_item", seconds(run.first_item)},
      {"threads", std::to_string(run.threads)},
      {"cpus", std::to_string(run.cpus)},
      {"consumer_wait", seconds(run.consumer_wait)},
      {"consumer_wait_p50", seconds(run.consumer_waits.quantile(0.50))},
      {"consumer_wait_p90", seconds(run.consumer_waits.quantile(0.90))},
      {"consumer_wait_p99", seconds(run.consumer_waits.quantile(0.99))},
      {"output_wait", seconds(run.output_wait)},
      {"output_wait_p50", seconds(run.output_waits.quantile(0.50))},
      {"output_wait_p90", seconds(run.output_waits.quantile(0.90))},
      {"output_wait_p99", seconds(run.output_waits.quantile(0.99))},
      {"depth", std::to_string(run.depth)},
      {"memory_wait", seconds(run.memory_wait)},
      {"delivered", std::to_string(run.delivered)},
      {"qps", support::json_of(qps(run), 3)},
      {"readiness", support::json_of(readiness(run), 4)},
      {"stages", support::json_array(stages)},
      {"verdict", support::json_of(verdict(run))},
  };
  return support::json_object(members);
}

}  // namespace lade
