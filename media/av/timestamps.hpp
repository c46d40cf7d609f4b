// Times in units of a stream, for times that no timestamp can have as well.

#pragma once

#include <lade/media/av/rational.hpp>

#include <algorithm>
#include <cstdint>

namespace lade::media {

// The largest timestamp at or before a time, and the smallest at or behind it, of a stream with
// `rate` units in a second, which is above 0. The first or the last one for times out of range.
inline std::int64_t floor_timestamp(const rational& time, const rational& rate) noexcept {
  __extension__ using wide = __int128;  // holds every product of two 64-bit integers
  const wide units = wide{time.numerator()} * rate.numerator();
  const wide divisor = wide{time.denominator()} * rate.denominator();
  const wide whole = units / divisor - (units % divisor < 0 ? 1 : 0);
  return static_cast<std::int64_t>(std::clamp<wide>(whole, INT64_MIN, INT64_MAX));
}

inline std::int64_t ceil_timestamp(const rational& time, const rational& rate) noexcept {
  __extension__ using wide = __int128;
  const wide units = wide{time.numerator()} * rate.numerator();
  const wide divisor = wide{time.denominator()} * rate.denominator();
  const wide whole = units / divisor + (units % divisor > 0 ? 1 : 0);
  return static_cast<std::int64_t>(std::clamp<wide>(whole, INT64_MIN, INT64_MAX));
}

}  // namespace lade::media
