#include <lade/media/image.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace lade::media {

// What a header says that decides how much memory decoding takes.
struct image_header {
  std::size_t width = 0;  // 0 if it cannot be told
  std::size_t height = 0;
  double decoded_bytes = 4;  // of a pixel, where the whole image is decoded before it is used
  double planes_bytes = 0;   // of a pixel of a JPEG that is decoded into planes
};

using image_bytes = std::span<const std::byte>;

// Whole numbers in a file; 0 where it ends before.
static std::size_t big_endian(image_bytes file, std::size_t at, std::size_t count) {
  std::size_t value = 0;
  if (at > file.size() || count > file.size() - at) return 0;
  for (auto each : file.subspan(at, count)) value = value << 8 | std::to_integer<std::size_t>(each);
  return value;
}

static std::size_t little_endian(image_bytes file, std::size_t at, std::size_t count) {
  std::size_t value = 0;
  if (at > file.size() || count > file.size() - at) return 0;
  while (count-- > 0) value = value << 8 | std::to_integer<std::size_t>(file[at + count]);
  return value;
}

static bool has_text(image_bytes file, std::size_t at, std::string_view text) {
  if (at > file.size() || text.size() > file.size() - at) return false;
  return std::ranges::equal(file.subspan(at, text.size()), std::as_bytes(std::span(text)));
}

// The frame header at `at`, behind its length: how large the image is, and how its colours are
// sampled. A progressive image is decoded as coefficients of 16 bits first.
static image_header jpeg_frame(image_bytes file, std::size_t at, bool progressive) {
  image_header header{.width = big_endian(file, at + 3, 2), .height = big_endian(file, at + 1, 2)};
  auto components = std::min<std::size_t>(big_endian(file, at + 5, 1), 4);
  std::size_t samples = 0;
  std::size_t most = 1;
  for (std::size_t i = 0; i < components; ++i) {
    auto factors = big_endian(file, at + 7 + 3 * i, 1);
    auto of_component = (factors >> 4) * (factors & 15);
    samples += of_component;
    most = std::max(most, of_component);
  }
  header.planes_bytes = static_cast<double>(samples) / static_cast<double>(most);
  header.decoded_bytes = progressive ? 2 * header.planes_bytes : 0;
  return header;
}

static image_header jpeg_header(image_bytes file) {
  std::size_t at = 2;
  while (big_endian(file, at, 1) == 0xff) {
    auto marker = big_endian(file, at + 1, 1);
    if (marker == 0xff) {  // fills up
      ++at;
      continue;
    }
    constexpr std::array<std::size_t, 3> no_frames{0xc4, 0xc8, 0xcc};
    if (marker >= 0xc0 && marker <= 0xcf && std::ranges::find(no_frames, marker) == no_frames.end())
      return jpeg_frame(file, at + 4, marker % 4 == 2);
    auto length = big_endian(file, at + 2, 2);
    if (length < 2) break;
    at += 2 + length;
  }
  return {};
}

static image_header png_header(image_bytes file) {
  constexpr std::array<std::size_t, 7> samples{1, 0, 3, 1, 2, 0, 4};  // by the kind of colour
  auto colour = std::min<std::size_t>(big_endian(file, 25, 1), 6);
  auto bytes = samples[colour] * (big_endian(file, 24, 1) > 8 ? 2 : 1);
  return {.width = big_endian(file, 16, 4),
          .height = big_endian(file, 20, 4),
          .decoded_bytes = static_cast<double>(bytes)};
}

static image_header webp_header(image_bytes file) {
  if (has_text(file, 12, "VP8X"))
    return {.width = little_endian(file, 24, 3) + 1, .height = little_endian(file, 27, 3) + 1};
  if (has_text(file, 12, "VP8L")) {
    auto sizes = little_endian(file, 21, 4);
    return {.width = (sizes & 0x3fff) + 1, .height = (sizes >> 14 & 0x3fff) + 1};
  }
  return {.width = little_endian(file, 26, 2) & 0x3fff,
          .height = little_endian(file, 28, 2) & 0x3fff};
}

static image_header bmp_header(image_bytes file) {
  auto height = static_cast<std::int32_t>(little_endian(file, 22, 4));
  return {.width = little_endian(file, 18, 4),
          .height = static_cast<std::size_t>(height < 0 ? -std::int64_t{height} : height)};
}

// The first of its images.
static image_header tiff_header(image_bytes file) {
  auto number = has_text(file, 0, "II") ? little_endian : big_endian;
  auto at = number(file, 4, 4);
  image_header header;
  for (auto entries = number(file, at, 2); entries > 0; --entries) {
    auto entry = at + 2 + 12 * (entries - 1);
    auto value = number(file, entry + 8, number(file, entry + 2, 2) == 3 ? 2 : 4);
    if (number(file, entry, 2) == 256) header.width = value;
    if (number(file, entry, 2) == 257) header.height = value;
  }
  return header;
}

// The size that the container tells of its items. Planes of up to 12 bits are decoded first.
static image_header avif_header(image_bytes file) {
  constexpr std::string_view box = "ispe";
  auto start = file.first(std::min<std::size_t>(file.size(), 4096));
  auto found = std::ranges::search(start, std::as_bytes(std::span(box)));
  if (found.empty()) return {};
  auto at = static_cast<std::size_t>(found.begin() - start.begin()) + 8;
  return {
      .width = big_endian(file, at, 4), .height = big_endian(file, at + 4, 4), .decoded_bytes = 10};
}

static image_header header_of(image_bytes file) {
  if (has_text(file, 0, "\xff\xd8\xff")) return jpeg_header(file);
  if (has_text(file, 1, "PNG\r\n")) return png_header(file);
  if (has_text(file, 0, "RIFF") && has_text(file, 8, "WEBP")) return webp_header(file);
  if (has_text(file, 0, "GIF8"))
    return {.width = little_endian(file, 6, 2), .height = little_endian(file, 8, 2)};
  if (has_text(file, 0, "BM")) return bmp_header(file);
  if (has_text(file, 0, "II*") || has_text(file, 0, "MM")) return tiff_header(file);
  if (has_text(file, 4, "ftyp")) return avif_header(file);
  return {};
}

// Of an image that may be decoded; else 0.
static double pixels_of(const image_header& header, const image_options& options) {
  auto pixels = static_cast<double>(header.width) * static_cast<double>(header.height);
  return pixels <= static_cast<double>(options.max_pixels) ? pixels : 0;
}

std::size_t decode_image::memory_to_write(const sample& in) const {
  auto header = header_of(in.data().bytes());
  bool planes = options_.fast && options_.colour == image_colour::rgb;
  auto bytes = header.decoded_bytes + (planes ? header.planes_bytes : 0);
  return static_cast<std::size_t>(pixels_of(header, options_) * bytes);
}

std::size_t decode_image::memory_needed(const sample& in) const {
  if (options_.width > 0) return spec_.bytes() + memory_to_write(in);
  auto element = tensor_spec{options_.type, {}}.bytes();
  auto channels = options_.colour == image_colour::grey ? 1u : 3u;
  auto pixels = pixels_of(header_of(in.data().bytes()), options_);
  return static_cast<std::size_t>(pixels) * element * channels + memory_to_write(in);
}

}  // namespace lade::media
