#include <lade/autotune.hpp>
#include <lade/support/require.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace lade {

std::string to_code(std::span<const stage_setting> settings) {
  std::string text;
  for (auto& each : settings) {
    if (each.concurrency == 0) {
      text += fmt::format("{}: {}\n", each.stage, each.buffer.value_or(0));
      continue;
    }
    text += fmt::format("{}: {{.concurrency = {}", each.stage, each.concurrency);
    if (each.buffer) text += fmt::format(", .buffer = {}", *each.buffer);
    text += "}\n";
  }
  return text;
}

namespace detail {

void require_concurrency(std::string_view stage, unsigned concurrency, unsigned least) {
  if (concurrency != automatic)
    support::require_count(stage, "concurrency", concurrency, {.least = least});
}

void require_tuning(std::string_view run, const tune_options& options) {
  support::require_count(run, "tune.most", options.most, {.least = 1});
  support::require_count(run, "tune.cpus", options.cpus, {.most = support::most_threads});
}

unsigned cpus_to_use(const tune_options& options, unsigned threads) noexcept {
  if (options.cpus > 0) return std::min(options.cpus, threads);
  return threads < 4 ? threads : threads - 1;
}

unsigned calls_at_a_time(unsigned concurrency, const tune_options& options,
                         unsigned threads) noexcept {
  if (concurrency == automatic) return cpus_to_use(options, threads);
  return concurrency ? concurrency : threads;
}

tuner queue_tuner(unsigned most) noexcept { return {{0, std::min(2u, most)}, 0, most}; }

// The factors of the concurrency, in the order of their trial, and the growth of the rate that is
// required to keep one. Lower concurrency is tried too: a server may be faster with fewer requests.
static constexpr std::array<double, 5> tuning_steps{2, 1.5, 1.2, 0.5, 0.8};
static constexpr double worth_keeping = 1.04;
static constexpr unsigned longest_rest = 500;

bool tuner::limits(const tuning_sample& sample) const noexcept {
  return sample.starved > 0.1 && sample.busy > 0.6;
}

// The next stage is starved and workers are idle, but all slots are in use.
bool tuner::slow_items_hold_up(const tuning_sample& sample) const noexcept {
  return sample.starved > 0.1 && sample.busy < 0.6 && sample.blocked > 0.3;
}

bool tuner::step(const tuning_sample& sample) noexcept {
  if (resting_ > 0) {
    --resting_;
    return false;
  }
  if (trying_) {
    trying_ = false;
    if (sample.rate > worth_keeping * kept_rate_) {
      next_rest_ = shortest_rest;
      kept_ = now_;
      kept_rate_ = sample.rate;
      return try_step();
    }
    ++factor_;
    bool changed = try_step();
    if (!changed) now_ = kept_;
    return true;
  }
  kept_rate_ = sample.rate;
  if (slow_items_hold_up(sample) && add_slots()) return true;
  factor_ = 0;
  return limits(sample) && try_step();
}

void tuner::settle() noexcept {
  now_ = kept_;
  trying_ = false;
}

// Doubles the buffer. Returns false if it has its largest size, or is fixed.
bool tuner::add_slots() noexcept {
  if (!now_.buffer) return false;
  const bool is_queue = now_.concurrency == 0;
  if (!is_queue && *now_.buffer >= 8 * now_.concurrency) return false;
  now_ = within_bounds({now_.concurrency, 2 * *now_.buffer});
  return now_ != std::exchange(kept_, now_);
}

tuner::setting tuner::within_bounds(const setting& wanted) const noexcept {
  if (!wanted.buffer) return wanted;
  return {wanted.concurrency, std::min(*wanted.buffer, most_held_ - wanted.concurrency)};
}

// With as many items of buffer for each in flight as before, at least one.
std::optional<unsigned> tuner::buffer_for(unsigned concurrency) const noexcept {
  if (!kept_.buffer) return std::nullopt;
  return concurrency * std::max(1u, *kept_.buffer / std::max(1u, kept_.concurrency));
}

// Tries the next factor on the kept setting. If none is left, returns false and rests.
bool tuner::try_step() noexcept {
  for (; factor_ < tuning_steps.size(); ++factor_) {
    auto wanted = std::lround(kept_.concurrency * tuning_steps[factor_]);
    auto next = std::clamp(static_cast<unsigned>(wanted), 1u, most_);
    if (next == kept_.concurrency) continue;
    now_ = within_bounds({next, buffer_for(next)});
    trying_ = true;
    return true;
  }
  factor_ = 0;
  resting_ = next_rest_;
  next_rest_ = std::min(2 * next_rest_, longest_rest);
  return false;
}

}  // namespace detail
}  // namespace lade
