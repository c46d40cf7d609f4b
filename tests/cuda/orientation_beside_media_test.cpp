// Which images are rotated, as the choice of a decoder and the module `media` read it: what one
// rotates, the other must not leave to a GPU.
#include "../../cuda/jpeg_header.hpp"
#include "../../media/exif.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "../support/seed.hpp"
#include "fake_nvjpeg.hpp"
#include "orientations.hpp"

namespace lade::cuda {

static void expect_agreement(const std::string& file) {
  const auto bytes = std::as_bytes(std::span(file));
  const auto obstacle = read_jpeg_header(bytes).obstacle;
  if (obstacle != jpeg_obstacle::none && obstacle != jpeg_obstacle::rotation) return;
  EXPECT_EQ(media::exif_orientation(bytes) != 1, obstacle == jpeg_obstacle::rotation);
}

static std::vector<std::vector<std::string>> groups_of_segments() {
  return {{exif_segment(true, 6)},
          {exif_segment(false, 8)},
          {exif_segment(true, 0), xmp_segment("<x tiff:Orientation=\"6\"/>")},
          {xmp_segment("<x c=\"tiff:Orientation;8F\" tiff:Orientation=\"1\"/>"),
           xmp_segment("<y tiff:Orientation=\"3\">")},
          {exif_segment_with_xmp("<x tiff:Orientation=\"6\"/>")}};
}

TEST(OrientationBesideMedia, IsTheSameForEveryMutation) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (const auto& segments : groups_of_segments()) {
    const auto whole = tiny_jpeg{.segments = segments}.bytes();
    expect_agreement(whole);
    for (int round = 0; round < 40'000 && !testing::Test::HasFailure(); ++round) {
      auto file = whole;
      for (auto changes = 1 + random() % 3; changes > 0; --changes)
        file[4 + random() % (file.size() - 6)] =
            static_cast<char>(random() % 4 == 0 ? random() : random() % 16);
      expect_agreement(file);
    }
  }
}

// The length of the segment is that of what is left.
TEST(OrientationBesideMedia, IsTheSameWhereSegmentsAreCut) {
  for (const auto& segments : groups_of_segments())
    for (std::size_t bytes = 1; bytes <= segments.back().size(); ++bytes) {
      auto cut = segments;
      cut.back().resize(bytes);
      expect_agreement(tiny_jpeg{.segments = cut}.bytes());
    }
}

}  // namespace lade::cuda
