#include "images.hpp"
#include "png_writer.hpp"

#include <lade/error.hpp>
#include <lade/media/image.hpp>
#include <lade/media/png.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace lade::media::png_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

static tensor stripes(std::int64_t height, std::int64_t width, std::int64_t channels) {
  tensor image(element_type::u8, {height, width, channels});
  for (std::size_t i = 0; i < image.spec().elements(); ++i)
    image.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 7 % 251);
  return image;
}

static sample png_sample(buffer file) { return sample(std::string("x")).with_data(file); }

TEST(Png, DecodesToTheSamePixels) {
  const tensor colour = stripes(17, 23, 3);
  EXPECT_EQ(difference(decode_image()(png_sample(encode_png(colour))), colour), 0);
  const tensor grey = stripes(1, 99, 1);
  const decode_image decode({.colour = image_colour::grey});
  EXPECT_EQ(difference(decode(png_sample(encode_png(grey))), grey), 0);
}

// Rows of bits end within a byte, whose other bits no decoder writes.
TEST(Png, InterlacedBitsOfEveryShapeAreDecoded) {
  const decode_image decode({.colour = image_colour::grey});
  for (int height : {1, 2, 3})
    for (int width = 1; width <= 9; ++width)
      for (unsigned bits = 0; bits < 1U << std::min(width, 8); ++bits) {
        std::vector<std::uint32_t> samples;
        for (int i = 0; i < width * height; ++i)
          samples.push_back(bits << (8 - std::min(width, 8)) >> (7 - i % width % 8) & 1);
        const auto file = write_png(samples, width, height, {.bits = 1, .interlaced = true});
        const tensor pixels = decode(png_sample(file));
        for (std::size_t i = 0; i < samples.size(); ++i)
          ASSERT_EQ(pixels.data<std::uint8_t>()[i], samples[i] * 255)
              << width << " x " << height << ", bits " << bits;
      }
}

TEST(Png, PlanesAreEncodedThroughTheirStrides) {
  const tensor planes = stripes(3, 5, 7);  // [channels, height, width]
  const tensor pixels({element_type::u8, {5, 7, 3}}, {7, 1, 35}, planes.memory(), planes.bytes());
  const tensor decoded = decode_image()(png_sample(encode_png(pixels)));
  for (int y = 0; y < 5; ++y)
    for (int x = 0; x < 7; ++x)
      for (int c = 0; c < 3; ++c) ASSERT_EQ(decoded[y][x].bytes()[c], planes[c][y].bytes()[x]);
}

TEST(Png, OtherTensorsAreRefused) {
  EXPECT_THAT([] { encode_png(stripes(4, 4, 2)); },
              ThrowsMessage<error>(HasSubstr("encode png of u8[4, 4, 2]")));
  EXPECT_THROW(encode_png(tensor(element_type::f32, {4, 4, 3})), error);
  EXPECT_THROW(encode_png(tensor(element_type::u8, {4, 4})), error);
  EXPECT_THROW(encode_png(tensor(element_type::u8, {0, 4, 3})), error);
}

}  // namespace lade::media::png_test
