// Points in time that cannot overflow.

#pragma once

#include <algorithm>
#include <chrono>

namespace lade::detail {

// The moment `duration` after `from`: time_point::max(), which never comes, if it is later than a
// clock can tell. A limit of nanoseconds::max() so means none.
constexpr std::chrono::steady_clock::time_point later(std::chrono::steady_clock::time_point from,
                                                      std::chrono::nanoseconds duration) noexcept {
  using time_point = std::chrono::steady_clock::time_point;
  auto most = time_point::max() - std::max(from, time_point());
  return duration < most ? from + duration : time_point::max();
}

}  // namespace lade::detail
