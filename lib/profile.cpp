#include "figures.hpp"

#include <lade/error.hpp>
#include <lade/profile.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace lade {

namespace detail {

static std::uint64_t profile_from_environment() {
  auto* value = std::getenv("LADE_PROFILE");
  if (!value || !*value) return 0;
  std::string_view text(value);
  std::uint64_t items = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), items);
  if (failure != std::errc() || end != text.data() + text.size() || items == 0)
    throw error(errc::invalid_argument, "read LADE_PROFILE",
                "expected a number of items, got " + std::string(text));
  return items;
}

std::uint64_t take_profile_wanted() {
  static std::atomic<bool> taken = false;
  return taken.exchange(true) ? 0 : profile_from_environment();
}

void require_profile(const profile_options& options) {
  if (options.items == 0) throw error(errc::invalid_argument, "profile", "no items");
  if (std::ranges::count(options.concurrency, 0u) > 0)
    throw error(errc::invalid_argument, "profile", "a concurrency of 0");
}

std::vector<unsigned> trials_for(const stage_statistics& described, unsigned threads,
                                 std::span<const unsigned> wanted) {
  std::vector<unsigned> trials;
  if (described.workers == 0) return trials;
  if (described.own_threads > 0) threads = described.own_threads;
  auto most = described.on_reactor ? 4 * described.workers : threads;
  if (wanted.empty())
    for (unsigned each = 1; each <= most; each *= 2) trials.push_back(each);
  else
    for (auto each : wanted) trials.push_back(described.on_reactor ? each : std::min(each, most));
  std::ranges::sort(trials);
  auto twice = std::ranges::unique(trials);
  trials.erase(twice.begin(), twice.end());
  std::erase(trials, described.workers);
  return trials;
}

stage_profile::trial trial_of(const stage_statistics& stage, std::uint64_t items,
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

// The least time that a stage has needed.
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
  return text + slowest.stage + " is the slowest: alone it takes " +
         detail::short_time(best_of(slowest)) + " at best.\n";
}

}  // namespace lade
