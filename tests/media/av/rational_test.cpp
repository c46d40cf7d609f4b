#include <lade/error.hpp>
#include <lade/media/av/rational.hpp>

#include "../../support/seed.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <type_traits>

namespace lade::media::rational_test {

constexpr auto largest = std::numeric_limits<std::int64_t>::max();
constexpr auto smallest = std::numeric_limits<std::int64_t>::min();

TEST(Rational, IsInLowestTermsWithAPositiveDenominator) {
  EXPECT_EQ(rational(6, -4), rational(-3, 2));
  EXPECT_EQ(rational(-3, 2).denominator(), 2);
  EXPECT_EQ(rational(0, -7), rational(0));
  EXPECT_EQ(rational(smallest, smallest), rational(1));
}

TEST(Rational, TheSmallestNumeratorIsReducedToo) {
  EXPECT_EQ(rational(INT64_MIN, 2).numerator(), INT64_MIN / 2);
  EXPECT_EQ(rational(INT64_MIN, 3).numerator(), INT64_MIN);
  EXPECT_THROW(rational(INT64_MIN, -1), error);
}

TEST(Rational, AFloatingPointNumberIsNoWholeOne) {
  EXPECT_FALSE((std::is_constructible_v<rational, double>));
  EXPECT_FALSE((std::is_convertible_v<float, std::optional<rational>>));
  EXPECT_TRUE((std::is_convertible_v<unsigned, rational>));
  EXPECT_EQ(rational::nearest(2.5), rational(5, 2));
}

TEST(Rational, ADenominatorOfZeroIsRefused) {
  EXPECT_THROW(rational(1, 0), error);
  EXPECT_THROW(rational(1) / rational(0), error);
}

TEST(Rational, IsOrderedByItsValueAlsoWhereProductsExceed64Bits) {
  EXPECT_LT(rational(largest - 1, largest), rational(1));
  EXPECT_LT(rational(smallest), rational(smallest + 1));
  EXPECT_GT(rational(1, 3), rational(333'333'333, 1'000'000'000));
  EXPECT_EQ(rational(1001, 30000) <=> rational(2002, 60000), std::strong_ordering::equal);
}

TEST(Rational, OperationsThatDoNotFitAreRefused) {
  EXPECT_THROW(rational(largest) + rational(1), error);
  EXPECT_THROW(rational(smallest) - rational(1), error);
  EXPECT_THROW(rational(largest) * rational(2), error);
  EXPECT_THROW(rational(1, largest) / rational(2), error);
}

TEST(Rational, RoundsTowardsWhereItSays) {
  EXPECT_EQ(rational(-7, 2).floor(), -4);
  EXPECT_EQ(rational(-7, 2).ceil(), -3);
  EXPECT_EQ(rational(7, 2).floor(), 3);
  EXPECT_EQ(rational(7, 2).ceil(), 4);
  EXPECT_EQ(rational(7, 2).round(), 4);
  EXPECT_EQ(rational(-7, 2).round(), -3);
  EXPECT_EQ(rational(5).ceil(), 5);
}

TEST(Rational, NearestIsTheNearestNanosecond) {
  EXPECT_EQ(rational::nearest(0.1), rational(1, 10));
  EXPECT_EQ(rational::nearest(-2.5), rational(-5, 2));
  EXPECT_EQ(rational::nearest(1e-10), rational(0));
  EXPECT_THROW(rational::nearest(std::nan("")), error);
  EXPECT_THROW(rational::nearest(1e18), error);
}

TEST(Rational, ArithmeticAgreesWithDoubles) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto draw = [&] {
    return rational(static_cast<std::int64_t>(random() % 2'000'001) - 1'000'000,
                    static_cast<std::int64_t>(random() % 100'000) + 1);
  };
  for (int i = 0; i < 10'000; ++i) {
    const auto a = draw();
    const auto b = draw();
    const auto near = [](const rational& exact, double value) {
      return std::abs(exact.to_double() - value) <= 1e-9 * (1 + std::abs(value));
    };
    ASSERT_TRUE(near(a + b, a.to_double() + b.to_double()));
    ASSERT_TRUE(near(a - b, a.to_double() - b.to_double()));
    ASSERT_TRUE(near(a * b, a.to_double() * b.to_double()));
    ASSERT_EQ(a + b - b, a);
    ASSERT_EQ(a < b, a - b < rational(0));
  }
}

TEST(TimeWindow, IsHalfOpen) {
  const time_window window{.begin = 1, .end = 2};
  EXPECT_TRUE(window.contains(1));
  EXPECT_FALSE(window.contains(2));
  EXPECT_TRUE(time_window{}.contains(-100));
}

TEST(Rational, TextIsAFractionOrAnInteger) {
  EXPECT_EQ(to_string(rational(30000, 1001)), "30000/1001");
  EXPECT_EQ(to_string(rational(-4, 2)), "-2");
}

TEST(Rational, TimesComeBackFromFloatingPointNumbers) {
  for (const auto& unit :
       {rational(1, 90'000), rational(1, 12'800), rational(1, 48'000), rational(1, 44'100),
        rational(1'001, 30'000), rational(1'001, 24'000), rational(1, 1'000), rational(1, 30)})
    for (std::int64_t i = 0; i < 86'400; i += 7) {
      const auto time = rational(i) + rational(i * 13) * unit;
      ASSERT_EQ(rational::nearest(time.to_double()), time);
      ASSERT_EQ(rational::nearest(-time.to_double()), 0 - time);
    }
  EXPECT_EQ(rational::nearest(1.0 / 30), rational(1, 30));
  EXPECT_EQ(rational::nearest(24'000.0 / 1'001), rational(24'000, 1'001));
  EXPECT_EQ(rational::nearest(29.97), rational(2'997, 100));
  EXPECT_EQ(rational::nearest(3.14159265358979312), rational::nearest(3.14159265358979312));
  EXPECT_NEAR(rational::nearest(3.14159265358979312).to_double(), 3.14159265358979312, 1e-9);
}

TEST(Rational, UnitsAreCountedExactlyAndClamped) {
  EXPECT_EQ(floor_units(rational(1, 3), rational(1, 1'000)), 333);
  EXPECT_EQ(floor_units(rational(-1, 3), rational(1, 1'000)), -334);
  EXPECT_EQ(ceil_units(rational(1, 3), rational(1, 1'000)), 334);
  EXPECT_EQ(ceil_units(rational(-1, 3), rational(1, 1'000)), -333);
  EXPECT_EQ(ceil_units(INT64_MIN, rational(1, INT64_MAX)), INT64_MIN);
  EXPECT_EQ(nearest_units(rational(2, 3), rational(1, 1'000)), 667);
  EXPECT_EQ(nearest_units(rational(1, 2), 1), 1);
  EXPECT_EQ(nearest_units(rational(-1, 2), 1), 0);
  EXPECT_EQ(nearest_units(rational(-2, 3), 1), -1);
  const rational least(1, INT64_MAX);
  EXPECT_EQ(floor_units(INT64_MAX, least), INT64_MAX);
  EXPECT_EQ(nearest_units(INT64_MIN, least), INT64_MIN);
  EXPECT_EQ(nearest_units(least, INT64_MAX), 0);
}

}  // namespace lade::media::rational_test
