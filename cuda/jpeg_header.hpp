// Reads the header of a JPEG file, to choose its decoder.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lade::cuda {

// The reason why the GPU does not decode an image.
enum class jpeg_obstacle : std::uint8_t {
  none,
  kind,      // not a JPEG, or a kind that nvJPEG does not decode
  rotation,  // it must be rotated or mirrored
  damage,
};

struct jpeg_header {
  int width = 0;
  int height = 0;
  jpeg_obstacle obstacle = jpeg_obstacle::none;  // if not none, the size may be missing
};

// Reads the markers up to the first scan, and searches for the end of the image. Does not detect
// damage between the markers.
//
// An image has no obstacle if all of the following is true:
// - Huffman-coded baseline, extended or progressive DCT with 8 bits
// - grey, or Y, Cb and Cr with one chroma sample per 1, 2 or 4 columns and 1 or 2 rows
// - its orientation is 1 or absent, as the module `media` reads it
// - it has at most 100 scans
// - it ends with its marker, after at least as many bytes as its pixels need
//
// So RGB, CMYK, 12 bits, arithmetic coding and lossless coding are obstacles.
jpeg_header read_jpeg_header(std::span<const std::byte> file) noexcept;

}  // namespace lade::cuda
