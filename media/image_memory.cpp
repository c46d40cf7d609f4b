#include <lade/error.hpp>
#include <lade/media/crop.hpp>
#include <lade/media/image.hpp>
#include <lade/support/byte_view.hpp>
#include <lade/support/tiff_tags.hpp>

#include "av1_header.hpp"
#include "avif_items.hpp"
#include "avif_reader.hpp"
#include "bmp_reader.hpp"
#include "exif.hpp"
#include "gif_reader.hpp"
#include "image_header.hpp"
#include "image_job.hpp"
#include "jpeg_image.hpp"
#include "png_reader.hpp"
#include "pnm_reader.hpp"
#include "tiff_reader.hpp"
#include "webp_reader.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <string_view>

namespace lade::media {

// Parses the frame header at `at`, after its length (ITU-T T.81, B.2.2): the size and the sampling
// factors.
static image_header jpeg_frame(support::byte_view file, std::size_t at) {
  image_header header{.width = file.big(at + 3, 2), .height = file.big(at + 1, 2)};
  auto components = std::min<std::size_t>(file.big(at + 5, 1), 4);
  std::size_t samples = 0;
  std::size_t most = 1;
  for (std::size_t i = 0; i < components; ++i) {
    auto factors = file.big(at + 7 + 3 * i, 1);
    auto of_component = (factors >> 4) * (factors & 15);
    samples += of_component;
    most = std::max(most, of_component);
  }
  header.planes_bytes = static_cast<double>(samples) / static_cast<double>(most);
  header.decoded_bytes = 0;
  return header;
}

// libjpeg decodes an image of several scans, progressive or not, to 16-bit coefficients first.
static image_header jpeg_header(support::byte_view file) {
  image_header header{.decoded_bytes = 0};
  std::size_t components = 0;
  bool progressive = false;
  std::size_t at = 2;
  while (file.big(at, 1) == 0xff) {
    auto marker = file.big(at + 1, 1);
    if (marker == 0xff) {  // a fill byte (T.81, B.1.1.2)
      ++at;
      continue;
    }
    constexpr std::array<std::size_t, 3> no_frames{0xc4, 0xc8, 0xcc};
    if (marker == 0xda) {
      const bool coefficients = progressive || file.big(at + 4, 1) < components;
      if (coefficients) header.decoded_bytes = 2 * header.planes_bytes;
      break;
    }
    if (marker >= 0xc0 && marker <= 0xcf &&
        std::ranges::find(no_frames, marker) == no_frames.end()) {
      header = jpeg_frame(file, at + 4);
      components = file.big(at + 9, 1);
      progressive = marker % 4 == 2;
    }
    auto length = file.big(at + 2, 2);
    if (length < 2) break;
    at += 2 + length;
  }
  return header;
}

// lade's own decoder needs planes, a copy of the scan, and the position of each restart. The rows
// of planes and luma in memory depend on the reduction, so all are counted.
static image_header quick_jpeg_header(support::byte_view file) {
  auto header = jpeg_header(file);
  const auto quick = read_jpeg_headers(std::as_bytes(std::span(file.data(), file.size())));
  if (!quick) return header;
  header.planes_bytes = 0;
  header.all_rows_bytes = jpeg_image::most_plane_bytes(*quick, quick->height);
  header.few_rows_bytes =
      quick->count == 1 ? header.all_rows_bytes : jpeg_image::most_plane_bytes(*quick, 1);
  constexpr std::size_t marker_bytes = 2;
  const auto restarts = std::min(std::size_t{quick->restarts()}, file.size() / marker_bytes);
  const auto segments = sizeof(std::uint64_t) * (restarts + 1);
  header.copied_bytes = std::min(file.size(), quick->most_scan_bytes()) + segments;
  return header;
}

// With tRNS, FFmpeg adds an alpha channel, except to palettes.
static image_header png_header(support::byte_view file) {
  constexpr std::array<unsigned, 7> samples_of_colour{1, 0, 3, 1, 2, 0, 4};
  constexpr unsigned palette = 3;
  const auto colour = std::min<unsigned>(file[25], 6);
  bool has_key = false;
  for (std::size_t at = 33; file.holds(at, 8) && !file.from(at + 4).begins("IDAT");
       at += 12 + file.big(at, 4))
    has_key = has_key || file.from(at + 4).begins("tRNS");
  const auto samples = samples_of_colour[colour] + (has_key && colour != palette ? 1 : 0);
  const auto bytes = samples * (file[24] > 8 ? 2 : 1);
  const bool verbatim = file[24] == 8 && !has_key && (colour == 0 || colour == 2);
  const auto converted = verbatim ? 0U : (colour & 2) == 0 ? 1U : 3U;
  return {.width = file.big(16, 4),
          .height = file.big(20, 4),
          .decoded_bytes = static_cast<double>(bytes + converted),
          .copied_bytes = file.size()};
}

// The RGB result, and the parts that libwebp decodes as a whole: lossless pixels, and alpha, which
// is stored as further lossless pixels.
static double webp_bytes(support::byte_view file) {
  for (std::size_t at = 12; file.holds(at, 8);) {
    const auto chunk = file.from(at);
    if (chunk.begins("VP8L")) return 3 + 4;
    if (chunk.begins("ALPH")) return 3 + 1 + 4;
    if (chunk.begins("VP8 ")) break;
    const auto size = file.little(at + 4, 4);
    at += 8 + (chunk.begins("ANMF") ? 16 : size + size % 2);
  }
  return 3;
}

static image_header webp_header(support::byte_view file) {
  image_header header{.decoded_bytes = webp_bytes(file)};
  const auto first = file.from(12);
  if (first.begins("VP8X")) {
    header.width = file.little(24, 3) + 1;
    header.height = file.little(27, 3) + 1;
  } else if (first.begins("VP8L")) {
    const auto sizes = file.little(21, 4);
    header.width = (sizes & 0x3fff) + 1;
    header.height = (sizes >> 14 & 0x3fff) + 1;
  } else {
    header.width = file.little(26, 2) & 0x3fff;
    header.height = file.little(28, 2) & 0x3fff;
  }
  return header;
}

static image_header gif_header(support::byte_view file) {
  const auto [width, height] = gif_reader::size_of(file);
  return {.width = width, .height = height, .decoded_bytes = 4, .copied_bytes = file.size()};
}

static image_header bmp_header(support::byte_view file) {
  if (file.little(14, 4) == 12)
    return {.width = file.little(18, 2), .height = file.little(20, 2), .decoded_bytes = 3};
  const auto height = static_cast<std::int32_t>(file.little(22, 4));
  const auto compression = file.little(30, 4);
  const bool runs = file.little(14, 4) >= 40 && (compression == 1 || compression == 2);
  return {.width = file.little(18, 4),
          .height = static_cast<std::uint64_t>(std::abs(std::int64_t{height})),
          .decoded_bytes = runs ? 4.0 : 3.0};
}

static image_header pnm_header(support::byte_view file) {
  std::size_t at = 2;
  const auto width = static_cast<std::uint64_t>(pnm_reader::number(file, at));
  const auto height = static_cast<std::uint64_t>(pnm_reader::number(file, at));
  return {.width = width, .height = height, .decoded_bytes = file[1] == '6' ? 3.0 : 1.0};
}

// The strips or tiles of all planes that are decoded at a time. libtiff splits a single
// uncompressed strip into small ones.
static double tiff_block_bytes(const lade::support::tiff_tags& tags, const image_header& header) {
  constexpr std::uint32_t compression = 259;
  constexpr std::uint32_t rows_of_strip = 278;
  constexpr std::uint32_t planes = 284;
  constexpr std::uint32_t tile_width = 322;
  constexpr std::uint32_t tile_height = 323;
  auto width = header.width;
  auto height = std::min(header.height, tags.number_of(rows_of_strip, header.height));
  const bool tiled = tags.number_of(tile_width, 0) > 0;
  if (tiled) {
    width = tags.number_of(tile_width, 0);
    height = tags.number_of(tile_height, 0);
  } else if (height == header.height && tags.number_of(compression, 1) == 1 &&
             tags.number_of(planes, 1) == 1) {
    return 0;
  }
  const auto bits = tags.number_of(258, 1) * tags.number_of(277, 1);
  return static_cast<double>(width) * static_cast<double>(height) * static_cast<double>(bits) / 8;
}

// The first image. YCbCr without JPEG compression is converted via 32-bit pixels.
static image_header tiff_header(support::byte_view file) {
  constexpr std::uint64_t ycbcr = 6;
  constexpr std::uint64_t jpeg = 7;
  const lade::support::tiff_tags tags(file);
  image_header header{.width = tags.number_of(256, 0), .height = tags.number_of(257, 0)};
  const auto photometric = tags.number_of(262, tags.number_of(277, 1) >= 3 ? 2 : 1);
  const bool converted =
      photometric == ycbcr && (tags.number_of(259, 1) != jpeg || tags.number_of(284, 1) != 1);
  header.decoded_bytes = photometric <= 1 ? 1 : converted ? 7 : 3;
  header.block_bytes = tiff_block_bytes(tags, header);
  const bool bits_reversed = tags.number_of(266, 1) == 2;
  header.copied_bytes = bits_reversed ? file.size() : 0;
  return header;
}

// The box "meta"; the whole file if it is not found.
static support::byte_view avif_boxes(support::byte_view file) {
  for (std::size_t at = 0; file.holds(at, 8) && file.big(at, 4) >= 8; at += file.big(at, 4))
    if (file.from(at + 4).begins("meta")) return file.from(at).part(0, file.big(at, 4));
  return file;
}

// Bytes per pixel, from the AV1 codec configuration ("AV1 Codec ISO Media File Format Binding",
// 2.3).
static double avif_plane_bytes(support::byte_view configuration) {
  const unsigned flags = configuration[2];
  const bool wide = (flags & 0x40) != 0;
  const bool grey = (flags & 0x10) != 0;
  const bool half_width = (flags & 8) != 0;
  const bool half_height = (flags & 4) != 0;
  const double samples = grey ? 1 : half_height ? 1.5 : half_width ? 2 : 3;
  return wide ? 2 * samples : samples;
}

// The largest item, by its container properties and by its data. An AV1 decoder keeps the planes
// and, measured with libaom, 14 bytes per pixel of block data. Alpha has its own decoder.
static image_header avif_header(support::byte_view file) {
  constexpr double of_blocks = 14.5;
  const auto boxes = avif_boxes(file);
  const auto text = boxes.text();
  image_header header;
  double planes = 0;
  const auto add = [&](std::uint64_t width, std::uint64_t height) {
    if (width * height <= header.width * header.height) return;
    header.width = width;
    header.height = height;
  };
  for (auto at = text.find("ispe"); at != text.npos; at = text.find("ispe", at + 4))
    add(boxes.big(at + 8, 4), boxes.big(at + 12, 4));
  av1_sizes sizes(file.size());
  add_avif_items(file, sizes);
  add(sizes.largest().width, sizes.largest().height);
  for (auto at = text.find("av1C"); at != text.npos; at = text.find("av1C", at + 4))
    planes = std::max(planes, avif_plane_bytes(boxes.from(at + 4)));
  header.decoded_bytes = 3 + of_blocks + planes;
  if (text.find("auxC") != text.npos) header.decoded_bytes += 4 + of_blocks + 2;
  const auto turn = text.find("irot");
  header.turned = turn != text.npos && (boxes[turn + 4] & 1) != 0;
  return header;
}

image_header header_of(support::byte_view file) {
  if (file.begins("\xff\xd8\xff")) return quick_jpeg_header(file);
  if (png_reader::recognises(file)) return png_header(file);
  if (tiff_reader::recognises(file)) return tiff_header(file);
  if (webp_reader::recognises(file)) return webp_header(file);
  if (file.from(4).begins("ftyp")) return avif_header(file);
  if (gif_reader::recognises(file)) return gif_header(file);
  if (bmp_reader::recognises(file)) return bmp_header(file);
  if (pnm_reader::recognises(file)) return pnm_header(file);
  return {};
}

// The number of pixels; 0 if the decoder will refuse the image.
static double pixels_of(const image_header& header, const image_options& options) {
  const auto most = static_cast<double>(options.max_pixels);
  const auto pixels = static_cast<double>(header.width) * static_cast<double>(header.height);
  return pixels <= most && header.block_bytes <= 8 * most ? pixels : 0;
}

// Bytes per pixel of the result for an image whose rows become columns: all rows are kept until the
// last one.
static double turned_bytes(support::byte_view file, const image_header& header,
                           const image_options& options) {
  if (!options.orient || (!header.turned && exif_orientation(file) <= 4)) return 0;
  return channels_of(options.colour);
}

support::byte_view encoded_bytes_of(const sample& in, std::string_view name) {
  if (name.empty()) return support::byte_view(in.data().bytes());
  auto* found = in.find_field(name);
  if (!found || found->type() != field::kind::bytes) return {};
  return support::byte_view(found->bytes().bytes());
}

image_size size_of_result(const sample& in, const image_options& options) {
  const auto* stored = options.crop_field.empty() ? nullptr : in.find_field(options.crop_field);
  if (stored == nullptr || stored->type() != field::kind::tensor)
    return {options.width, options.height};
  try {
    return to_crop(stored->tensor()).result;
  } catch (const error&) {
    return {};
  }
}

std::size_t decode_image::memory_to_write(const sample& in) const {
  const auto file = encoded_bytes_of(in, options_.field);
  const auto header = header_of(file);
  const auto pixels = pixels_of(header, options_);
  if (pixels == 0) return 0;
  const bool luma = options_.colour == image_colour::grey;
  const bool planes = options_.fast && !luma;
  const auto rows = options_.fast || luma ? header.all_rows_bytes : header.few_rows_bytes;
  const auto bytes = header.decoded_bytes + (planes ? header.planes_bytes : 0);
  const auto size = size_of_result(in, options_);
  const auto result = size.width > 0 ? static_cast<double>(size.width) * size.height : pixels;
  return static_cast<std::size_t>(pixels * bytes + header.block_bytes +
                                  result * turned_bytes(file, header, options_)) +
         header.copied_bytes + rows;
}

std::size_t decode_image::memory_needed(const sample& in) const {
  const auto size = size_of_result(in, options_);
  if (size.width > 0)
    return spec_of(options_, size.width, size.height).bytes() + memory_to_write(in);
  auto element = tensor_spec{options_.type, {}}.bytes();
  const auto channels = static_cast<unsigned>(channels_of(options_.colour));
  auto pixels = pixels_of(header_of(encoded_bytes_of(in, options_.field)), options_);
  return static_cast<std::size_t>(pixels) * element * channels + memory_to_write(in);
}

}  // namespace lade::media
