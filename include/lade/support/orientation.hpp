// orientation_search: finds the orientation of an image in its Exif and XMP metadata.

#pragma once

#include <lade/support/byte_view.hpp>

#include <string_view>

namespace lade::support {

// Collects the orientation, 1 to 8 as in Exif, from the metadata blocks of one file. The first
// valid value of Exif wins; without one, the first of XMP. Any bytes are safe to read.
class orientation_search {
 public:
  // Reads a TIFF structure, which may contain XMP as well.
  void read_exif(byte_view tiff) noexcept;
  void read_xmp(std::string_view packet) noexcept;

  // Reads Exif or XMP after the prefix that it has in JPEG. Ignores other bytes.
  void read_prefixed(byte_view body) noexcept;

  // Reads the segments of a JPEG file up to its first scan.
  void read_jpeg(byte_view file) noexcept;

  // The orientation; 1 if none was found.
  int found() const noexcept { return exif_ != 0 ? exif_ : xmp_ != 0 ? xmp_ : 1; }

 private:
  int exif_ = 0;  // 0: not found
  int xmp_ = 0;   // 0: not found
};

}  // namespace lade::support
