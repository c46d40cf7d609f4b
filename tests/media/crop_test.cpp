#include "../../media/crop.hpp"

#include <lade/error.hpp>
#include <lade/media/crop.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "../support/seed.hpp"
#include "images.hpp"
#include "jpeg_writer.hpp"

namespace lade::media {

using testing::HasSubstr;
using testing::ThrowsMessage;

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

// A JPEG of noise with an orientation in its Exif data.
static sample noisy_jpeg(int width, int height, char orientation, random& draw) {
  tensor pixels(element_type::u8, {height, width, 3});
  std::generate_n(pixels.data<std::uint8_t>(), 3 * width * height,
                  [&] { return static_cast<std::uint8_t>(draw.below(256)); });
  const auto jpeg = write_jpeg(pixels);
  std::string exif(
      "\xff\xe1\0\x22"
      "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0_\0\0\0\0\0\0",
      36);
  exif[exif.find('_')] = orientation;
  buffer file(jpeg.size() + exif.size());
  auto* out = reinterpret_cast<char*>(file.data());
  const auto* in = reinterpret_cast<const char*>(jpeg.data());
  std::copy(in + 2, in + jpeg.size(),
            std::copy_n(exif.data(), exif.size(), std::copy_n(in, 2, out)));
  return sample("noise.jpg").with_data(file);
}

static image_options random_options(random& draw) {
  const auto up_to_40 = [&] { return 1 + static_cast<int>(draw.below(40)); };
  image_options how{.width = up_to_40(),
                    .height = up_to_40(),
                    .fit = static_cast<image_fit>(draw.below(3)),
                    .min_area = draw.uniform(0.01, 0.5),
                    .max_area = draw.uniform(0.5, 1),
                    .min_aspect = draw.uniform(0.2, 1),
                    .max_aspect = draw.uniform(1, 5)};
  if (draw.below(2) == 1) how.shorter_side = std::max(how.width, how.height) + up_to_40() - 1;
  if (how.fit == image_fit::stretch && draw.below(2) == 1) how.width = how.height = 0;
  return how;
}

// What the crop makes of a decoded image, which `like` has the shape of.
static tensor cropped(const tensor& whole, const chosen_crop& crop, const tensor& like) {
  tensor out(like.spec());
  const auto& box = crop.box;
  if (!crop.isolated) {
    resize(whole, out, {.from = box, .flip = crop.flip});
    return out;
  }
  const auto left = static_cast<std::int64_t>(box.left), top = static_cast<std::int64_t>(box.top);
  EXPECT_EQ(std::floor(box.left) + std::floor(box.top), box.left + box.top);
  EXPECT_EQ(std::floor(box.width) + std::floor(box.height), box.width + box.height);
  const tensor part(
      {element_type::u8,
       {static_cast<std::int64_t>(box.height), static_cast<std::int64_t>(box.width), 3}},
      whole.strides(), whole.memory(), whole[top][left].bytes());
  resize(part, out, {.flip = crop.flip});
  return out;
}

TEST(Crop, ChosenOnesAreThoseOfDecodedImages) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  for (int round = 0; round < 400; ++round) {
    const auto width = 1 + static_cast<int>(draw.below(80));
    const auto height = 1 + static_cast<int>(draw.below(80));
    const auto orientation = static_cast<char>(1 + draw.below(8));
    const auto file = noisy_jpeg(width, height, orientation, draw);
    const auto how = random_options(draw);
    const random of_image(draw());
    const tensor expected = decode_image(how)(file, of_image);
    const tensor whole = decode_image()(file);
    const auto crop = choose_crop(static_cast<int>(whole.shape()[1]),
                                  static_cast<int>(whole.shape()[0]), how, of_image);
    // Of a turned image, other sums are rounded.
    const int allowed = orientation == 1 ? 0 : 1;
    ASSERT_LE(difference(cropped(whole, crop, expected), expected), allowed)
        << "round " << round << ", " << width << " x " << height << ", orientation "
        << static_cast<int>(orientation) << ", fit " << static_cast<int>(how.fit);
  }
}

TEST(Crop, ChosenOnesLieInsideAlsoWhereSumsAreRoundedUp) {
  for (int width : {25, 29, 50, 61}) {
    const int size = width % 29 == 0 ? 7 : 11;
    const image_options how{
        .width = size, .height = size, .fit = image_fit::centre_crop, .shorter_side = size};
    const auto box = choose_crop(width, width, how).box;
    EXPECT_EQ(box.left + box.width, width);
    EXPECT_EQ(box.top + box.height, width);
  }
}

TEST(Crop, ChosenOnesRefuseWhatCannotBeCropped) {
  const auto refuses = [](std::string_view why, int width, const image_options& how) {
    EXPECT_THAT([&] { choose_crop(width, 375, how); },
                ThrowsMessage<error>(HasSubstr("choose a crop: " + std::string(why))));
  };
  refuses("the image has no pixels", 0, {});
  EXPECT_THAT([] { choose_crop(500, 0, {}); },
              ThrowsMessage<error>(HasSubstr("choose a crop: the image has no pixels")));
  refuses("fit needs a width and a height", 500, {.fit = image_fit::random_crop});
  refuses("square_pixels is for frames", 500, {.square_pixels = true});
}

}  // namespace lade::media
