// How a camera was held, as Exif and XMP tell it: for all that decode or choose a decoder.

#pragma once

#include <lade/detail/common/byte_view.hpp>

#include <string_view>

namespace lade::detail {

// What the parts of one file say of its orientation, 1 to 8. Of several parts of a kind, the first
// one that says something counts. Reads any bytes safely.
class orientation_search {
 public:
  // A TIFF structure, which may hold XMP as well.
  void read_exif(byte_view tiff) noexcept;
  void read_xmp(std::string_view packet) noexcept;

  // Exif or XMP behind the prefix that JPEG asks for; else nothing.
  void read_prefixed(byte_view body) noexcept;

  // The segments of a JPEG file up to its first scan.
  void read_jpeg(byte_view file) noexcept;

  // What Exif says, else what XMP says, else 1.
  int found() const noexcept { return exif_ != 0 ? exif_ : xmp_ != 0 ? xmp_ : 1; }

 private:
  int exif_ = 0;  // each 0 until a part says something
  int xmp_ = 0;
};

}  // namespace lade::detail
