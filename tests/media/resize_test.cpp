#include "pillow.hpp"

#include <lade/error.hpp>
#include <lade/media/image.hpp>
#include <lade/media/resize.hpp>
#include <lade/random.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

namespace lade::media::resize_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

static tensor noise_image(std::int64_t height, std::int64_t width, std::int64_t channels) {
  tensor image(element_type::u8, {height, width, channels});
  random draw(static_cast<std::uint64_t>(height), width, channels);
  for (std::size_t i = 0; i < image.spec().elements(); ++i)
    image.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(draw());
  return image;
}

static buffer as_ppm(const tensor& image) {
  const auto header = "P6\n" + std::to_string(image.shape()[1]) + " " +
                      std::to_string(image.shape()[0]) + "\n255\n";
  buffer file(header.size() + image.spec().bytes());
  std::memcpy(file.data(), header.data(), header.size());
  std::memcpy(file.data() + header.size(), image.bytes(), image.spec().bytes());
  return file;
}

TEST(Resize, IsWithinOneLevelOfPillow) {
  if (!have_pillow()) GTEST_SKIP() << "python3-pil is not installed";
  random draw(2);
  const temporary_directory directory;
  for (int round = 0; round < 12; ++round) {
    const auto size = [&](std::uint64_t most) {
      return 1 + static_cast<std::int64_t>(draw.below(most));
    };
    const tensor image = noise_image(size(700), size(700), 3);
    const double left = draw.uniform(0, static_cast<double>(image.shape()[1]));
    const double top = draw.uniform(0, static_cast<double>(image.shape()[0]));
    const double right = draw.uniform(left, static_cast<double>(image.shape()[1]));
    const double bottom = draw.uniform(top, static_cast<double>(image.shape()[0]));
    tensor out(element_type::u8, {size(300), size(300), 3});
    resize(image, out, {.from = {left, top, right - left, bottom - top}});
    const auto path = directory.write("noise.ppm", as_ppm(image));
    const auto text = [](auto value) { return std::to_string(value); };
    const auto expected =
        pillow("resize", {path.string(), text(out.shape()[1]), text(out.shape()[0]), text(left),
                          text(top), text(right), text(bottom)});
    EXPECT_LE(difference(out, expected.at(0)), 1)
        << to_string(image.shape()) << " to " << to_string(out.shape());
  }
}

TEST(Resize, ToTheSameSizeChangesNothing) {
  for (int channels : {1, 3}) {
    const tensor image = noise_image(37, 61, channels);
    tensor out(image.spec());
    resize(image, out);
    EXPECT_EQ(difference(image, out), 0);
  }
}

TEST(Resize, FlipMirrorsTheResult) {
  const tensor image = noise_image(90, 120, 3);
  tensor straight(element_type::u8, {40, 50, 3});
  tensor flipped(straight.spec());
  resize(image, straight);
  resize(image, flipped, {.flip = true});
  for (std::int64_t y = 0; y < 40; ++y)
    for (std::int64_t x = 0; x < 50; ++x)
      ASSERT_EQ(std::memcmp(straight[y][x].bytes(), flipped[y][49 - x].bytes(), 3), 0);
}

TEST(Resize, PlanesHoldTheSamePixels) {
  const tensor image = noise_image(90, 120, 3);
  tensor pixels(element_type::u8, {33, 47, 3});
  tensor planes(element_type::u8, {3, 33, 47});
  resize(image, pixels);
  resize(image, planes, {.layout = image_layout::chw});
  for (int y = 0; y < 33; ++y)
    for (int x = 0; x < 47; ++x)
      for (int c = 0; c < 3; ++c) ASSERT_EQ(pixels[y][x].bytes()[c], planes[c][y].bytes()[x]);
}

TEST(Resize, FloatsAreTheNormalisedBytes) {
  const tensor image = noise_image(90, 120, 3);
  tensor bytes(element_type::u8, {33, 47, 3});
  resize(image, bytes);
  for (auto layout : {image_layout::hwc, image_layout::chw}) {
    const bool planes = layout == image_layout::chw;
    tensor floats(element_type::f32, planes ? dimensions{3, 33, 47} : dimensions{33, 47, 3});
    resize(image, floats, {.layout = layout, .mean = imagenet_mean, .stddev = imagenet_stddev});
    for (int y = 0; y < 33; ++y)
      for (int x = 0; x < 47; ++x)
        for (int c = 0; c < 3; ++c) {
          const auto at = static_cast<std::size_t>(c);
          const float expected =
              (bytes[y][x].data<std::uint8_t>()[c] / 255.0F - imagenet_mean[at]) /
              imagenet_stddev[at];
          const float actual =
              planes ? floats[c][y].data<float>()[x] : floats[y][x].data<float>()[c];
          ASSERT_NEAR(actual, expected, 2e-6);
        }
  }
}

TEST(Resize, GreyBecomesThreeEqualChannels) {
  const tensor image = noise_image(20, 30, 1);
  tensor out(element_type::u8, {20, 30, 3});
  resize(image, out);
  for (int i = 0; i < 600; ++i)
    for (int c = 0; c < 3; ++c)
      ASSERT_EQ(out.data<std::uint8_t>()[3 * i + c], image.data<std::uint8_t>()[i]);
}

TEST(Resize, WhatDoesNotFitIsNamed) {
  const tensor image = noise_image(20, 30, 3);
  const tensor out(element_type::u8, {10, 10, 3});
  EXPECT_THAT([&] { resize(image, out, {.from = {20, 0, 11, 20}}); },
              ThrowsMessage<error>(HasSubstr("lie inside of the image")));
  EXPECT_THAT([&] { resize(image, tensor(element_type::i32, {10, 10, 3})); },
              ThrowsMessage<error>(HasSubstr("must be u8, f16, bf16 or f32")));
  EXPECT_THAT([&] { resize(image, tensor(element_type::u8, {10, 10, 1})); },
              ThrowsMessage<error>(HasSubstr("as many channels")));
  EXPECT_THAT([&] { resize(tensor(element_type::u8, {20, 30}), out); },
              ThrowsMessage<error>(HasSubstr("u8 [height, width, channels]")));
  for (float wrong : {0.0F, std::nanf(""), HUGE_VALF})
    EXPECT_THAT([&] { resize(image, out, {.stddev = {1, wrong, 1}}); },
                ThrowsMessage<error>(HasSubstr("mean and stddev must be finite, stddev not 0")));
}

}  // namespace lade::media::resize_test
