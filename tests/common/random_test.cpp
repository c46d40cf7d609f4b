#include <lade/random.hpp>

#include <gtest/gtest.h>

#include <array>

namespace lade::random_test {

TEST(Random, SameKeysProduceTheSameNumbers) {
  random a(1, 2, 3);
  random b(1, 2, 3);
  random other(1, 3, 2);
  auto first = a();
  EXPECT_EQ(first, b());
  EXPECT_NE(first, other());
}

TEST(Random, BelowIsUniform) {
  random draw(7);
  std::array<int, 6> counts{};
  for (int i = 0; i < 60'000; ++i) ++counts[draw.below(6)];
  for (auto count : counts) EXPECT_NEAR(count, 10'000, 400);
}

TEST(Random, UniformStaysInsideItsInterval) {
  random draw(7);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    auto x = draw.uniform(2, 4);
    ASSERT_GE(x, 2);
    ASSERT_LT(x, 4);
    sum += x;
  }
  EXPECT_NEAR(sum / 10'000, 3, 0.03);
}

}  // namespace lade::random_test
