// Segments of JPEG files that state an orientation: marker and body, as tiny_jpeg takes them.

#pragma once

#include <string>

namespace lade::cuda {

inline std::string exif_segment(bool little, int orientation) {
  const std::string value(1, static_cast<char>(orientation));
  using namespace std::string_literals;
  if (little)
    return "\xe1" + "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"s + value + "\0\0\0"s;
  return "\xe1" + "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"s + value + "\0\0"s;
}

inline std::string xmp_segment(const std::string& packet) {
  using namespace std::string_literals;
  return "\xe1" + "http://ns.adobe.com/xap/1.0/\0"s + packet;
}

// XMP in tag 700 of Exif.
inline std::string exif_segment_with_xmp(const std::string& packet) {
  using namespace std::string_literals;
  return "\xe1" + "Exif\0\0II*\0\x08\0\0\0\x01\0\xbc\x02\x01\0"s +
         static_cast<char>(packet.size()) + "\0\0\0\x1a\0\0\0\0\0\0\0"s + packet;
}

}  // namespace lade::cuda
