#include "pillow.hpp"

#include <lade/error.hpp>
#include <lade/media/image.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(Image, CentreCropIsThatOfTorchvision) {
  if (!have_pillow()) GTEST_SKIP() << "python3-pil is not installed";
  const decode_image decode({.width = 224, .height = 224, .fit = image_fit::centre_crop});
  for (const auto& photo : photos())
    EXPECT_LE(
        difference(decode(load(photo)), pillow("centre_crop", photo.string(), "256", "224")[0]), 1)
        << photo;
}

}  // namespace lade::media
