// Decodes any bytes by lade's own decoder of JPEG: at its size or reduced, as a whole or a part of
// it, to planes, colours or luma, alone and among valid images that are decoded together with it.
// Each row is that of libjpeg-turbo, which has not warned until then, or is refused.

#include "../../media/quick_jpeg.hpp"
#include "../media/jpeg_maker.hpp"
#include "../media/jpeg_oracle.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>
#include <vector>

using namespace lade::media;

static void require_that(bool right) {
  if (!right) std::abort();
}

static image_file opened(std::span<const std::byte> file) {
  return {.bytes = file, .doing = "decode", .max_pixels = 1 << 16};
}

enum class output { planes, colours, luma };

// Rows of a part of an image, or of the image at 1 / `reduction`.
struct request {
  output of = output::planes;
  int reduction = 1;
  jpeg_part part{};
  int kept = 1;  // rows that stay in memory

  // How many components there are, and how many samples of the first lie on one of each.
  std::size_t components = 3;
  std::array<int, 3> across{1, 1, 1};
  std::array<int, 3> down{1, 1, 1};
};

// From the top of the part, until the image is refused.
struct decoded_rows {
  int count = 0;
  std::vector<std::uint8_t> samples;
  bool operator==(const decoded_rows&) const = default;
};

struct requested_image {
  std::span<const std::byte> file;
  request wanted;
  decoded_rows alone;  // as it is decoded without other images
};

static output any_output(const quick_jpeg& jpeg, jpeg_maker& draw) {
  const auto of = static_cast<output>(draw.below(3));
  if (of == output::planes) return of;
  return jpeg.is_grey() ? output::luma : jpeg.is_rgb() ? output::colours : of;
}

static int height_of(const jpeg_part& part) { return part.bottom - part.top; }

static request any_request(quick_jpeg& jpeg, jpeg_maker& draw) {
  request made{.of = any_output(jpeg, draw)};
  const bool planes = made.of == output::planes;
  if (planes) made.reduction = 1 << draw.below(4);
  jpeg.reduce(made.reduction);
  const int width = jpeg.columns(0).size, height = jpeg.rows(0, jpeg.height()).size;
  made.part = {.right = width, .bottom = height};
  if (!draw.one_in(3)) made.part = draw.part(width, height);
  made.kept = 1 + draw.below(draw.one_in(2) ? 3 : height_of(made.part));
  if (made.of == output::luma || jpeg.is_grey()) made.components = 1;
  for (std::size_t c = 0; planes && c < made.components; ++c) {
    made.across[c] = static_cast<int>(jpeg.columns(c).step);
    made.down[c] = static_cast<int>(jpeg.rows(c, height).step);
  }
  return made;
}

// Appends the samples on row `y`. row(c, x, y) is a row of component `c` from its column x on.
template <class Row>
static void append_row(const request& wanted, int y, Row row, decoded_rows& rows) {
  for (std::size_t c = 0; c < wanted.components; ++c) {
    const int left = wanted.part.left / wanted.across[c];
    const int right = (wanted.part.right - 1) / wanted.across[c] + 1;
    const std::uint8_t* first = row(c, left, y / wanted.down[c]);
    rows.samples.insert(rows.samples.end(), first, first + (right - left));
  }
}

// Reads each row twice: as soon as it is complete, and as the oldest one in memory.
template <class Row>
static void read_rows(const request& wanted, int count, Row row, decoded_rows& rows) {
  const int top = wanted.part.top;
  for (int y = top; y < top + count; ++y) {
    append_row(wanted, y, row, rows);
    append_row(wanted, std::max(top, y + 1 - wanted.kept), row, rows);
    ++rows.count;
  }
}

static void begin(quick_jpeg& jpeg, const requested_image& image, jpeg_table_cache& tables) {
  require_that(jpeg.open(opened(image.file), tables));
  const auto& wanted = image.wanted;
  const bool colours = wanted.of == output::colours;
  jpeg.reduce(wanted.reduction);
  jpeg.begin(wanted.part, colours ? 1 : wanted.kept);
  if (colours) jpeg.start_colours(wanted.kept);
}

static decoded_rows read_begun(quick_jpeg& jpeg, const request& wanted) {
  const auto row = [&](std::size_t c, int x, int y) {
    return wanted.of == output::colours ? jpeg.colour_row(c, y) : jpeg.component_row(c, y) + x;
  };
  decoded_rows rows;
  try {
    read_rows(wanted, height_of(wanted.part), row, rows);
  } catch (const needs_libjpeg&) {}
  return rows;
}

// The rows above `bottom`. False if libjpeg warns until it gives the last of them.
static bool read_libjpeg(const requested_image& image, int bottom, libjpeg_planes& planes) {
  const auto& wanted = image.wanted;
  if (wanted.of == output::planes)
    return read_libjpeg_planes(image.file, planes, wanted.reduction, bottom);
  std::vector<std::uint8_t> pixels;
  const auto space = wanted.of == output::colours ? JCS_RGB : JCS_GRAYSCALE;
  if (!read_libjpeg_rows(image.file, bottom, space, pixels)) return false;
  const auto count = wanted.components;
  for (std::size_t i = 0; i < pixels.size(); ++i) planes[i % count].samples.push_back(pixels[i]);
  for (auto& plane : planes)
    plane.stride = pixels.size() / count / static_cast<std::size_t>(bottom);
  return true;
}

static void compare_with_libjpeg(const requested_image& image) {
  const auto& [file, wanted, alone] = image;
  if (alone.count == 0) return;
  libjpeg_planes planes;
  require_that(read_libjpeg(image, wanted.part.top + alone.count, planes));
  decoded_rows rows;
  const auto row = [&](std::size_t c, int x, int y) { return planes[c].row(y) + x; };
  read_rows(wanted, alone.count, row, rows);
  require_that(alone == rows);
}

// Decodes an image without others.
static void decode_alone(simd level, requested_image& image, jpeg_table_cache& tables) {
  quick_jpeg jpeg(level);
  begin(jpeg, image, tables);
  image.alone = read_begun(jpeg, image.wanted);
  compare_with_libjpeg(image);
}

static bool is_small(const jpeg_headers& headers) {
  return std::int64_t{headers.width + 31} * (headers.height + 15) <= 1 << 16;
}

// Nothing if the file is large, or none for lade's own decoder.
static std::optional<requested_image> any_request_of(std::span<const std::byte> file,
                                                     jpeg_maker& draw) {
  const auto headers = read_jpeg_headers(file);
  jpeg_table_cache tables;
  quick_jpeg jpeg(simd::plain);
  if (!headers || !is_small(*headers) || !jpeg.open(opened(file), tables)) return std::nullopt;
  return requested_image{.file = file, .wanted = any_request(jpeg, draw), .alone = {}};
}

static bool is_complete(const requested_image& image) {
  return image.alone.count == height_of(image.wanted.part);
}

// An image that others take along may be refused sooner: decoding is ahead of its rows.
static bool is_as_alone(const decoded_rows& rows, const requested_image& image) {
  const auto& alone = image.alone;
  if (is_complete(image)) return rows == alone;
  return rows.count <= alone.count &&
         std::equal(rows.samples.begin(), rows.samples.end(), alone.samples.begin());
}

// Reads images in their order. Each takes the next two along, the second when the first is
// complete. Every third one is of the same quick_jpeg.
static void read_together(simd level, std::span<const requested_image> images,
                          jpeg_table_cache& tables) {
  std::array lanes{quick_jpeg(level), quick_jpeg(level), quick_jpeg(level)};
  std::size_t started = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    for (; started < std::min(i + lanes.size(), images.size()); ++started)
      begin(lanes[started % lanes.size()], images[started], tables);
    auto& jpeg = lanes[i % lanes.size()];
    jpeg.interleave_with([&]() -> quick_jpeg* {
      for (auto next = i + 1; next < started; ++next)
        if (auto& other = lanes[next % lanes.size()]; !other.is_complete()) return &other;
      return nullptr;
    });
    require_that(is_as_alone(read_begun(jpeg, images[i].wanted), images[i]));
    jpeg.close();
  }
}

// Those that plain code decodes are decoded at each level.
struct valid_images {
  valid_images() {
    jpeg_maker draw(1);
    jpeg_table_cache tables;
    for (auto& file : files) {
      file = draw.file(100);
      auto image = any_request_of(file, draw);
      if (!image) continue;
      decode_alone(simd::plain, *image, tables);
      if (is_complete(*image)) images.push_back(*image);
    }
  }

  std::array<jpeg_bytes, 40> files;
  std::vector<requested_image> images;
};

// FNV-1a.
static std::uint64_t hash_of(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const auto byte : bytes) hash = (hash ^ static_cast<std::uint8_t>(byte)) * 0x100000001b3;
  return hash;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const valid_images valid;
  const auto file = std::as_bytes(std::span(data, size));
  jpeg_maker draw(hash_of(file));
  const auto image = any_request_of(file, draw);
  if (!image) return 0;
  std::vector<requested_image> images;
  for (int i = 0; i < 3; ++i)
    images.push_back(valid.images[std::size_t(draw.below(int(valid.images.size())))]);
  auto& fuzzed = *images.insert(images.begin() + draw.below(4), *image);
  for (const auto level : levels_here()) {
    jpeg_table_cache tables;
    decode_alone(level, fuzzed, tables);
    read_together(level, images, tables);
  }
  return 0;
}
