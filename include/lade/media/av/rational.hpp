// Exact fractions: times in seconds and rates per second, as media files state them.

#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>

namespace lade::media {

// numerator / denominator in lowest terms, the denominator above 0. All operations are exact; they
// throw error(limit_exceeded) if a result does not fit into 64 bits. A value: any thread.
class rational {
 public:
  constexpr rational() noexcept = default;  // 0
  constexpr rational(std::int64_t whole) noexcept : numerator_(whole) {}

  // Deleted, because 2.5 would become 2. Write rational(5, 2) or rational::nearest(2.5).
  rational(std::floating_point auto) = delete;

  // Throws error(invalid_argument) if `denominator` is 0.
  rational(std::int64_t numerator, std::int64_t denominator);

  // Returns the simple fraction that a floating-point number stands for: 1.0 / 30 is 1/30, 29.97 is
  // 2997/100. It is the first convergent of the continued fraction that converts to the same
  // number. If its denominator would exceed 2^32, the result is the nearest nanosecond.
  //
  // Times up to a day are restored exactly from to_double() if their denominator is at most
  // 200,000, as in nearly all files. Throws error(invalid_argument) for a value that is not finite,
  // or exceeds 2^33 in magnitude.
  static rational nearest(double value);

  constexpr std::int64_t numerator() const noexcept { return numerator_; }
  constexpr std::int64_t denominator() const noexcept { return denominator_; }

  constexpr double to_double() const noexcept {
    return static_cast<double>(numerator_) / static_cast<double>(denominator_);
  }

  // Return the largest integer not above the value, the smallest integer not below it, and the
  // nearest integer, with halves rounded up.
  std::int64_t floor() const noexcept;
  std::int64_t ceil() const noexcept;
  std::int64_t round() const;

  friend constexpr bool operator==(const rational&, const rational&) noexcept = default;
  friend std::strong_ordering operator<=>(const rational& a, const rational& b) noexcept;

  friend rational operator+(const rational& a, const rational& b);
  friend rational operator-(const rational& a, const rational& b);
  friend rational operator*(const rational& a, const rational& b);
  friend rational operator/(const rational& a,
                            const rational& b);  // error(invalid_argument): b = 0

 private:
  std::int64_t numerator_ = 0;
  std::int64_t denominator_ = 1;
};

// Return a time as a number of units: rounded down, rounded up, and rounded to nearest, halves up.
// Exact; clamped to 64 bits. `unit` must be above 0.
std::int64_t floor_units(const rational& time, const rational& unit) noexcept;
std::int64_t ceil_units(const rational& time, const rational& unit) noexcept;
std::int64_t nearest_units(const rational& time, const rational& unit) noexcept;

std::string to_string(const rational& value);  // "1001/30000", "5"

// A window of time in seconds, half open: begin <= t < end. The default is the whole stream.
//
//   {.begin = 2, .end = rational(7, 2)}    {.begin = rational::nearest(seconds)}
struct time_window {
  std::optional<rational> begin = {};  // empty: from the first
  std::optional<rational> end = {};    // empty: to the last

  bool contains(const rational& time) const noexcept {
    return (!begin || *begin <= time) && (!end || time < *end);
  }

  friend bool operator==(const time_window&, const time_window&) = default;
};

}  // namespace lade::media
