#include "pillow.hpp"

#include <lade/error.hpp>
#include <lade/media/image.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

namespace lade::media {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Image, SpecIsTheShapeOfTheResult) {
  EXPECT_EQ(decode_image({.width = 320, .height = 224}).spec(),
            (tensor_spec{element_type::u8, {224, 320, 3}}));
}

TEST(Image, PhotosAreThoseOfPillow) {
  if (!have_pillow()) GTEST_SKIP() << "python3-pil is not installed";
  for (const auto& photo : photos())
    EXPECT_EQ(difference(decode_image()(load(photo)), pillow("decode RGB", photo.string())[0]), 0)
        << photo;
}

// The peak signal to noise ratio of two u8 tensors, in dB.
static double psnr(const tensor& a, const tensor& b) {
  double sum = 0;
  const auto count = a.spec().elements();
  for (std::size_t i = 0; i < count; ++i) {
    const double error = a.data<std::uint8_t>()[i] - b.data<std::uint8_t>()[i];
    sum += error * error;
  }
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(count) / sum);
}

TEST(Image, FastDiffersByNoiseOnly) {
  for (int size : {350, 224, 112, 64}) {
    const image_options exact{.width = size, .height = size, .fit = image_fit::centre_crop};
    image_options fast = exact;
    fast.fast = true;
    for (const auto& photo : photos())
      EXPECT_GE(psnr(decode_image(exact)(load(photo)), decode_image(fast)(load(photo))), 45)
          << photo << " at " << size;
  }
}

TEST(Image, CentreCropIsThatOfTorchvision) {
  if (!have_pillow()) GTEST_SKIP() << "python3-pil is not installed";
  const decode_image decode({.width = 224, .height = 224, .fit = image_fit::centre_crop});
  for (const auto& photo : photos())
    EXPECT_LE(
        difference(decode(load(photo)), pillow("centre_crop", photo.string(), "256", "224")[0]), 1)
        << photo;
}

}  // namespace lade::media
