// What the header of an image file says before anything is decoded.

#pragma once

#include <lade/detail/common/byte_view.hpp>
#include <lade/sample.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lade::media {

// The size as stored, and how much memory decoding takes.
struct image_header {
  std::uint64_t width = 0;  // 0 if it cannot be told
  std::uint64_t height = 0;
  double decoded_bytes = 0;        // of a pixel, where the whole image is decoded before it is used
  double planes_bytes = 0;         // of a pixel of a JPEG in planes
  double block_bytes = 0;          // of the parts of a TIFF that are decoded at a time
  std::size_t copied_bytes = 0;    // of the file
  std::size_t few_rows_bytes = 0;  // of a JPEG that is decoded row by row, to colours
  std::size_t all_rows_bytes = 0;  // likewise, to planes or luma
  bool turned = false;             // its rows become columns, by another rule than Exif's
};

// Reads any bytes safely. Of an AVIF, the size is that of the largest of its items.
image_header header_of(detail::byte_view file);

// The file that is a sample's data, or in the field of that name; empty of a sample that will be
// refused.
detail::byte_view encoded_bytes_of(const sample& in, std::string_view name);

// The size that the stored crop of a sample says, if the options name its field; else that of the
// options. 0 x 0 for a crop that will be refused.
image_size size_of_result(const sample& in, const image_options& options);

}  // namespace lade::media
