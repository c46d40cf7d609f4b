#include "../../media/crop.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace lade::media {

static image_options with_fit(image_fit fit) {
  image_options options{.width = 224, .height = 224, .fit = fit};
  return decode_image(options).options();
}

TEST(Crop, RandomOnesLieInsideAndHaveTheAreaAndShapeAskedFor) {
  const auto options = with_fit(image_fit::random_crop);
  double smallest = 1;
  double largest = 0;
  int flips = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const auto crop = plan_crop(500, 375, {}, options, random(seed));
    ASSERT_GE(crop.x.begin, 0);
    ASSERT_GE(crop.y.begin, 0);
    ASSERT_LE(crop.x.begin + crop.x.length, 500);
    ASSERT_LE(crop.y.begin + crop.y.length, 375);
    const double aspect = crop.x.length / crop.y.length;
    ASSERT_GT(aspect, 0.75 * 0.98);
    ASSERT_LT(aspect, 4 / 3.0 * 1.02);
    const double area = crop.x.length * crop.y.length / (500 * 375);
    smallest = std::min(smallest, area);
    largest = std::max(largest, area);
    flips += crop.turn.mirror_x ? 1 : 0;
  }
  EXPECT_NEAR(smallest, 0.08, 0.01);
  EXPECT_GT(largest, 0.95);
  EXPECT_NEAR(flips, 2000, 200);
}

TEST(Crop, RandomOnesKeepToTheAspectsAskedFor) {
  auto options = with_fit(image_fit::random_crop);
  options.min_aspect = 2;
  options.max_aspect = 3;
  options.max_area = 0.2;
  double widest = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const auto crop = plan_crop(5000, 3750, {}, options, random(seed));
    const double aspect = crop.x.length / crop.y.length;
    ASSERT_GT(aspect, 1.99);
    ASSERT_LT(aspect, 3.01);
    widest = std::max(widest, aspect);
  }
  EXPECT_GT(widest, 2.9);
}

TEST(Crop, EqualDrawsGiveEqualCrops) {
  const auto options = with_fit(image_fit::random_crop);
  const auto a = plan_crop(500, 375, {}, options, random(7, 1, 2));
  const auto b = plan_crop(500, 375, {}, options, random(7, 1, 2));
  const auto c = plan_crop(500, 375, {}, options, random(7, 1, 3));
  EXPECT_EQ(a.x.begin, b.x.begin);
  EXPECT_EQ(a.y.length, b.y.length);
  EXPECT_NE(a.x.begin, c.x.begin);
}

TEST(Crop, AnImageTooNarrowForAnyIsCutInTheMiddle) {
  const auto options = with_fit(image_fit::random_crop);
  const auto crop = plan_crop(1000, 10, {}, options, random(1));
  EXPECT_EQ(crop.y.length, 10);
  EXPECT_EQ(crop.x.length, 13);
  EXPECT_EQ(crop.x.begin, 493);
}

TEST(Crop, TheMiddleIsThatOfTheResizedImage) {
  const auto crop = plan_crop(500, 375, {}, with_fit(image_fit::centre_crop), {});
  EXPECT_DOUBLE_EQ(crop.y.begin, 16 * 375 / 256.0);
  EXPECT_DOUBLE_EQ(crop.x.begin, 58 * 500 / 341.0);  // (341 - 224) / 2 rounds to even
  EXPECT_DOUBLE_EQ(crop.x.length, 224 * 500 / 341.0);
}

TEST(Crop, IsTheSamePartOfATurnedImage) {
  const auto options = with_fit(image_fit::random_crop);
  const auto straight = plan_crop(500, 375, {}, options, random(9));
  const auto turned = plan_crop(375, 500, orientation_of(6), options, random(9));
  EXPECT_EQ(turned.x.length, straight.y.length);
  EXPECT_EQ(turned.x.begin, straight.y.begin);
  EXPECT_EQ(turned.y.begin, 500 - straight.x.begin - straight.x.length);
}

}  // namespace lade::media
