#include <lade/failure.hpp>
#include <lade/support/json.hpp>
#include <lade/support/require.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace lade {

std::string to_json(const failure_record& failure) {
  const std::pair<const char*, std::string> members[] = {
      {"stage", support::json_of(failure.stage)},
      {"item", support::json_of(failure.item)},
      {"what", support::json_of(failure.what)},
      {"attempts", std::to_string(failure.attempts)},
      {"positions", support::json_of(failure.positions)},
      {"epoch", std::to_string(failure.epoch)},
  };
  return support::json_object(members);
}

static std::string also_failed(const std::vector<stage_error>& others) {
  constexpr std::size_t most = 3;
  std::string text;
  for (auto& each : std::span(others).first(std::min(others.size(), most)))
    text += std::string("; also ") + each.what();
  if (others.size() > most) text += fmt::format("; and {} more", others.size() - most);
  return text;
}

stage_error::stage_error(const stage_error& first, std::vector<stage_error> others)
    : stage_error(first.cause(), first.code(), first.stage(), first.item(), first.positions(),
                  first.why() + also_failed(others)) {
  why_ = first.why_;
  others_ = std::make_shared<const std::vector<stage_error>>(std::move(others));
}

std::chrono::nanoseconds pause_after(const retry& how, unsigned attempt, double draw) noexcept {
  constexpr double longest = 1e9 * 86'400;  // a day
  if (how.pause.count() <= 0) return {};
  auto full = static_cast<double>(how.pause.count()) * std::pow(how.growth, attempt - 1);
  auto pause = std::clamp(full, 0.0, longest) * (1 - std::clamp(how.jitter, 0.0, 1.0) * draw);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(pause));
}

void require_retry(std::string_view doing, const retry& how) {
  support::require_count(doing, "retry.attempts", how.attempts);
  support::require_duration(doing, "retry.pause", how.pause);
  support::require_number(doing, "retry.growth", how.growth, 0, 1e6);
  support::require_number(doing, "retry.jitter", how.jitter, 0, 1);
}

namespace detail {

static bool is_device_lost(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const std::system_error& e) {
    return e.code() == condition::device_lost;
  } catch (...) {
    return false;
  }
}

bool is_worth_retrying(const retry& how, const std::exception_ptr& failure) noexcept {
  if (is_device_lost(failure)) return false;
  try {
    return !how.when || how.when(failure);
  } catch (...) {
    return false;
  }
}

std::chrono::nanoseconds time_limits::left(std::chrono::nanoseconds since_first) const noexcept {
  auto left = std::chrono::nanoseconds::max();
  if (call.count() > 0) left = call;
  if (item.count() > 0) left = std::min(left, std::max(item - since_first, {}));
  return left;
}

void require_budget(std::string_view stage, const error_budget& budget,
                    std::optional<on_error> policy) {
  if (budget.rate) support::require_number(stage, "error_budget.rate", *budget.rate, 0, 1);
  if (budget.is_given() && policy == on_error::fail)
    throw error(errc::invalid_argument, stage, "error_budget has no effect with on_error::fail");
}

void require_limits(std::string_view stage, std::chrono::nanoseconds timeout,
                    std::chrono::nanoseconds deadline) {
  support::require_duration(stage, "timeout", timeout);
  support::require_duration(stage, "deadline", deadline);
}

bool exceeds(const error_budget& budget, std::uint64_t failed, std::uint64_t started) noexcept {
  if (budget.count && failed > *budget.count) return true;
  return budget.rate && *budget.rate < 1 && started >= budget.probation &&
         static_cast<double>(failed) > *budget.rate * static_cast<double>(started);
}

}  // namespace detail
}  // namespace lade
