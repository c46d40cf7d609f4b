#include <lade/detail/common/alias_table.hpp>
#include <lade/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace lade::detail::alias_table_test {

using testing::HasSubstr;
using testing::ThrowsMessage;
using weight_list = std::vector<double>;

// How often each weight is picked in `draws` draws.
static std::vector<double> picked(const weight_list& weights, int draws) {
  alias_table table(weights, "pick");
  std::vector<double> counts(weights.size());
  for (int i = 0; i < draws; ++i) ++counts[table.pick(random(7, i))];
  return counts;
}

static double chi_square(const weight_list& weights, int draws) {
  auto counts = picked(weights, draws);
  auto sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double result = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    auto expected = draws * weights[i] / sum;
    result += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return result;
}

TEST(AliasTable, PicksInProportionToTheWeights) {
  // The bounds are exceeded by one in a thousand seeds.
  EXPECT_LT(chi_square({1, 2, 3, 4}, 100'000), 16.3);
  EXPECT_LT(chi_square({0.001, 5, 0, 0.2, 1e-2, 7, 7}, 1'000'000), 20.6);
  weight_list many(1000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<double>(1 + i % 17);
  EXPECT_LT(chi_square(many, 1'000'000), 1143);
}

TEST(AliasTable, NeverPicksAnItemOfWeightZero) {
  for (weight_list weights : {weight_list{0, 1}, {1, 0, 0, 0}, {0, 0.1, 0, 0.2, 0, 0.7}}) {
    auto counts = picked(weights, 10'000);
    for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_EQ(counts[i] > 0, weights[i] > 0);
  }
  weight_list mostly(10'000, 0.0);
  mostly[77] = 0.1;
  mostly[78] = 1e-300;
  EXPECT_EQ(picked(mostly, 10'000)[77], 10'000);
}

TEST(AliasTable, TakesWeightsOfAnySize) {
  EXPECT_EQ(picked({3}, 10)[0], 10);
  EXPECT_NEAR(picked({1.7e308, 1.7e308}, 10'000)[0], 5000, 300);
  EXPECT_NEAR(picked({5e-324, 5e-324}, 10'000)[0], 5000, 300);
}

TEST(AliasTable, DigestDependsOnTheProportionsOfTheWeights) {
  auto of = [](weight_list weights) { return alias_table(weights, "draw").digest(); };
  EXPECT_EQ(of({1, 2, 3}), of({2, 4, 6}));
  for (weight_list other : {weight_list{1, 3, 2}, {3, 2, 1}, {1, 2}, {1, 2, 3, 0}, {1, 2, 3.001}})
    EXPECT_NE(of({1, 2, 3}), of(other));
}

TEST(AliasTable, RefusesInvalidWeights) {
  auto of = [](weight_list weights) { return [weights] { alias_table(weights, "draw"); }; };
  EXPECT_THAT(of({}), ThrowsMessage<error>("draw: no weights"));
  EXPECT_THAT(of({0, 0}), ThrowsMessage<error>("draw: all weights are 0"));
  for (auto bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_THAT(of({1, bad}), ThrowsMessage<error>(HasSubstr("must be a finite number from 0 on")));
}

}  // namespace lade::detail::alias_table_test
