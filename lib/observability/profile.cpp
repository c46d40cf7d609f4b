#include "figures.hpp"

#include <lade/async_generator.hpp>
#include <lade/error.hpp>
#include <lade/printable.hpp>
#include <lade/profile.hpp>
#include <lade/run.hpp>
#include <lade/shard.hpp>
#include <lade/support/require.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace lade {

namespace detail {

// 0 if the launcher's variables are invalid. rank_from_environment() reports that elsewhere.
static std::uint64_t rank_of_process() {
  try {
    return rank_from_environment().rank;
  } catch (const error&) {
    return 0;
  }
}

static std::uint64_t profile_from_environment() {
  auto* value = std::getenv("LADE_PROFILE");
  if (!value || !*value || rank_of_process() != 0) return 0;
  std::string_view text(value);
  std::uint64_t items = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), items);
  if (failure == std::errc() && end == text.data() + text.size() && items > 0 &&
      items <= support::most_in_batch)
    return items;
  auto message = fmt::format(
      "lade: no profile: LADE_PROFILE must be a number of items from 1 to 1073741824, not "
      "\"{}\"\n",
      printable(text));
  std::fputs(message.c_str(), stderr);
  return 0;
}

std::uint64_t take_profile_wanted() {
  static std::atomic<bool> taken = false;
  return taken.exchange(true) ? 0 : profile_from_environment();
}

static void require_profile(const profile_options& options) {
  support::require_count("profile", "items", options.items,
                         {.least = 1, .most = support::most_in_batch});
  for (auto each : options.concurrency)
    support::require_count("profile", "concurrency", each, {.least = 1});
}

// The concurrencies to try, after a trial of the stage as described. Where functions wait, more
// than one may be in flight for each thread.
static std::vector<unsigned> trials_for(const stage_statistics& described, unsigned threads,
                                        std::span<const unsigned> wanted) {
  std::vector<unsigned> trials;
  if (described.workers == 0) return trials;
  if (described.own_threads > 0) threads = described.own_threads;
  const bool waits = described.on_reactor || described.awaited.count() > 0;
  const auto most = waits ? 4 * described.workers : threads;
  if (wanted.empty())
    for (unsigned each = 1; each <= most; each *= 2) trials.push_back(each);
  else
    for (auto each : wanted) trials.push_back(waits ? each : std::min(each, most));
  std::ranges::sort(trials);
  auto twice = std::ranges::unique(trials);
  trials.erase(twice.begin(), twice.end());
  std::erase(trials, described.workers);
  return trials;
}

static stage_profile::trial trial_of(const stage_statistics& stage, std::uint64_t items,
                                     std::chrono::nanoseconds elapsed) {
  auto seconds = std::chrono::duration<double>(elapsed).count();
  return {.concurrency = stage.workers,
          .items = items,
          .elapsed = elapsed,
          .qps = seconds > 0 ? static_cast<double>(items) / seconds : 0,
          .readiness = readiness(stage, elapsed),
          .p50 = stage.p50,
          .p99 = stage.p99};
}

// Whether a node is part of the stage on trial. That stage has depth 2: the node behind it counts
// its items. Nodes that are not stages, and nodes in paths, belong to the stage behind them.
static bool is_part_of_trial(const planned_node& at) noexcept {
  constexpr unsigned stage_on_trial = 2;
  const auto* part = &at;
  while (part->depth > stage_on_trial && (part->rules.in_path || !part->facts().is_counted()))
    part = part->behind;
  return part->depth == stage_on_trial;
}

bool profiler::feeds_trial(const planned_node& at) const noexcept {
  const bool is_stage = at.facts().is_counted() && !at.rules.in_path;
  return is_stage && at.depth > 2 && is_part_of_trial(*at.behind);
}

std::optional<unsigned> profiler::concurrency_of(const planned_node& at) const noexcept {
  return on_trial_ && is_part_of_trial(at) ? concurrency_ : std::nullopt;
}

static async_generator<std::uint64_t> give_count(node_ptr of, open_context run) {
  auto count = co_await of->count(run);
  co_yield count;
}

run<std::uint64_t> start_trial(runtime& where, const pipeline<std::uint64_t>& what,
                               profiler& profiling) {
  return run<std::uint64_t>(where, what, profiling.options(), nullptr, &profiling);
}

static run_options options_of_trials(const run_options& given) {
  return {.epoch = given.epoch,
          .seed = given.seed,
          .on_error = given.on_error,
          .retry = given.retry,
          .error_budget = given.error_budget,
          .tune = given.tune};
}

// Runs a pipeline up to `stage` in a separate run. `seen`: the statistics of the stage.
static task<stage_profile::trial> try_stage(runtime& where, profiler& profiling,
                                            const profiler::stage& stage, stage_statistics& seen) {
  auto counted = make_pipeline<std::uint64_t>(
      node_facts::part_behind(stage.last),
      [last = stage.last](const open_context& run) { return give_count(last, run); });
  seen = {};
  auto run = start_trial(where, counted, profiling);
  auto items = co_await run.next();
  auto now = run.statistics() - profiling.take_begin();
  for (auto& each : now.stages)
    if (each.name == stage.name) seen = each;
  co_return trial_of(seen, *items, now.elapsed);
}

static task<std::vector<stage_profile>> profile_stages(runtime& where, node_ptr last,
                                                       profile_options options) {
  profiler profiling(options.items, options_of_trials(options.run));
  profiler::stage all{std::move(last), ""};
  stage_statistics seen;
  co_await try_stage(where, profiling, all, seen);
  std::vector<stage_profile> result;
  for (auto& stage : profiling.stages()) {
    auto& profiled = result.emplace_back();
    profiled.stage = stage.name;
    profiling.begin_trial(std::nullopt);
    auto described = co_await try_stage(where, profiling, stage, seen);
    described.as_described = true;
    profiled.trials.push_back(described);
    for (auto each : trials_for(seen, where.pool().size(), options.concurrency)) {
      profiling.begin_trial(each);
      auto trial = co_await try_stage(where, profiling, stage, seen);
      profiled.trials.push_back(trial);
    }
    std::ranges::sort(profiled.trials, {}, &stage_profile::trial::concurrency);
  }
  co_return result;
}

std::vector<stage_profile> profile(runtime& where, const node_ptr& last,
                                   const profile_options& options) {
  require_profile(options);
  return sync_wait(where, profile_stages(where, last, options));
}

static std::string why_there_is_no_profile(const std::exception_ptr& failure) try {
  std::rethrow_exception(failure);
} catch (const std::exception& e) {
  return fmt::format("lade: the profile has failed: {}\n", e.what());
} catch (...) {
  return "lade: the profile has failed: an exception of unknown type\n";
}

task<> tell_profile(run_state& of, node_ptr last, std::uint64_t items) {
  profile_options options{.items = items, .run = of.options()};
  std::string message;
  try {
    auto stages = co_await profile_stages(of.runtime(), std::move(last), std::move(options));
    message = fmt::format("lade: profile of {}{} of each source\n{}", grouped(items),
                          items == 1 ? " item" : " items", table(stages));
  } catch (...) {
    message = why_there_is_no_profile(std::current_exception());
  }
  std::fputs(message.c_str(), stderr);
}

}  // namespace detail

static detail::table_row row_of(const std::string& stage, const stage_profile::trial& trial) {
  auto concurrency = trial.concurrency ? std::to_string(trial.concurrency) : std::string("-");
  return {stage,
          concurrency + (trial.as_described && trial.concurrency ? " *" : "  "),
          detail::grouped(trial.items),
          detail::short_rate(trial.qps),
          trial.readiness ? detail::percent(*trial.readiness) : "-",
          detail::short_time(trial.p50),
          detail::short_time(trial.p99)};
}

// The shortest duration of all trials.
static std::chrono::nanoseconds best_of(const stage_profile& stage) {
  return std::ranges::min(stage.trials, {}, &stage_profile::trial::elapsed).elapsed;
}

std::string table(std::span<const stage_profile> stages) {
  std::vector<detail::table_row> rows{
      {"stage", "at a time", "items", "per s", "ready", "p50", "p99"}};
  for (auto& stage : stages)
    for (auto& trial : stage.trials)
      rows.push_back(row_of(&trial == stage.trials.data() ? stage.stage : "", trial));
  auto text = detail::aligned(rows);
  if (stages.empty()) return text;
  auto& slowest = *std::ranges::max_element(stages, {}, best_of);
  return fmt::format("{}{} is the slowest: alone it takes {} at best.\n", text, slowest.stage,
                     detail::short_time(best_of(slowest)));
}

}  // namespace lade
