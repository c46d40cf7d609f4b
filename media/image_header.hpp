// The size of an image and the memory that its decoder needs, from the file's headers alone.

#pragma once

#include <lade/sample.hpp>
#include <lade/support/byte_view.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lade::media {

// The size as stored, and the memory for decoding. "per pixel" is of the stored image.
struct image_header {
  std::uint64_t width = 0;  // 0 if unknown
  std::uint64_t height = 0;
  double decoded_bytes = 0;        // per pixel, if the whole image is decoded first
  double planes_bytes = 0;         // per pixel of a JPEG decoded to planes
  double block_bytes = 0;          // strips or tiles of a TIFF that are decoded at a time
  std::size_t copied_bytes = 0;    // copied from the file
  std::size_t few_rows_bytes = 0;  // rows of a JPEG decoded to colours
  std::size_t all_rows_bytes = 0;  // rows of a JPEG decoded to planes or luma
  bool turned = false;             // rows become columns by a property other than Exif's
};

// Safe on any bytes. For an AVIF, the size of its largest item.
image_header header_of(support::byte_view file);

// The encoded file: the sample's data or its field `name`. Empty if the decoder will refuse the
// sample.
support::byte_view encoded_bytes_of(const sample& in, std::string_view name);

// The size of the result: that of the sample's stored crop if crop_field is set, else that of the
// options. 0 x 0 if the crop will be refused.
image_size size_of_result(const sample& in, const image_options& options);

}  // namespace lade::media
