#include "exif.hpp"

#include <cstdint>
#include <string_view>

namespace lade::media {

using exif_bytes = std::span<const std::byte>;

static bool exif_begins(exif_bytes data, std::string_view with) {
  return data.size() >= with.size() &&
         std::string_view(reinterpret_cast<const char*>(data.data()), with.size()) == with;
}

// The unsigned number in `count` bytes from `at`; 0 when they are not all there.
static std::uint32_t exif_number(exif_bytes data, std::size_t at, std::size_t count, bool big) {
  if (at > data.size() || count > data.size() - at) return 0;
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i)
    value = value << 8 | std::to_integer<std::uint32_t>(data[at + (big ? i : count - 1 - i)]);
  return value;
}

static exif_bytes exif_part(exif_bytes data, std::size_t at, std::size_t count) {
  if (at > data.size() || count > data.size() - at) return {};
  return data.subspan(at, count);
}

// The first image file directory of a TIFF structure: 12 bytes per tag.
static int tiff_orientation(exif_bytes tiff) {
  const bool big = exif_begins(tiff, {"MM\0*", 4});
  if (!big && !exif_begins(tiff, {"II*\0", 4})) return 1;
  const std::size_t directory = exif_number(tiff, 4, 4, big);
  const std::size_t tags = exif_number(tiff, directory, 2, big);
  for (std::size_t i = 0; i < tags; ++i) {
    const auto tag = exif_part(tiff, directory + 2 + 12 * i, 12);
    if (tag.empty()) return 1;
    constexpr std::uint32_t orientation = 274;
    constexpr std::uint32_t two_bytes = 3;
    if (exif_number(tag, 0, 2, big) != orientation) continue;
    if (exif_number(tag, 2, 2, big) != two_bytes) return 1;
    const auto value = exif_number(tag, 8, 2, big);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

// Segments: a marker of two bytes, then a length that counts itself. The scan ends the search.
static exif_bytes exif_in_jpeg(exif_bytes file) {
  constexpr std::uint32_t app1 = 0xffe1;
  constexpr std::uint32_t start_of_scan = 0xffda;
  constexpr std::string_view prefix("Exif\0\0", 6);
  for (std::size_t at = 2; at + 4 <= file.size();) {
    const auto marker = exif_number(file, at, 2, true);
    if (marker == 0xffff) {  // a fill byte
      ++at;
      continue;
    }
    const std::size_t length = exif_number(file, at + 2, 2, true);
    if (marker < 0xff00 || marker == start_of_scan || length < 2) break;
    const auto body = exif_part(file, at + 4, length - 2);
    if (marker == app1 && exif_begins(body, prefix)) return body.subspan(prefix.size());
    at += 2 + length;
  }
  return {};
}

// Chunks: a length, a name, the body, a checksum.
static exif_bytes exif_in_png(exif_bytes file) {
  for (std::size_t at = 8; at + 12 <= file.size();) {
    const std::size_t length = exif_number(file, at, 4, true);
    if (exif_begins(file.subspan(at + 4), "eXIf")) return exif_part(file, at + 8, length);
    at += 12 + length;
  }
  return {};
}

// Chunks: a name, a length, the body, rounded up to an even size.
static exif_bytes exif_in_webp(exif_bytes file) {
  for (std::size_t at = 12; at + 8 <= file.size();) {
    const std::size_t length = exif_number(file, at + 4, 4, false);
    if (exif_begins(file.subspan(at), "EXIF")) {
      const auto body = exif_part(file, at + 8, length);
      return exif_begins(body, {"Exif\0\0", 6}) ? body.subspan(6) : body;
    }
    at += 8 + length + length % 2;
  }
  return {};
}

int exif_orientation(std::span<const std::byte> file) noexcept {
  if (exif_begins(file, "\xff\xd8")) return tiff_orientation(exif_in_jpeg(file));
  if (exif_begins(file, "\x89PNG")) return tiff_orientation(exif_in_png(file));
  if (exif_begins(file, "RIFF")) return tiff_orientation(exif_in_webp(file));
  return tiff_orientation(file);
}

}  // namespace lade::media
