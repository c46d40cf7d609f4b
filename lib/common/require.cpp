#include <lade/error.hpp>
#include <lade/support/require.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

namespace lade::support {

std::string number_text(double value) { return fmt::format("{}", value); }

void refuse_value(std::string_view doing, std::string_view option, const std::string& value,
                  const std::string& allowed) {
  throw error(errc::invalid_argument, doing,
              fmt::format("{} is {}; it must be {}", option, value, allowed));
}

void require_count(std::string_view doing, std::string_view option, std::uint64_t value,
                   const bounds& allowed) {
  if (allowed.least <= value && value <= allowed.most) return;
  refuse_value(doing, option, std::to_string(value),
               fmt::format("from {} to {}", allowed.least, allowed.most));
}

void require_number(std::string_view doing, std::string_view option, double value, double least,
                    double most) {
  if (least <= value && value <= most) return;
  refuse_value(doing, option, number_text(value), fmt::format("from {} to {}", least, most));
}

void require_duration(std::string_view doing, std::string_view option,
                      std::chrono::nanoseconds value, std::chrono::nanoseconds least) {
  if (value >= least) return;
  refuse_value(doing, option, fmt::format("{} ns", value.count()),
               fmt::format("at least {} ns", least.count()));
}

void require_weights(std::string_view doing, std::span<const double> weights) {
  if (weights.empty()) throw error(errc::invalid_argument, doing, "no weights");
  auto works = [](double weight) { return weight >= 0 && std::isfinite(weight); };
  auto wrong = std::ranges::find_if_not(weights, works);
  if (wrong != weights.end())
    refuse_value(doing, fmt::format("weight {}", wrong - weights.begin()), number_text(*wrong),
                 "a finite number from 0 on");
  if (std::ranges::max(weights) == 0)
    throw error(errc::invalid_argument, doing, "all weights are 0");
}

}  // namespace lade::support
