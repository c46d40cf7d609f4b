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

namespace lade::media::crop_test {

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

TEST(Crop, EqualDrawsChooseEqualCrops) {
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
                    .fit = static_cast<image_fit>(draw.below(4)),
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

TEST(Crop, DecodingByTheCropOfADrawEqualsDecodingByTheDraw) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  for (int round = 0; round < 400; ++round) {
    const auto file =
        noisy_jpeg(1 + static_cast<int>(draw.below(80)), 1 + static_cast<int>(draw.below(80)),
                   static_cast<char>(1 + draw.below(8)), draw);
    auto how = random_options(draw);
    how.orient = draw.below(4) > 0;
    const decode_image decode(how);
    const random of_image(draw());
    const tensor expected = decode(file, of_image);
    const auto crop = decode.crop_of(file, of_image);
    ASSERT_EQ(difference(decode(file, crop), expected), 0) << "round " << round;
    how.crop_field = "crop";
    const auto with_crop = sample(file).with_field({"crop", to_tensor(crop)});
    ASSERT_EQ(difference(decode_image(how)(with_crop, random(7)), expected), 0)
        << "round " << round;
  }
}

TEST(Crop, AnItemMayHaveACustomSize) {
  random draw(1);
  const auto file = noisy_jpeg(60, 40, 1, draw);
  image_options how{.width = 8, .height = 8, .fit = image_fit::random_crop};
  const decode_image decode(how);
  const auto crop = decode.crop_of(file, random(5), {12, 20});
  how.width = 12;
  how.height = 20;
  EXPECT_EQ(crop, choose_crop(60, 40, how, random(5)));
  EXPECT_EQ(decode(file, crop).shape(), (dimensions{20, 12, 3}));
  EXPECT_EQ(difference(decode(file, crop), decode_image(how)(file, random(5))), 0);
}

TEST(Crop, TheMemoryForAnItemIsThatOfTheSizeThatItsCropSays) {
  random draw(1);
  const auto file = noisy_jpeg(60, 40, 6, draw);
  const decode_image decode({.width = 8, .height = 8, .crop_field = "crop"});
  const auto with_result = [&](const image_size& result) {
    return sample(file).with_field({"crop", to_tensor(decode.crop_of(file, {}, result))});
  };
  const std::size_t small = 3 * 8 * 8, large = 3 * 100 * 90;  // twice: the image is turned
  EXPECT_EQ(decode.memory_needed(with_result({8, 8})), decode.memory_needed(file));
  EXPECT_EQ(decode.memory_needed(with_result({100, 90})) - decode.memory_needed(file),
            2 * (large - small));
  EXPECT_GT(decode.memory_needed(sample(file).with_field({"crop", tensor()})), 0u);
}

TEST(Crop, CoveringIsTheLargestMiddlePartOfTheSameProportions) {
  const auto covering = [](int width, int height, image_size result) {
    return choose_crop(width, height,
                       {.width = result.width, .height = result.height, .fit = image_fit::cover});
  };
  const auto wide = covering(500, 375, {100, 100});
  EXPECT_EQ(wide, (chosen_crop{{62, 0, 375, 375}, true, false, {500, 375}, {100, 100}}));
  const auto tall = covering(300, 400, {200, 100});
  EXPECT_EQ(tall, (chosen_crop{{0, 125, 300, 150}, true, false, {300, 400}, {200, 100}}));
  EXPECT_EQ(covering(400, 200, {20, 10}).box.width, 400);
  EXPECT_EQ(covering(1, 1000, {32768, 1}).box.height, 1);
}

TEST(Crop, IsKeptInATensorWithoutLoss) {
  const auto crop = choose_crop(
      500, 375, {.width = 224, .height = 160, .fit = image_fit::centre_crop, .shorter_side = 251});
  EXPECT_FALSE(crop.isolated);
  EXPECT_NE(crop.box.left, std::floor(crop.box.left));
  EXPECT_EQ(to_crop(to_tensor(crop)), crop);
  const chosen_crop flipped{{1, 2, 3, 4}, true, true, {10, 20}, {30, 40}};
  EXPECT_EQ(to_crop(to_tensor(flipped)), flipped);
}

TEST(Crop, AnInvalidTensorIsRefused) {
  const auto refused = [](const tensor& stored) {
    EXPECT_THAT([&] { to_crop(stored); },
                ThrowsMessage<error>(HasSubstr("read a crop: a stored crop is f64 [10]")));
  };
  refused(tensor(element_type::f32, {10}));
  refused(tensor(element_type::f64, {9}));
  for (const double value : {0.5, -1.0, 3e9, std::nan("")})
    for (int i : {0, 7, 9}) {
      const auto stored = to_tensor({{1, 2, 3, 4}, true, true, {10, 20}, {30, 40}});
      stored.data<double>()[i] = value;
      refused(stored);
    }
}

TEST(Crop, AnInvalidCropIsRefused) {
  const auto refused = [](const chosen_crop& crop, const char* why) {
    random draw(1);
    const auto file = noisy_jpeg(10, 20, 1, draw);
    EXPECT_THAT([&] { decode_image()(file, crop); },
                ThrowsMessage<error>(HasSubstr(std::string("decode noise.jpg: ") + why)));
  };
  const image_size image{10, 20}, result{5, 5};
  refused({{0, 0, 10, 20}, false, false, {0, 20}, result}, "the crop is of an image without");
  for (const image_box& box :
       {image_box{0, 0, 0, 20}, image_box{-1, 0, 5, 5}, image_box{0, 1, 10, 20},
        image_box{6, 0, 5, 5}, image_box{std::nan(""), 0, 5, 5}, image_box{0, 0, 5, HUGE_VAL}})
    refused({box, false, false, image, result}, "the crop's box must have an area and lie inside");
  refused({{0.5, 0, 5, 5}, true, false, image, result}, "an isolated crop must have whole pixels");
  for (const image_size& size : {image_size{0, 5}, image_size{5, 32769}})
    refused({{0, 0, 5, 5}, true, false, image, size}, "the crop's result must be 1 to 32768");
}

TEST(Crop, ACropOfAnImageOfAnotherSizeIsRefusedByName) {
  random draw(1);
  const auto crop = choose_crop(20, 10, {});
  EXPECT_EQ(decode_image()(noisy_jpeg(20, 10, 1, draw), crop).shape(), (dimensions{10, 20, 3}));
  EXPECT_EQ(decode_image()(noisy_jpeg(10, 20, 6, draw), crop).shape(), (dimensions{10, 20, 3}));
  EXPECT_THAT(
      [&] { decode_image()(noisy_jpeg(20, 10, 6, draw), crop); },
      ThrowsMessage<error>(HasSubstr("decode noise.jpg: the image is 10 x 20, its crop that "
                                     "of an image of 20 x 10")));
}

TEST(Crop, TheSizeOfAnImageIsThatOfItsPixelsOrAnError) {
  random draw(1);
  const auto turned = noisy_jpeg(10, 20, 6, draw);
  EXPECT_EQ(size_of_image(turned), (image_size{20, 10}));
  EXPECT_EQ(size_of_image(turned, {.orient = false}), (image_size{10, 20}));
  const auto refused = [](const sample& file, const image_options& how, const char* why) {
    EXPECT_THAT([&] { size_of_image(file, how); }, ThrowsMessage<error>(HasSubstr(why)));
  };
  refused(turned, {.max_pixels = 199}, "read the size of noise.jpg: 10 x 20 pixels are more than");
  refused(sample("a.jpg"), {}, "read the size of a.jpg: the sample has no data");
  refused(sample("a.jpg").with_data(buffer()), {}, "read the size of a.jpg: the file is empty");
  refused(sample("a.jpg").with_data(turned.data().slice(0, 12)), {},
          "read the size of a.jpg: the size is 0 x 0");
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

}  // namespace lade::media::crop_test
