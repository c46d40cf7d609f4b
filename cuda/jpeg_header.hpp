// What the header of a JPEG file says, before a decoder has been chosen for it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lade::cuda {

// Why an image is not decoded by the GPU.
enum class jpeg_obstacle : std::uint8_t {
  none,
  kind,      // no JPEG, or one of a kind that nvJPEG does not decode
  rotation,  // its orientation is not that of its pixels
  damage,
};

struct jpeg_header {
  int width = 0;
  int height = 0;
  jpeg_obstacle obstacle = jpeg_obstacle::none;  // if not none, the size may be missing
};

// Reads the markers up to the first scan, and looks for the end of the image.
//
// No obstacle have: Huffman-coded baseline, extended and progressive DCT images of 8 bits; grey, or
// Y, Cb and Cr of which the chroma has one sample for 1, 2 or 4 columns and 1 or 2 rows; whose
// orientation is 1 or absent, as the module `media` reads it; of at most 100 scans; that end with
// their marker, behind as many bytes as their pixels take at least. So images of RGB, CMYK, 12
// bits, arithmetic coding and lossless coding have one.
//
// Does not see damage between the markers.
jpeg_header read_jpeg_header(std::span<const std::byte> file) noexcept;

}  // namespace lade::cuda
