#include "../../cuda/jpeg_header.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "../support/seed.hpp"
#include "fake_nvjpeg.hpp"
#include "orientations.hpp"

namespace lade::cuda::jpeg_header_test {

static jpeg_header header_of(const std::string& file) {
  return read_jpeg_header(std::as_bytes(std::span(file)));
}
static jpeg_obstacle obstacle_of(const tiny_jpeg& file) { return header_of(file.bytes()).obstacle; }

static std::string adobe(int transform) {
  using namespace std::string_literals;
  return "\xee" + "Adobe\0d\0\0\0\0"s + static_cast<char>(transform);
}

static const std::string jfif("\xe0JFIF\0\x01\x02\0\0\x01\0\x01\0\0", 15);

TEST(JpegHeader, HasTheSizeOfTheImage) {
  for (int marker : {0xc0, 0xc1, 0xc2}) {
    const auto header =
        header_of(tiny_jpeg{.width = 640, .height = 300, .frame_marker = marker}.bytes());
    EXPECT_EQ(header.width, 640);
    EXPECT_EQ(header.height, 300);
    EXPECT_EQ(header.obstacle, jpeg_obstacle::none);
  }
}

// Other decoders skip such a marker, and would read another frame than one that takes what follows
// for a length: the size must be known, since memory is allocated by it.
TEST(JpegHeader, AMarkerWithoutALengthBeforeTheScanIsNotReadOver) {
  for (char marker : {'\x00', '\x01', '\xd0', '\xd7', '\xd8', '\xd9'}) {
    auto file = tiny_jpeg{}.bytes();
    file.insert(2, std::string("\xff") + marker);
    EXPECT_NE(header_of(file).obstacle, jpeg_obstacle::none) << static_cast<int>(marker);
  }
}

TEST(JpegHeader, KnowsTheSubsamplingsOfNvjpeg) {
  for (int sampling : {0x11, 0x21, 0x22, 0x12, 0x41, 0x42})
    EXPECT_EQ(obstacle_of({.sampling = sampling}), jpeg_obstacle::none) << sampling;
  for (int sampling : {0x00, 0x14, 0x24, 0x31, 0x44})
    EXPECT_EQ(obstacle_of({.sampling = sampling}), jpeg_obstacle::kind) << sampling;
  EXPECT_EQ(obstacle_of({.components = 1, .sampling = 0x44}), jpeg_obstacle::none);
}

TEST(JpegHeader, RefusesOtherKinds) {
  EXPECT_EQ(header_of("").obstacle, jpeg_obstacle::kind);
  EXPECT_EQ(header_of("\x89PNG\r\n").obstacle, jpeg_obstacle::kind);
  EXPECT_EQ(obstacle_of({.components = 4}), jpeg_obstacle::kind);
  EXPECT_EQ(obstacle_of({.bits = 12}), jpeg_obstacle::kind);
  EXPECT_EQ(obstacle_of({.width = 0}), jpeg_obstacle::kind);
  EXPECT_EQ(obstacle_of({.height = 0}), jpeg_obstacle::kind);
  for (int marker : {0xc3, 0xc5, 0xc9, 0xca, 0xcf})
    EXPECT_EQ(obstacle_of({.frame_marker = marker}), jpeg_obstacle::kind) << marker;
}

TEST(JpegHeader, FindsColoursAsLibjpegDoes) {
  EXPECT_EQ(obstacle_of({.segments = {adobe(1)}}), jpeg_obstacle::none);
  EXPECT_EQ(obstacle_of({.segments = {adobe(0)}}), jpeg_obstacle::kind);
  EXPECT_EQ(obstacle_of({.segments = {jfif, adobe(0)}}), jpeg_obstacle::none);
  EXPECT_EQ(obstacle_of({.components = 1, .segments = {adobe(0)}}), jpeg_obstacle::none);
  auto named = tiny_jpeg{}.bytes();
  const auto frame = named.find("\xff\xc0");
  for (std::size_t i = 0; i < 3; ++i) named[frame + 10 + 3 * i] = "RGB"[i];
  EXPECT_EQ(header_of(named).obstacle, jpeg_obstacle::kind);
}

TEST(JpegHeader, ReadsTheOrientation) {
  for (bool little : {true, false}) {
    EXPECT_EQ(obstacle_of({.segments = {exif_segment(little, 1)}}), jpeg_obstacle::none);
    EXPECT_EQ(obstacle_of({.segments = {exif_segment(little, 6)}}), jpeg_obstacle::rotation);
    EXPECT_EQ(obstacle_of({.segments = {exif_segment(little, 9)}}), jpeg_obstacle::none);
    EXPECT_EQ(
        obstacle_of({.segments = {exif_segment(little, 1), xmp_segment("tiff:Orientation=\"8\"")}}),
        jpeg_obstacle::none);
  }
  EXPECT_EQ(obstacle_of({.segments = {xmp_segment("<x tiff:Orientation=\"1\"/>")}}),
            jpeg_obstacle::none);
  EXPECT_EQ(obstacle_of({.segments = {xmp_segment("<tiff:Orientation>3</tiff:Orientation>")}}),
            jpeg_obstacle::rotation);
}

// As the module `media` reads it.
TEST(JpegHeader, FindsTheOrientationWhereverItIs) {
  const std::string changed = R"(<x stEvt:changed="/tiff:Orientation /tiff:Make")";
  EXPECT_EQ(obstacle_of({.segments = {xmp_segment(changed + R"( tiff:Orientation="8"/>)")}}),
            jpeg_obstacle::rotation);
  EXPECT_EQ(obstacle_of({.segments = {xmp_segment(changed + R"( tiff:Orientation="1"/>)")}}),
            jpeg_obstacle::none);
  EXPECT_EQ(obstacle_of({.segments = {exif_segment_with_xmp(R"(<x tiff:Orientation="6"/>)")}}),
            jpeg_obstacle::rotation);
  EXPECT_EQ(
      obstacle_of({.segments = {xmp_segment("<x/>"), xmp_segment(R"(<x tiff:Orientation="6"/>)")}}),
      jpeg_obstacle::rotation);
  auto cut = exif_segment(true, 6);
  cut.resize(cut.size() - 2);
  EXPECT_EQ(obstacle_of({.segments = {cut}}), jpeg_obstacle::rotation);
}

TEST(JpegHeader, MissesTheEndOfACutFile) {
  EXPECT_EQ(obstacle_of({.ends = false}), jpeg_obstacle::damage);
  const auto file = tiny_jpeg{.segments = {jfif}}.bytes();
  for (std::size_t bytes = 3; bytes < file.size(); ++bytes)
    EXPECT_NE(header_of(file.substr(0, bytes)).obstacle, jpeg_obstacle::none) << bytes;
  EXPECT_EQ(header_of(file + "bytes behind the end").obstacle, jpeg_obstacle::none);
}

// Each block takes two bits at least, or one in a progressive image.
TEST(JpegHeader, FileThatIsTooShortForItsPixelsIsDamaged) {
  const auto obstacle = [](tiny_jpeg file, std::size_t bytes) {
    file.width = 60;
    file.height = 64;
    file.ends = file.has_pixels = false;
    const auto start = file.bytes();  // and a byte of the pixels
    return header_of(start + std::string(bytes - 1, '\0') + "\xff\xd9").obstacle;
  };
  const std::pair<tiny_jpeg, std::size_t> needed[]{
      {{.components = 1}, 64 * 2 / 8},
      {{.sampling = 0x11}, 64 * 3 * 2 / 8},
      {{.sampling = 0x22}, (64 + 2 * 16) * 2 / 8},
      {{.sampling = 0x41}, (64 + 2 * 16) * 2 / 8},
      {{.frame_marker = 0xc2, .components = 1}, 64 / 8},
      {{.frame_marker = 0xc2, .sampling = 0x22}, (64 + 2 * 16) / 8}};
  for (const auto& [file, bytes] : needed) {
    EXPECT_EQ(obstacle(file, bytes), jpeg_obstacle::none) << bytes;
    EXPECT_EQ(obstacle(file, bytes - 1), jpeg_obstacle::damage) << bytes;
  }
}

TEST(JpegHeader, AllowsAHundredScans) {
  const std::string scan("\xff\xda\0\x02", 4);
  auto file = tiny_jpeg{.frame_marker = 0xc2, .ends = false}.bytes();
  for (int i = 1; i < 100; ++i) file += scan;
  EXPECT_EQ(header_of(file + "\xff\xd9").obstacle, jpeg_obstacle::none);
  EXPECT_EQ(header_of(file + scan + "\xff\xd9").obstacle, jpeg_obstacle::damage);
}

TEST(JpegHeader, SurvivesDamage) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const auto whole =
      tiny_jpeg{.segments = {jfif, exif_segment(true, 3), exif_segment(false, 6), adobe(1)}}
          .bytes();
  for (int round = 0; round < 20'000; ++round) {
    auto file = whole.substr(0, 1 + random() % whole.size());
    for (auto changes = random() % 4; changes > 0; --changes)
      file[random() % file.size()] = static_cast<char>(random());
    (void)header_of(file);
  }
}

}  // namespace lade::cuda::jpeg_header_test
