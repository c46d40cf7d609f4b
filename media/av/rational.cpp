#include <lade/error.hpp>
#include <lade/media/av/rational.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace lade::media {

__extension__ using wide = __int128;  // holds every product of two 64-bit integers

static wide magnitude_of(wide value) noexcept { return value < 0 ? -value : value; }

static wide common_divisor(wide a, wide b) noexcept {
  constexpr wide largest = std::numeric_limits<std::uint64_t>::max();
  a = magnitude_of(a);
  b = magnitude_of(b);
  while (b != 0 && std::max(a, b) > largest) {
    const wide rest = a % b;
    a = b;
    b = rest;
  }
  return b == 0 ? a : std::gcd(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b));
}

static std::int64_t narrowed(wide value, const char* doing) {
  if (value < std::numeric_limits<std::int64_t>::min() ||
      value > std::numeric_limits<std::int64_t>::max())
    throw error(errc::limit_exceeded, doing, "the result does not fit into 64 bits");
  return static_cast<std::int64_t>(value);
}

// `denominator` is not 0.
static rational reduced(wide numerator, wide denominator, const char* doing) {
  const wide divisor = common_divisor(numerator, denominator) * (denominator < 0 ? -1 : 1);
  if (divisor == 1) return {narrowed(numerator, doing), narrowed(denominator, doing)};
  return {narrowed(numerator / divisor, doing), narrowed(denominator / divisor, doing)};
}

rational::rational(std::int64_t numerator, std::int64_t denominator)
    : numerator_(numerator), denominator_(denominator) {
  if (denominator == 0)
    throw error(errc::invalid_argument, "make a rational", "the denominator is 0");
  const auto unsigned_numerator = static_cast<std::uint64_t>(numerator);
  const auto magnitude = numerator < 0 ? 0 - unsigned_numerator : unsigned_numerator;
  if (denominator > 0 && std::gcd(magnitude, static_cast<std::uint64_t>(denominator)) == 1) return;
  *this = reduced(numerator, denominator, "reduce a rational");
}

// The first convergent of a continued fraction that converts to `value`, which is not negative
// (Hardy and Wright, An Introduction to the Theory of Numbers, 10.2 and 10.5).
static std::optional<rational> first_convergent(double value) {
  constexpr std::int64_t largest = std::int64_t{1} << 32;
  std::int64_t p = 1;
  std::int64_t q = 0;
  std::int64_t p_before = 0;
  std::int64_t q_before = 1;
  for (double rest = value; rest <= 0x1p33; rest = 1 / (rest - std::floor(rest))) {
    const auto term = static_cast<std::int64_t>(rest);
    std::int64_t next_p = 0;
    std::int64_t next_q = 0;
    if (__builtin_mul_overflow(term, p, &next_p) || __builtin_mul_overflow(term, q, &next_q) ||
        __builtin_add_overflow(next_p, p_before, &next_p) ||
        __builtin_add_overflow(next_q, q_before, &next_q) || next_q > largest)
      return std::nullopt;
    p_before = std::exchange(p, next_p);
    q_before = std::exchange(q, next_q);
    if (static_cast<double>(p) / static_cast<double>(q) == value) return rational(p, q);
  }
  return std::nullopt;
}

rational rational::nearest(double value) {
  constexpr double limit = 0x1p33;
  if (!(std::abs(value) <= limit))
    throw error(errc::invalid_argument, "make a rational", "the value is not finite or too large");
  if (const auto found = first_convergent(std::abs(value))) return value < 0 ? 0 - *found : *found;
  constexpr std::int64_t unit = 1'000'000'000;
  return {std::llround(value * unit), unit};
}

static wide floor_quotient(wide numerator, wide denominator) noexcept {
  const wide quotient = numerator / denominator;
  return numerator % denominator < 0 ? quotient - 1 : quotient;
}

static std::int64_t clamped(wide value) noexcept {
  constexpr wide lowest = std::numeric_limits<std::int64_t>::min();
  constexpr wide highest = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(value < lowest ? lowest : value > highest ? highest : value);
}

std::int64_t floor_units(const rational& time, const rational& unit) noexcept {
  return clamped(floor_quotient(wide{time.numerator()} * unit.denominator(),
                                wide{time.denominator()} * unit.numerator()));
}

std::int64_t ceil_units(const rational& time, const rational& unit) noexcept {
  return clamped(-floor_quotient(-wide{time.numerator()} * unit.denominator(),
                                 wide{time.denominator()} * unit.numerator()));
}

// Compares the remainder with its complement: twice the numerator may overflow.
std::int64_t nearest_units(const rational& time, const rational& unit) noexcept {
  const wide numerator = wide{time.numerator()} * unit.denominator();
  const wide denominator = wide{time.denominator()} * unit.numerator();
  const wide quotient = floor_quotient(numerator, denominator);
  const wide rest = numerator - quotient * denominator;
  return clamped(rest >= denominator - rest ? quotient + 1 : quotient);
}

std::int64_t rational::floor() const noexcept {
  const auto quotient = numerator_ / denominator_;
  return numerator_ % denominator_ < 0 ? quotient - 1 : quotient;
}

std::int64_t rational::ceil() const noexcept {
  const auto quotient = numerator_ / denominator_;
  return numerator_ % denominator_ > 0 ? quotient + 1 : quotient;
}

std::int64_t rational::round() const { return (*this + rational(1, 2)).floor(); }

std::strong_ordering operator<=>(const rational& a, const rational& b) noexcept {
  const wide left = wide{a.numerator_} * b.denominator_;
  const wide right = wide{b.numerator_} * a.denominator_;
  return left < right   ? std::strong_ordering::less
         : left > right ? std::strong_ordering::greater
                        : std::strong_ordering::equal;
}

// Sums are formed over the least common denominator, so that 128 bits hold them.
static rational sum_of(const rational& a, const rational& b, int sign, const char* doing) {
  const auto divisor = std::gcd(a.denominator(), b.denominator());
  const wide left = wide{a.numerator()} * (b.denominator() / divisor);
  const wide right = wide{b.numerator()} * (a.denominator() / divisor);
  return reduced(left + sign * right, wide{a.denominator()} * (b.denominator() / divisor), doing);
}

rational operator+(const rational& a, const rational& b) {
  return sum_of(a, b, 1, "add rationals");
}

rational operator-(const rational& a, const rational& b) {
  return sum_of(a, b, -1, "subtract rationals");
}

rational operator*(const rational& a, const rational& b) {
  return reduced(wide{a.numerator_} * b.numerator_, wide{a.denominator_} * b.denominator_,
                 "multiply rationals");
}

rational operator/(const rational& a, const rational& b) {
  if (b.numerator_ == 0) throw error(errc::invalid_argument, "divide rationals", "by 0");
  return reduced(wide{a.numerator_} * b.denominator_, wide{a.denominator_} * b.numerator_,
                 "divide rationals");
}

std::string to_string(const rational& value) {
  if (value.denominator() == 1) return std::to_string(value.numerator());
  return fmt::format("{}/{}", value.numerator(), value.denominator());
}

}  // namespace lade::media
