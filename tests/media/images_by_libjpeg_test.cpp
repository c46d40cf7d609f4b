// The tests of images, in a program whose parser of headers takes no JPEG: libjpeg-turbo decodes
// all.

#include "../../media/jpeg_headers.hpp"
#include "jpeg_writer.hpp"

#include <lade/media/image.hpp>

#include <gtest/gtest.h>

#include <cstring>

namespace lade::media {

std::optional<jpeg_headers> read_jpeg_headers(std::span<const std::byte>) { return std::nullopt; }
unsigned jpeg_headers::restarts() const noexcept { return 0; }
std::size_t jpeg_headers::most_scan_bytes() const noexcept { return 0; }

TEST(ImagesByLibjpeg, AreAllJpegsOfThisProgram) {
  tensor pixels(element_type::u8, {30, 40, 3});
  std::memset(pixels.bytes(), 99, pixels.spec().bytes());
  const decode_image decode;
  decode(sample("a.jpg").with_data(write_jpeg(pixels)));
  EXPECT_EQ(decode.jpegs_by_libjpeg(), 1U);
}

}  // namespace lade::media
