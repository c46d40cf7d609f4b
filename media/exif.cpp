#include "exif.hpp"
#include "png_text.hpp"
#include "tiff_tags.hpp"

#include <string_view>

namespace lade::media {

static constexpr std::string_view exif_prefix("Exif\0\0", 6);
static constexpr std::string_view xmp_prefix("http://ns.adobe.com/xap/1.0/\0", 29);

static int valid_orientation(unsigned value) {
  return value >= 1 && value <= 8 ? static_cast<int>(value) : 0;
}

// The orientation in an XMP packet, an attribute or an element; 0 if there is none.
static int xmp_orientation(std::string_view packet) {
  constexpr std::string_view name = "tiff:Orientation";
  for (auto at = packet.find(name); at != packet.npos; at = packet.find(name, at + 1)) {
    const auto value = packet.find_first_not_of("= \t\r\n\"'>", at + name.size());
    if (value == packet.npos) return 0;
    if (const int found = valid_orientation(static_cast<unsigned>(packet[value] - '0')))
      return found;
  }
  return 0;
}

// Whether a PNG's text with this keyword holds Exif or XMP as hexadecimal digits.
static bool is_raw_profile(std::string_view keyword) {
  constexpr std::string_view prefix = "Raw profile type ";
  if (!keyword.starts_with(prefix)) return false;
  const auto type = keyword.substr(prefix.size());
  return type == "exif" || type == "APP1" || type == "xmp";
}

// What the parts of one file say, each 0 until one says something.
struct orientation_search {
  int exif = 0;
  int xmp = 0;
  std::size_t text_room = 1 << 20;  // bytes that all compressed texts of a PNG may still inflate to

  void read_exif(byte_view tiff) {
    constexpr std::uint32_t orientation = 274;
    constexpr std::uint32_t packet = 700;
    const tiff_tags tags(tiff);
    if (exif == 0) exif = valid_orientation(tags.short_of(orientation));
    read_xmp(tags.bytes_of(packet).text());
  }
  void read_xmp(std::string_view packet) {
    if (xmp == 0) xmp = xmp_orientation(packet);
  }
  // Exif or XMP, with the prefix that JPEG asks for.
  void read_prefixed(byte_view body) {
    if (body.begins(exif_prefix)) read_exif(body.from(exif_prefix.size()));
    if (body.begins(xmp_prefix)) read_xmp(body.text().substr(xmp_prefix.size()));
  }

  // Segments: a marker of two bytes, then a length that counts itself. The scan ends the search.
  void read_jpeg(byte_view file) {
    constexpr std::uint64_t app1 = 0xffe1;
    constexpr std::uint64_t start_of_scan = 0xffda;
    for (std::size_t at = 2; at + 4 <= file.size();) {
      const auto marker = file.big(at, 2);
      if (marker == 0xffff) {  // a fill byte
        ++at;
        continue;
      }
      const auto length = file.big(at + 2, 2);
      if (marker < 0xff00 || marker == start_of_scan || length < 2) return;
      if (marker == app1) read_prefixed(file.part(at + 4, length - 2));
      at += 2 + length;
    }
  }

  // Chunks: a length, a name, the body, a checksum.
  void read_png(byte_view file) {
    for (std::size_t at = 8; at + 12 <= file.size();) {
      const auto length = file.big(at, 4);
      const auto name = file.part(at + 4, 4).text();
      const auto body = file.part(at + 8, length);
      if (name == "eXIf") read_exif(body);
      if (name == "tEXt" || name == "zTXt" || name == "iTXt") read_text(name, body);
      at += 12 + length;
    }
  }

  void read_text(std::string_view chunk, byte_view body) {
    const auto keyword = png_keyword(body);
    const bool packet = keyword == "XML:com.adobe.xmp";
    if (!packet && !is_raw_profile(keyword)) return;
    const auto text = read_png_text(chunk, body, text_room);
    if (packet) return read_xmp(text);
    const auto bytes = raw_profile(text);
    if (keyword.ends_with(" xmp")) read_xmp(bytes);
    read_prefixed(std::as_bytes(std::span(bytes)));
  }

  // Chunks: a name, a length, the body, rounded up to an even size.
  void read_webp(byte_view file) {
    for (std::size_t at = 12; at + 8 <= file.size();) {
      const auto length = file.little(at + 4, 4);
      const auto name = file.part(at, 4).text();
      const auto body = file.part(at + 8, length);
      if (name == "EXIF")
        read_exif(body.begins(exif_prefix) ? body.from(exif_prefix.size()) : body);
      if (name == "XMP ") read_xmp(body.text());
      at += 8 + length + length % 2;
    }
  }
};

int exif_orientation(byte_view file) {
  orientation_search found;
  if (file.begins("\xff\xd8"))
    found.read_jpeg(file);
  else if (file.begins("\x89PNG"))
    found.read_png(file);
  else if (file.begins("RIFF"))
    found.read_webp(file);
  else
    found.read_exif(file);
  if (found.exif != 0) return found.exif;
  return found.xmp != 0 ? found.xmp : 1;
}

}  // namespace lade::media
