// Whole files in every way of decoding, beside libjpeg-turbo: files that are made, or those of the
// folder LADE_JPEG_FOLDER, by whichever writer.

#include "../../media/jpeg_image.hpp"
#include "../../media/quick_jpeg.hpp"
#include "../support/seed.hpp"
#include "jpeg_maker.hpp"
#include "jpeg_oracle.hpp"

#include <lade/media/image.hpp>
#include <lade/random.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace lade::media::jpeg_files_test {

class jpeg_source {
 public:
  explicit jpeg_source(jpeg_maker& make) : make_(make) {
    const auto* folder = std::getenv("LADE_JPEG_FOLDER");
    if (folder == nullptr) return;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.is_regular_file()) paths_.push_back(entry.path());
    std::ranges::sort(paths_);
    made_ = false;
  }

  int count() const { return made_ ? jpeg_files() : static_cast<int>(paths_.size()); }
  std::string name(int i) const {
    return made_ ? "file " + std::to_string(i) : paths_[std::size_t(i)].string();
  }
  jpeg_bytes file(int i) {
    if (made_) return make_.file();
    std::ifstream in(paths_[std::size_t(i)], std::ios::binary);
    jpeg_bytes bytes(std::filesystem::file_size(paths_[std::size_t(i)]));
    in.read(reinterpret_cast<char*>(bytes.data()), std::streamsize(bytes.size()));
    return bytes;
  }

 private:
  jpeg_maker& make_;
  bool made_ = true;
  std::vector<std::filesystem::path> paths_;
};

// A file as libjpeg-turbo decodes it. What it does not decode without a warning is empty.
struct libjpeg_image {
  explicit libjpeg_image(const jpeg_bytes& file) {
    for (std::size_t i = 0; i < planes.size(); ++i)
      if (!read_libjpeg_planes(file, planes[i], 1 << i)) planes[i] = {};
    if (!read_libjpeg_rows(file, all_rows, JCS_RGB, rgb)) rgb.clear();
    if (!read_libjpeg_rows(file, all_rows, JCS_GRAYSCALE, grey)) grey.clear();
  }

  std::array<libjpeg_planes, 4> planes;  // at 1, 1/2, 1/4 and 1/8 of the size
  std::vector<std::uint8_t> rgb;
  std::vector<std::uint8_t> grey;
};

// How many images lade's own decoder has decoded itself, in each way.
struct jpeg_ways {
  int planes = 0;
  int reduced = 0;  // of three for each file
  int colours = 0;
  int cropped = 0;
  int grey = 0;
};

// Decodes a file at one level. Whatever the own decoder takes must be libjpeg's.
class jpeg_comparison {
 public:
  jpeg_comparison(simd level, jpeg_table_cache& tables, jpeg_ways& taken)
      : level_(level), tables_(tables), taken_(taken) {}

  void planes(const jpeg_bytes& file, const libjpeg_image& libjpeg) {
    for (std::size_t i = 0; i < libjpeg.planes.size(); ++i) {
      jpeg_image image(level_);
      if (!image.open(file, tables_)) return;
      image.reduce(1 << i);
      const int right = image.plane_width(0), bottom = image.plane_height(0);
      image.begin({.right = right, .bottom = bottom}, all_rows);
      if (!image.decode(bottom - 1, nullptr)) return;
      ASSERT_FALSE(libjpeg.planes[i][0].samples.empty()) << "libjpeg warns";
      ASSERT_TRUE(has_planes_of(image, libjpeg.planes[i])) << "at 1 / " << (1 << i);
      ++(i == 0 ? taken_.planes : taken_.reduced);
    }
  }

  static image_file opened(const jpeg_bytes& file) {
    return {.bytes = file, .doing = "decode", .max_pixels = 1 << 28};
  }

  // Meanwhile another file is decoded, if the own decoder takes it.
  void colours(const jpeg_bytes& file, const libjpeg_image& libjpeg, const jpeg_part& part,
               const jpeg_bytes& other, int& count) {
    quick_jpeg jpeg(level_), partner(level_);
    if (!jpeg.open(opened(file), tables_) || jpeg.is_grey()) return;
    if (partner.open(opened(other), tables_)) {
      partner.begin({.right = partner.width(), .bottom = partner.height()}, all_rows);
      jpeg.interleave_with([&] { return &partner; });
    }
    jpeg.begin(part, all_rows);
    jpeg.start_colours(3);
    try {
      for (int y = part.top; y < part.bottom; ++y) compare_row(jpeg, libjpeg, part, y);
      ++count;
    } catch (const needs_libjpeg&) {}
  }

  void grey(const jpeg_bytes& file, const libjpeg_image& libjpeg, const jpeg_part& part) {
    quick_jpeg jpeg(level_);
    if (!jpeg.open(opened(file), tables_) || jpeg.is_rgb()) return;
    jpeg.begin(part, 3);
    try {
      for (int y = part.top; y < part.bottom; ++y) {
        const auto* row = jpeg.component_row(0, y);
        ASSERT_FALSE(libjpeg.grey.empty()) << "libjpeg warns";
        const auto* wanted = libjpeg.grey.data() + std::size_t(y) * std::size_t(jpeg.width());
        ASSERT_TRUE(std::equal(row + part.left, row + part.right, wanted + part.left))
            << "grey row " << y;
      }
      ++taken_.grey;
    } catch (const needs_libjpeg&) {}
  }

 private:
  static void compare_row(quick_jpeg& jpeg, const libjpeg_image& libjpeg, const jpeg_part& part,
                          int y) {
    for (std::size_t c = 0; c < 3; ++c) {
      const auto* row = jpeg.colour_row(c, y);
      ASSERT_FALSE(libjpeg.rgb.empty()) << "libjpeg warns";
      const auto* wanted = libjpeg.rgb.data() + std::size_t(y) * std::size_t(jpeg.width()) * 3 + c;
      for (int x = part.left; x < part.right; ++x)
        ASSERT_EQ(row[x - part.left], wanted[x * 3])
            << "row " << y << ", column " << x << ", colour " << c;
    }
  }

  simd level_;
  jpeg_table_cache& tables_;
  jpeg_ways& taken_;
};

class JpegFiles : public testing::Test {
 protected:
  JpegFiles() : seed(test::new_seed()), make(seed), source(make), trace(__FILE__, __LINE__, seed) {}

  std::uint64_t seed;
  jpeg_maker make;
  jpeg_source source;
  testing::ScopedTrace trace;
};

static void print_ways(simd level, int files, const jpeg_ways& taken) {
  constexpr const char* names[] = {"plain", "AVX2", "AVX-512"};
  std::printf(
      "%s, of %d files, decoded by lade itself: planes %d, reduced %d of %d, colours %d, "
      "cropped %d, grey %d\n",
      names[std::size_t(level)], files, taken.planes, taken.reduced, 3 * files, taken.colours,
      taken.cropped, taken.grey);
}

// Most files must be taken: else nothing has been compared.
TEST_F(JpegFiles, AreInFullAndCroppedAndReducedAndGreyThoseOfLibjpegAtEveryLevel) {
  const auto levels = levels_here();
  std::vector<jpeg_ways> taken(levels.size());
  jpeg_table_cache tables;
  jpeg_bytes other;
  for (int i = 0; i < source.count(); ++i) {
    SCOPED_TRACE(source.name(i));
    const auto file = source.file(i);
    const auto headers = read_jpeg_headers(file);
    if (!headers) continue;
    const libjpeg_image libjpeg(file);
    const jpeg_part whole{.right = headers->width, .bottom = headers->height};
    const auto part = make.part(headers->width, headers->height);
    for (std::size_t k = 0; k < levels.size(); ++k) {
      SCOPED_TRACE(k);
      jpeg_comparison compare(levels[k], tables, taken[k]);
      compare.planes(file, libjpeg);
      compare.colours(file, libjpeg, whole, other, taken[k].colours);
      compare.colours(file, libjpeg, part, other, taken[k].cropped);
      compare.grey(file, libjpeg, part);
      ASSERT_FALSE(HasFailure());
    }
    other = file;
  }
  for (std::size_t k = 0; k < levels.size(); ++k) {
    print_ways(levels[k], source.count(), taken[k]);
    EXPECT_GT(taken[k].planes, source.count() / 2);
    EXPECT_GT(taken[k].reduced, 2 * taken[k].planes);
    for (auto way : {taken[k].colours, taken[k].cropped, taken[k].grey})
      EXPECT_GT(way, taken[k].planes / 2);
  }
}

static tensor decoded(const jpeg_bytes& file, const std::string& name,
                      const image_options& options) {
  buffer data(file.size());
  std::memcpy(data.data(), file.data(), file.size());
  return decode_image(options)(sample(name).with_data(std::move(data)), random(1));
}

// The same file with bytes between its segments, which libjpeg skips and lade's own decoder
// refuses.
static jpeg_bytes for_libjpeg_alone(jpeg_bytes file) {
  file.insert(file.begin() + 2, {std::byte{0xff}, std::byte{0xff}});
  return file;
}

TEST_F(JpegFiles, BecomeTheSameImagesWhereLadesOwnDecoderRefusesThem) {
  constexpr image_options ways[] = {
      {},
      {.colour = image_colour::grey},
      {.width = 30, .height = 20},
      {.width = 30, .height = 20, .fit = image_fit::random_crop, .layout = image_layout::chw},
      {.width = 50, .height = 50, .fit = image_fit::centre_crop, .colour = image_colour::bgr},
      {.width = 90, .height = 80, .fast = true},
      {.width = 30, .height = 20, .fit = image_fit::centre_crop, .fast = true},
      {.width = 9, .height = 7, .fit = image_fit::random_crop, .fast = true}};
  for (int i = 0; i < source.count(); ++i) {
    const auto name = source.name(i);
    SCOPED_TRACE(name);
    const auto file = source.file(i);
    const auto refused = for_libjpeg_alone(file);
    ASSERT_FALSE(read_jpeg_headers(refused));
    for (const auto& options : ways) {
      const auto own = decoded(file, name, options), libjpegs = decoded(refused, name, options);
      ASSERT_EQ(own.spec(), libjpegs.spec());
      ASSERT_EQ(std::memcmp(own.bytes(), libjpegs.bytes(), own.spec().bytes()), 0)
          << "way " << &options - ways;
    }
  }
}

}  // namespace lade::media::jpeg_files_test
