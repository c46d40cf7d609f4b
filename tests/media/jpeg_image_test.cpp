#include "../../media/jpeg_image.hpp"
#include "../../media/jpeg_reader.hpp"
#include "../../media/quick_jpeg.hpp"
#include "../support/seed.hpp"
#include "jpeg_maker.hpp"
#include "jpeg_oracle.hpp"

#include <lade/media/image.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace lade::media::jpeg_image_test {

class JpegImage : public testing::Test {
 protected:
  JpegImage() : seed(test::new_seed()), make(seed), trace(__FILE__, __LINE__, seed) {}

  std::uint64_t seed;
  jpeg_maker make;
  testing::ScopedTrace trace;
  jpeg_table_cache tables;
};

TEST_F(JpegImage, PlanesAreThoseOfLibjpegAtEveryLevel) {
  int taken = 0;
  for (int i = 0; i < jpeg_files(); ++i) {
    const auto file = make.file();
    libjpeg_planes planes;
    ASSERT_TRUE(read_libjpeg_planes(file, planes));
    for (const auto level : levels_here()) {
      jpeg_image image(level);
      ASSERT_TRUE(image.open(file, tables)) << i;
      image.begin(whole_of(image), all_rows);
      if (!image.decode(image.headers().height - 1, nullptr)) continue;
      ++taken;
      ASSERT_TRUE(has_planes_of(image, planes)) << i;
    }
  }
  EXPECT_GT(taken, jpeg_files() * int(levels_here().size()) * 9 / 10);
}

TEST_F(JpegImage, ReducedPlanesAreThoseOfLibjpegAtEveryLevel) {
  int taken = 0;
  for (int i = 0; i < jpeg_files() / 2; ++i) {
    const auto file = make.file();
    const image_file opened{.bytes = file, .doing = "decode", .max_pixels = 1 << 20};
    const int reduction = 2 << make.below(3);
    const auto levels = levels_here();
    jpeg_image image(levels[std::size_t(i) % levels.size()]);
    ASSERT_TRUE(image.open(file, tables));
    jpeg_reader reader;
    reader.open(opened);
    if (!reader.has_planes()) continue;
    reader.start_planes(reduction);
    image.reduce(reduction);
    const int width = image.plane_width(0), height = image.plane_height(0);
    image.begin({.right = width, .bottom = height}, all_rows);
    if (!image.decode(height - 1, nullptr)) continue;
    ++taken;
    for (std::size_t c = 0; c < 3; ++c) {
      ASSERT_EQ(image.plane_width(c), reader.plane(c).x.size);
      ASSERT_EQ(image.plane_height(c), reader.plane(c).y.size);
      for (int y = 0; y < image.plane_height(c); ++y)
        ASSERT_EQ(std::memcmp(image.plane_row(c, y), reader.plane_row(c, y),
                              std::size_t(image.plane_width(c))),
                  0)
            << "file " << i << ", component " << c << ", row " << y;
    }
  }
  EXPECT_GT(taken, jpeg_files() / 8);
}

// Both may finish first, and either may be damaged.
TEST_F(JpegImage, TwoImagesDoNotDisturbEachOther) {
  for (int i = 0; i < jpeg_files(); ++i) {
    std::array<jpeg_bytes, 2> files{make.file(), make.file()};
    std::array<libjpeg_planes, 2> planes;
    for (std::size_t k = 0; k < 2; ++k) ASSERT_TRUE(read_libjpeg_planes(files[k], planes[k]));
    const bool damaged = make.one_in(3);
    if (damaged) {
      auto& bytes = files[1];
      const auto headers = read_jpeg_headers(bytes);
      ASSERT_TRUE(headers);
      const auto length = int(bytes.size() - headers->scan) - 2;
      bytes[headers->scan + std::size_t(make.below(length))] ^= std::byte(1 << make.below(8));
    }
    const auto levels = levels_here();
    std::array<jpeg_image, 2> images{jpeg_image(levels[std::size_t(i) % levels.size()]),
                                     jpeg_image(levels[std::size_t(i) % levels.size()])};
    ASSERT_TRUE(images[0].open(files[0], tables));
    images[0].begin(whole_of(images[0]), all_rows);
    const bool opened = images[1].open(files[1], tables);
    ASSERT_TRUE(opened || damaged);
    if (opened) images[1].begin(whole_of(images[1]), all_rows);
    for (std::size_t k = 0; k < 2; ++k) {
      if (k == 1 && !opened) continue;
      if (!images[k].decode(images[k].headers().height - 1, &images[1 - k])) continue;
      if (k == 1 && damaged && !read_libjpeg_planes(files[1], planes[1])) FAIL() << i;
      ASSERT_TRUE(has_planes_of(images[k], planes[k])) << i;
    }
  }
}

// A lookup of the one is followed by one of the other, so that they are as far.
TEST_F(JpegImage, ASecondImageIsDecodedAsFarAsTheFirst) {
  for (const auto level : levels_here()) {
    const auto file = make.file(300, 200, {}), small_file = make.file(60, 200, {.quality = 5});
    jpeg_image first(level), same(level), small(level);
    ASSERT_TRUE(first.open(file, tables));
    ASSERT_TRUE(same.open(file, tables));
    ASSERT_TRUE(small.open(small_file, tables));
    first.begin(whole_of(first), all_rows);
    same.begin(whole_of(same), all_rows);
    small.begin(whole_of(small), all_rows);
    for (const int row : {60, 130}) {
      ASSERT_FALSE(same.has_row(row));
      ASSERT_TRUE(first.decode(row, &same));
      EXPECT_TRUE(same.has_row(row - 32)) << "two rows of MCUs above " << row;
      EXPECT_FALSE(same.has_row(row + 32));
    }
    ASSERT_TRUE(first.decode(199, &small));
    EXPECT_TRUE(small.is_complete());
  }
}

TEST_F(JpegImage, ASecondImageIsDecodedToTheEndOfItsPart) {
  const auto file = make.file(300, 200, {});
  jpeg_image first, upper;
  ASSERT_TRUE(first.open(file, tables));
  ASSERT_TRUE(upper.open(file, tables));
  first.begin(whole_of(first), all_rows);
  upper.begin({.right = 300, .bottom = 60}, all_rows);
  ASSERT_TRUE(first.decode(130, &upper));
  EXPECT_TRUE(upper.is_complete());
  EXPECT_FALSE(first.is_complete());
}

// White but for a grey part, and so quantised that no transform takes the means of white.
static jpeg_bytes with_refused_part(jpeg_maker& make, const jpeg_part& grey) {
  constexpr int side = 256;
  tensor pixels(element_type::u8, {side, side, 1});
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x) {
      const bool is_grey = grey.left <= x && x < grey.right && grey.top <= y && y < grey.bottom;
      const int white = make.one_in(2) ? 255 : 254;
      pixels.data<std::uint8_t>()[y * side + x] = static_cast<std::uint8_t>(is_grey ? 128 : white);
    }
  const auto written =
      write_jpeg(pixels, {.quality = 100, .from = JCS_GRAYSCALE, .as = JCS_GRAYSCALE});
  jpeg_bytes file(written.data(), written.data() + written.size());
  for (std::size_t i = 0; i + 69 < file.size(); ++i)
    if (file[i] == std::byte{0xff} && file[i + 1] == std::byte{0xdb}) {
      std::fill_n(file.begin() + std::ptrdiff_t(i) + 5, 64, std::byte{16});
      break;
    }
  return file;
}

// So they need not be transformed.
TEST_F(JpegImage, ValuesOutsideOfThePartAreNotLookedAt) {
  constexpr int chunk = 8 * jpeg_chunk;  // columns that are transformed together
  const jpeg_part parts[] = {{.left = 0, .top = 128, .right = 256, .bottom = 256},
                             {.left = 0, .top = 0, .right = 256, .bottom = 128},
                             {.left = 2 * chunk, .top = 0, .right = 256, .bottom = 256},
                             {.left = 0, .top = 0, .right = 2 * chunk, .bottom = 256},
                             {.left = chunk, .top = 64, .right = 2 * chunk, .bottom = 192}};
  for (const auto level : levels_here())
    for (const auto& part : parts) {
      const auto file = with_refused_part(make, part);
      jpeg_image image(level);
      ASSERT_TRUE(image.open(file, tables));
      image.begin(whole_of(image), all_rows);
      EXPECT_FALSE(image.decode(255, nullptr));
      ASSERT_TRUE(image.open(file, tables));
      image.begin(part, all_rows);
      ASSERT_TRUE(image.decode(part.bottom - 1, nullptr)) << part.left << ", " << part.top;
      for (int y = part.top; y < part.bottom; ++y)
        for (int x = part.left; x < part.right; ++x)
          ASSERT_EQ(image.plane_row(0, y)[x], 128) << x << ", " << y;
    }
}

TEST_F(JpegImage, SamplesOutsideOfThePartAreNotWritten) {
  for (const auto level : levels_here()) {
    const auto file = make.file(400, 60, {.sampling_x = 1, .sampling_y = 1});
    jpeg_image image(level);
    ASSERT_TRUE(image.open(file, tables));
    constexpr int chunk = 8 * jpeg_chunk;
    constexpr jpeg_part part{.left = 2 * chunk + 5, .top = 20, .right = 3 * chunk, .bottom = 40};
    image.begin(part, all_rows);
    for (std::size_t c = 0; c < 3; ++c)
      for (int y = 16; y < 40; ++y) std::fill_n(image.plane_row(c, y), 400, std::uint8_t{7});
    ASSERT_TRUE(image.decode(39, nullptr));
    for (std::size_t c = 0; c < 3; ++c)
      for (int y = 16; y < 40; ++y) {
        const auto* const row = image.plane_row(c, y);
        EXPECT_EQ(std::count(row, row + 2 * chunk, 7), 2 * chunk);
        EXPECT_NE(std::count(row + 2 * chunk, row + 3 * chunk, 7), chunk);
        EXPECT_EQ(std::count(row + 3 * chunk, row + 400, 7), 400 - 3 * chunk);
      }
  }
}

TEST_F(JpegImage, RowsOfAnyPartAreThoseOfLibjpeg) {
  for (int i = 0; i < jpeg_files(); ++i) {
    const auto file = make.file();
    const image_file opened{.bytes = file, .doing = "decode", .max_pixels = 1 << 20};
    const auto levels = levels_here();
    quick_jpeg jpeg(levels[std::size_t(i) % levels.size()]), partner(simd::plain);
    ASSERT_TRUE(jpeg.open(opened, tables));
    if (jpeg.is_grey()) continue;
    const auto other = make.file();
    ASSERT_TRUE(partner.open({.bytes = other, .doing = "decode", .max_pixels = 1 << 20}, tables));
    partner.begin(make.part(partner.width(), partner.height()), all_rows);
    jpeg.interleave_with([&] { return &partner; });
    std::vector<std::uint8_t> pixels;
    ASSERT_TRUE(read_libjpeg_rows(file, jpeg.height(), JCS_RGB, pixels));
    const auto part = make.part(jpeg.width(), jpeg.height());
    jpeg.begin(part, all_rows);
    jpeg.start_colours(3);
    try {
      for (int y = part.top; y < part.bottom; ++y)
        for (std::size_t c = 0; c < 3; ++c) {
          const auto* row = jpeg.colour_row(c, y);
          for (int x = part.left; x < part.right; ++x)
            ASSERT_EQ(row[x - part.left], pixels[std::size_t(y * jpeg.width() + x) * 3 + c])
                << "file " << i << ", row " << y << ", column " << x << ", colour " << c;
        }
    } catch (const needs_libjpeg&) {}
  }
}

// Whether libjpeg reads the rows above `bottom` without a warning, with these samples of luma.
static bool libjpeg_agrees(const jpeg_bytes& file, jpeg_image& image, int bottom) {
  std::vector<std::uint8_t> luma;
  const auto space = image.headers().rgb ? JCS_RGB : JCS_GRAYSCALE;
  if (!read_libjpeg_rows(file, bottom, space, luma)) return false;
  std::vector<std::uint8_t> rgb;
  if (image.headers().count == 3 && !read_libjpeg_rows(file, bottom, JCS_RGB, rgb)) return false;
  if (image.headers().rgb) return true;
  const auto width = std::size_t(image.headers().width);
  for (int y = 0; y < bottom; ++y)
    if (std::memcmp(image.plane_row(0, y), luma.data() + width * std::size_t(y), width) != 0)
      return false;
  return true;
}

// The rule of `strict`: rows are refused wherever libjpeg would warn until it gave them.
static void expect_rule_of_strict(const jpeg_bytes& file, jpeg_table_cache& tables, int rows) {
  for (const auto level : levels_here()) {
    jpeg_image image(level);
    if (!image.open(file, tables)) return;
    auto part = whole_of(image);
    if (part.right * part.bottom > 1 << 20) return;
    part.bottom = std::min(part.bottom, rows);
    image.begin(part, all_rows);
    if (!image.decode(part.bottom - 1, nullptr)) continue;
    ASSERT_TRUE(libjpeg_agrees(file, image, part.bottom)) << "rows " << part.bottom;
  }
}

TEST_F(JpegImage, DamageIsRefusedWhereLibjpegWarns) {
  for (int i = 0; i < 40 + jpeg_files() / 10; ++i) {
    const auto file = make.file(40);
    for (std::size_t at = 0; at < file.size(); ++at) {
      auto damaged = file;
      if (make.one_in(2)) {
        damaged[at] ^= std::byte(1 << make.below(8));
      } else {
        const auto place = damaged.begin() + std::ptrdiff_t(at);
        const int how = make.below(4);
        if (how == 0) damaged.resize(at);
        if (how == 1) damaged.erase(place);
        if (how == 2) damaged.insert(place, std::byte(make.below(256)));
        if (how == 3) damaged.insert(place, std::byte{0xff});
      }
      expect_rule_of_strict(damaged, tables, 1 + make.below(60));
      if (HasFatalFailure()) FAIL() << "file " << i << ", byte " << at;
    }
  }
}

// libjpeg decodes two rows of blocks of such an image at a time.
TEST_F(JpegImage, DamageBelowTheRowsOfAGreyImageIsRefusedWhereLibjpegWarns) {
  auto file =
      make.file(16, 32, {.restart_interval = 2, .from = JCS_GRAYSCALE, .as = JCS_GRAYSCALE});
  const auto headers = read_jpeg_headers(file);
  ASSERT_TRUE(headers);
  for (std::size_t i = 0; i + 11 < headers->scan; ++i)
    if (file[i] == std::byte{0xff} && (file[i + 1] & std::byte{0xfe}) == std::byte{0xc0})
      file[i + 11] = std::byte{0x22};
  for (std::size_t at = headers->scan; at + 2 < file.size(); ++at) {
    auto damaged = file;
    damaged.erase(damaged.begin() + std::ptrdiff_t(at));
    expect_rule_of_strict(damaged, tables, 8);
    if (HasFatalFailure()) FAIL() << "byte " << at;
  }
}

// Where the second restart marker of a file is.
static std::size_t second_restart(const jpeg_bytes& file) {
  for (std::size_t i = 0; i + 1 < file.size(); ++i)
    if (file[i] == std::byte{0xff} && file[i + 1] == std::byte{0xd1}) return i;
  return 0;
}

TEST_F(JpegImage, UnusualRestartsAreRefused) {
  const auto file = make.file(64, 16, {.restart_interval = 1});
  const auto at = second_restart(file);
  ASSERT_GT(at, 0);
  const auto place = std::ptrdiff_t(at);
  const auto refused = [&](const jpeg_bytes& damaged) {
    jpeg_image image;
    if (!image.open(damaged, tables)) return true;
    image.begin(whole_of(image), all_rows);
    return !image.decode(15, nullptr);
  };
  EXPECT_FALSE(refused(file));
  auto missing = file, another = file, twice = file, filled = file, garbage = file;
  missing.erase(missing.begin() + place, missing.begin() + place + 2);
  EXPECT_TRUE(refused(missing));
  another[at + 1] = std::byte{0xd2};
  EXPECT_TRUE(refused(another));
  twice.insert(twice.begin() + place, {std::byte{0xff}, std::byte{0xd1}});
  EXPECT_TRUE(refused(twice));
  filled.insert(filled.begin() + place, std::byte{0xff});
  EXPECT_TRUE(refused(filled));
  garbage.insert(garbage.begin() + place, std::byte{0x12});
  EXPECT_TRUE(refused(garbage));
}

TEST_F(JpegImage, ScansThatEndElsewhereThanTheImageAreRefused) {
  const auto file = make.file(40, 30, {});
  const auto headers = read_jpeg_headers(file);
  ASSERT_TRUE(headers);
  const auto refused = [&](const jpeg_bytes& changed) {
    jpeg_image image;
    if (!image.open(changed, tables)) return true;
    image.begin(whole_of(image), all_rows);
    return !image.decode(29, nullptr);
  };
  auto longer = file, open_ended = file, empty = file, more = file;
  longer.insert(longer.end() - 2, std::byte{0x12});
  EXPECT_TRUE(refused(longer));
  open_ended.resize(file.size() - 2);
  EXPECT_TRUE(refused(open_ended));
  empty.erase(empty.begin() + std::ptrdiff_t(headers->scan), empty.end() - 2);
  EXPECT_TRUE(refused(empty));
  more.resize(file.size() + 100, std::byte{0xff});
  EXPECT_FALSE(refused(more));  // behind the end of the image
}

TEST_F(JpegImage, NothingOfAFileIsKeptBehindItsEnd) {
  jpeg_image image;
  const auto expect_nothing = [&] {
    for (const auto& component : image.headers().components) {
      EXPECT_TRUE(component.dc.counts.empty() && component.dc.symbols.empty());
      EXPECT_TRUE(component.ac.counts.empty() && component.ac.symbols.empty());
    }
  };
  auto file = make.file(40, 30, {});
  ASSERT_TRUE(image.open(file, tables));
  ASSERT_FALSE(image.headers().components[0].dc.counts.empty());
  image.close();
  expect_nothing();
  file.resize(file.size() - 2);
  ASSERT_FALSE(image.open(file, tables));
  expect_nothing();
}

}  // namespace lade::media::jpeg_image_test
