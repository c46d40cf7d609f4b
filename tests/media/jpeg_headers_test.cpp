#include "../../media/jpeg_headers.hpp"
#include "../../media/jpeg_image.hpp"
#include "jpeg_writer.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

namespace lade::media::jpeg_headers_test {

using header_bytes = std::vector<std::uint8_t>;

static header_bytes small_jpeg(const jpeg_kind& kind = {}) {
  tensor pixels(element_type::u8, {20, 24, kind.from == JCS_GRAYSCALE ? 1 : 3});
  std::memset(pixels.bytes(), 77, pixels.spec().bytes());
  const auto file = write_jpeg(pixels, kind);
  const auto* first = reinterpret_cast<const std::uint8_t*>(file.data());
  return {first, first + file.size()};
}

// Where the first segment of this marker begins.
static std::size_t segment_of(const header_bytes& file, std::uint8_t marker) {
  for (std::size_t i = 0; i + 1 < file.size(); ++i)
    if (file[i] == 0xff && file[i + 1] == marker) return i;
  ADD_FAILURE() << "no such segment";
  return 0;
}

static bool is_taken(const header_bytes& file) {
  return read_jpeg_headers(std::as_bytes(std::span(file))).has_value();
}

// Whether tables can be made of the headers, too.
static bool is_opened(const header_bytes& file) {
  jpeg_table_cache tables;
  jpeg_image image;
  return image.open(std::as_bytes(std::span(file)), tables);
}

// The file with one byte of a segment changed, counted from its marker.
static header_bytes with(header_bytes file, std::uint8_t marker, std::size_t at,
                         std::uint8_t value) {
  file[segment_of(file, marker) + at] = value;
  return file;
}

// The file with bytes before a segment.
static header_bytes with_before(header_bytes file, std::uint8_t marker,
                                std::initializer_list<std::uint8_t> bytes) {
  file.insert(file.begin() + std::ptrdiff_t(segment_of(file, marker)), bytes);
  return file;
}

constexpr std::uint8_t sof = 0xc0, dht = 0xc4, sos = 0xda, dqt = 0xdb, app0 = 0xe0, app14 = 0xee;

TEST(JpegHeaders, SayWhatTheFileHas) {
  const auto file = small_jpeg({.restart_interval = 2});
  const auto headers = read_jpeg_headers(std::as_bytes(std::span(file)));
  ASSERT_TRUE(headers);
  EXPECT_EQ(headers->width, 24);
  EXPECT_EQ(headers->height, 20);
  EXPECT_EQ(headers->count, 3);
  EXPECT_EQ(headers->across, 2);
  EXPECT_EQ(headers->down, 2);
  EXPECT_EQ(headers->restart_interval, 2);
  EXPECT_FALSE(headers->rgb);
  EXPECT_TRUE(is_opened(file));
}

TEST(JpegHeaders, OtherProcessesAreRefused) {
  EXPECT_FALSE(is_taken(small_jpeg({.progressive = true})));
  for (const int marker : {0xc2, 0xc3, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcb})
    EXPECT_FALSE(is_taken(with(small_jpeg(), sof, 1, static_cast<std::uint8_t>(marker)))) << marker;
  EXPECT_TRUE(is_taken(with(small_jpeg(), sof, 1, 0xc1)));
}

TEST(JpegHeaders, TwelveBitsAreRefused) { EXPECT_FALSE(is_taken(with(small_jpeg(), sof, 4, 12))); }

TEST(JpegHeaders, SeveralScansAreRefused) {
  EXPECT_FALSE(is_taken(small_jpeg({.separate_scans = true})));
}

TEST(JpegHeaders, SizesOfNothingOrTooMuchAreRefused) {
  for (const auto at : {std::size_t{5}, std::size_t{7}}) {
    EXPECT_FALSE(is_taken(with(with(small_jpeg(), sof, at, 0), sof, at + 1, 0)));
    EXPECT_FALSE(is_taken(with(with(small_jpeg(), sof, at, 0xff), sof, at + 1, 0xdd)));
    EXPECT_TRUE(is_taken(with(with(small_jpeg(), sof, at, 0xff), sof, at + 1, 0xdc)));
  }
}

TEST(JpegHeaders, OnlyUsualSamplingsAreTaken) {
  for (int factors = 0; factors < 256; ++factors) {
    const bool usual =
        factors == 0x11 || factors == 0x12 || factors == 0x21 || factors == 0x22 || factors == 0x41;
    EXPECT_EQ(is_taken(with(small_jpeg(), sof, 11, static_cast<std::uint8_t>(factors))), usual)
        << factors;
  }
}

TEST(JpegHeaders, FourComponentsAreRefused) {
  EXPECT_FALSE(is_taken(with(small_jpeg(), sof, 9, 4)));
}

TEST(JpegHeaders, ComponentsOfOneNameAreRefused) {
  EXPECT_FALSE(is_taken(with(with(small_jpeg(), sof, 13, 1), sos, 7, 1)));
}

TEST(JpegHeaders, QuantisationOf16BitsIsRefused) {
  EXPECT_FALSE(is_taken(with(small_jpeg(), dqt, 4, 0x10)));
}

TEST(JpegHeaders, ACodeOfOnesAloneIsRefused) {
  EXPECT_FALSE(is_opened(with(with(small_jpeg(), dht, 5, 2), dht, 7, 0)));
}

TEST(JpegHeaders, PartsOfTheSpectrumAreRefused) {
  EXPECT_FALSE(is_taken(with(small_jpeg(), sos, 11, 1)));
  EXPECT_FALSE(is_taken(with(small_jpeg(), sos, 12, 62)));
  EXPECT_FALSE(is_taken(with(small_jpeg(), sos, 13, 1)));
}

TEST(JpegHeaders, RestartIntervalsOfAnotherLengthAreRefused) {
  EXPECT_TRUE(is_taken(with_before(small_jpeg(), sos, {0xff, 0xdd, 0, 4, 0, 1})));
  EXPECT_FALSE(is_taken(with_before(small_jpeg(), sos, {0xff, 0xdd, 0, 3, 1})));
  EXPECT_FALSE(is_taken(with_before(small_jpeg(), sos, {0xff, 0xdd, 0, 5, 0, 1, 0})));
}

TEST(JpegHeaders, SegmentsPastTheEndAreRefused) {
  EXPECT_FALSE(is_taken(with(small_jpeg(), app0, 2, 0xff)));
}

TEST(JpegHeaders, ASecondFrameIsRefused) {
  const auto file = small_jpeg();
  const auto at = file.begin() + std::ptrdiff_t(segment_of(file, sof));
  auto twice = file;
  twice.insert(twice.begin() + (at - file.begin()), at, at + 19);
  EXPECT_FALSE(is_taken(twice));
}

TEST(JpegHeaders, UnknownMarkersAndFillBytesAreRefused) {
  EXPECT_FALSE(is_taken(with_before(small_jpeg(), sof, {0xff, 0xf0, 0, 2})));
  EXPECT_FALSE(is_taken(with_before(small_jpeg(), sof, {0xff})));
  EXPECT_TRUE(is_taken(with_before(small_jpeg(), sof, {0xff, 0xfe, 0, 3, 'a'})));
}

TEST(JpegHeaders, AnotherVersionOfJfifIsRefused) {
  EXPECT_FALSE(is_taken(with(small_jpeg(), app0, 9, 2)));
}

TEST(JpegHeaders, AdobeSaysWhetherColoursAreRgb) {
  const auto file = small_jpeg({.as = JCS_RGB});
  const auto headers = read_jpeg_headers(std::as_bytes(std::span(file)));
  ASSERT_TRUE(headers);
  EXPECT_TRUE(headers->rgb);
  EXPECT_FALSE(is_taken(with(file, app14, 15, 2)));
}

TEST(JpegHeaders, SayHowLongAScanMayBe) {
  auto file = small_jpeg({.restart_interval = 1});
  const auto headers = read_jpeg_headers(std::as_bytes(std::span(file)));
  ASSERT_TRUE(headers);
  EXPECT_EQ(headers->columns(), 2);
  EXPECT_EQ(headers->rows(), 2);
  EXPECT_EQ(headers->restarts(), 3U);
  EXPECT_EQ(headers->most_scan_bytes(), 512U * 4 * 6 + 4 * 4);
  file.insert(file.end(), 100'000, 0);
  EXPECT_TRUE(is_opened(file));
  file.insert(file.begin() + std::ptrdiff_t(headers->scan), headers->most_scan_bytes(), 0);
  EXPECT_FALSE(is_opened(file)) << "the end is where that of no scan can be";
}

TEST(JpegHeaders, FilesCutAnywhereAreRefused) {
  const auto file = small_jpeg({.restart_interval = 1});
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(is_opened({file.begin(), file.begin() + std::ptrdiff_t(size)})) << size;
}

}  // namespace lade::media::jpeg_headers_test
