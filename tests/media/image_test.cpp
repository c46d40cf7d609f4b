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

static sample load(const std::filesystem::path& path) {
  buffer data(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(data.size()));
  return sample(path.filename()).with_data(data);
}

// The largest difference between two u8 tensors; 256 when their shapes differ.
static int difference(const tensor& a, const tensor& b) {
  if (a.spec() != b.spec()) return 256;
  int largest = 0;
  for (std::size_t i = 0; i < a.spec().elements(); ++i)
    largest = std::max(largest, std::abs(a.data<std::uint8_t>()[i] - b.data<std::uint8_t>()[i]));
  return largest;
}

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
