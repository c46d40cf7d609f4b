#include <lade/support/orientation.hpp>

#include "exif.hpp"
#include "png_text.hpp"

#include <string_view>

namespace lade::media {

// Whether the PNG text with this keyword contains Exif or XMP in hexadecimal digits.
static bool is_raw_profile(std::string_view keyword) {
  constexpr std::string_view prefix = "Raw profile type ";
  if (!keyword.starts_with(prefix)) return false;
  const auto type = keyword.substr(prefix.size());
  return type == "exif" || type == "APP1" || type == "xmp";
}

// Searches the metadata of PNG and WebP files.
struct metadata_search : lade::support::orientation_search {
  std::size_t text_room = 1 << 20;  // bytes that the compressed texts of a PNG may still inflate to

  // A chunk is a length, a name, the body, and a checksum.
  void read_png(support::byte_view file) {
    for (std::size_t at = 8; at + 12 <= file.size();) {
      const auto length = file.big(at, 4);
      const auto name = file.part(at + 4, 4).text();
      const auto body = file.part(at + 8, length);
      if (name == "eXIf") read_exif(body);
      if (name == "tEXt" || name == "zTXt" || name == "iTXt") read_text(name, body);
      at += 12 + length;
    }
  }

  void read_text(std::string_view chunk, support::byte_view body) {
    const auto keyword = png_keyword(body);
    const bool packet = keyword == "XML:com.adobe.xmp";
    if (!packet && !is_raw_profile(keyword)) return;
    const auto text = read_png_text(chunk, body, text_room);
    if (packet) return read_xmp(text);
    const auto bytes = raw_profile(text);
    if (keyword.ends_with(" xmp")) read_xmp(bytes);
    read_prefixed(std::as_bytes(std::span(bytes)));
  }

  // A chunk is a name, a length, and the body padded to an even size. Some writers keep the prefix
  // "Exif\0\0" that JPEG has.
  void read_webp(support::byte_view file) {
    for (std::size_t at = 12; at + 8 <= file.size();) {
      const auto length = file.little(at + 4, 4);
      const auto name = file.part(at, 4).text();
      const auto body = file.part(at + 8, length);
      if (name == "EXIF") {
        read_exif(body);
        read_prefixed(body);
      }
      if (name == "XMP ") read_xmp(body.text());
      at += 8 + length + length % 2;
    }
  }
};

int exif_orientation(support::byte_view file) {
  metadata_search found;
  if (file.begins("\xff\xd8"))
    found.read_jpeg(file);
  else if (file.begins("\x89PNG"))
    found.read_png(file);
  else if (file.begins("RIFF"))
    found.read_webp(file);
  else
    found.read_exif(file);
  return found.found();
}

}  // namespace lade::media
