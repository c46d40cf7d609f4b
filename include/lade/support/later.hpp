// later(): adds a duration to a time point without overflow.

#pragma once

#include <algorithm>
#include <chrono>

namespace lade::support {

// Returns `from` + `duration`; time_point::max() or min() if the sum overflows. So a limit of
// nanoseconds::max() never expires.
constexpr std::chrono::steady_clock::time_point later(std::chrono::steady_clock::time_point from,
                                                      std::chrono::nanoseconds duration) noexcept {
  using time_point = std::chrono::steady_clock::time_point;
  if (duration >= time_point::max() - std::max(from, time_point())) return time_point::max();
  if (duration < time_point::min() - std::min(from, time_point())) return time_point::min();
  return from + duration;
}

}  // namespace lade::support
