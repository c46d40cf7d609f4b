#include <lade/support/orientation.hpp>
#include <lade/support/tiff_tags.hpp>

namespace lade::support {

static constexpr std::string_view exif_prefix("Exif\0\0", 6);
static constexpr std::string_view xmp_prefix("http://ns.adobe.com/xap/1.0/\0", 29);

static int valid_orientation(unsigned value) noexcept {
  return value >= 1 && value <= 8 ? static_cast<int>(value) : 0;
}

// The orientation in an XMP packet, as an attribute or an element; 0 if there is none.
static int orientation_in_xmp(std::string_view packet) noexcept {
  constexpr std::string_view name = "tiff:Orientation";
  for (auto at = packet.find(name); at != packet.npos; at = packet.find(name, at + 1)) {
    const auto value = packet.find_first_not_of("= \t\r\n\"'>", at + name.size());
    if (value == packet.npos) return 0;
    if (const int found = valid_orientation(static_cast<unsigned>(packet[value] - '0')))
      return found;
  }
  return 0;
}

void orientation_search::read_exif(byte_view tiff) noexcept {
  constexpr std::uint32_t orientation = 274;
  constexpr std::uint32_t packet = 700;
  const tiff_tags tags(tiff);
  if (exif_ == 0) exif_ = valid_orientation(tags.short_of(orientation));
  read_xmp(tags.bytes_of(packet).text());
}

void orientation_search::read_xmp(std::string_view packet) noexcept {
  if (xmp_ == 0) xmp_ = orientation_in_xmp(packet);
}

void orientation_search::read_prefixed(byte_view body) noexcept {
  if (body.begins(exif_prefix)) read_exif(body.from(exif_prefix.size()));
  if (body.begins(xmp_prefix)) read_xmp(body.text().substr(xmp_prefix.size()));
}

// A segment is a marker of two bytes, and a length that includes its own two bytes.
void orientation_search::read_jpeg(byte_view file) noexcept {
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

}  // namespace lade::support
