// JPEGs that lade decodes itself, against the same files as libjpeg-turbo decodes them.

#include "../support/seed.hpp"
#include "jpeg_writer.hpp"

#include <lade/error.hpp>
#include <lade/media/image.hpp>
#include <lade/media/resize.hpp>
#include <lade/random.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace lade::media {

// Soft shapes and noise.
static tensor pixels_of(random& draw, std::int64_t height, std::int64_t width, int channels) {
  tensor small(element_type::u8, {5, 7, channels});
  for (std::size_t i = 0; i < small.spec().bytes(); ++i)
    small.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(draw.below(256));
  tensor pixels(element_type::u8, {height, width, channels});
  resize(small, pixels);
  for (std::size_t i = 0; i < pixels.spec().bytes(); i += 1 + draw.below(16))
    pixels.data<std::uint8_t>()[i] ^= static_cast<std::uint8_t>(draw.below(32));
  return pixels;
}

static jpeg_kind any_kind(random& draw, int channels) {
  constexpr int samplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}};
  const auto& sampling = samplings[draw.below(5)];
  return {.quality = 1 + static_cast<int>(draw.below(100)),
          .sampling_x = sampling[0],
          .sampling_y = sampling[1],
          .restart_rows = static_cast<unsigned>(draw.below(3)),
          .optimised = draw.below(2) == 0,
          .from = channels == 1 ? JCS_GRAYSCALE : JCS_RGB,
          .as = channels == 1        ? JCS_GRAYSCALE
                : draw.below(8) == 0 ? JCS_RGB
                                     : JCS_YCbCr};
}

// A byte that fills up before the first marker means nothing. lade leaves such files to
// libjpeg-turbo.
static buffer for_libjpeg(const buffer& file) {
  buffer filled(file.size() + 1);
  std::memcpy(filled.data(), file.data(), 2);
  filled.data()[2] = std::byte{0xff};
  std::memcpy(filled.data() + 3, file.data() + 2, file.size() - 2);
  return filled;
}

static image_options any_options(random& draw) {
  const std::uint64_t most = draw.below(3) == 0 ? 12 : 120;
  const auto size = [&] { return 1 + static_cast<int>(draw.below(most)); };
  image_options options{.width = size(), .height = size()};
  options.fit = static_cast<image_fit>(draw.below(3));
  if (draw.below(4) == 0) options = {};
  options.colour = static_cast<image_colour>(draw.below(3));
  options.fast = draw.below(2) == 0;
  return options;
}

TEST(QuickJpeg, MakesThePixelsOfLibjpegTurboInEveryWayOfDecoding) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  for (int round = 0; round < 400; ++round) {
    const auto most = draw.below(4) == 0 ? 900 : 200;
    const auto height = 1 + static_cast<std::int64_t>(draw.below(std::uint64_t(most)));
    const auto width = 1 + static_cast<std::int64_t>(draw.below(std::uint64_t(most)));
    const int channels = draw.below(4) == 0 ? 1 : 3;
    const auto kind = any_kind(draw, channels);
    const auto file = write_jpeg(pixels_of(draw, height, width, channels), kind);
    const auto options = any_options(draw);
    const decode_image decode(options);
    const random crop(draw());
    const auto ours = decode(sample("a.jpg").with_data(file), crop);
    const auto theirs = decode(sample("b.jpg").with_data(for_libjpeg(file)), crop);
    ASSERT_EQ(ours.spec(), theirs.spec());
    EXPECT_EQ(std::memcmp(ours.bytes(), theirs.bytes(), ours.spec().bytes()), 0)
        << round << ": " << width << " x " << height << ", sampling " << kind.sampling_x
        << kind.sampling_y << ", quality " << kind.quality << ", channels " << channels << ", as "
        << kind.as << ", to " << options.width << " x " << options.height << ", fit "
        << int(options.fit) << ", colour " << int(options.colour) << ", fast " << options.fast;
  }
}

// Whatever libjpeg makes of damaged data, is the result.
TEST(QuickJpeg, LeavesDamagedImagesToLibjpegTurboHoweverLargeTheyAre) {
  random draw(1);
  for (const std::int64_t side : {40, 1500}) {
    auto file = write_jpeg(pixels_of(draw, side, side, 3));
    for (std::size_t at = file.size() - 200; at < file.size() - 100; ++at)
      file.data()[at] = std::byte{0x55};
    const decode_image decode({.strict = false}), strict;
    const auto ours = decode(sample("a.jpg").with_data(file));
    const auto theirs = decode(sample("b.jpg").with_data(for_libjpeg(file)));
    EXPECT_EQ(std::memcmp(ours.bytes(), theirs.bytes(), ours.spec().bytes()), 0) << side;
    EXPECT_THROW(strict(sample("a.jpg").with_data(file)), error) << side;
  }
}

}  // namespace lade::media
