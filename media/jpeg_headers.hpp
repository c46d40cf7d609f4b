// The headers of the JPEGs that lade decodes itself (ITU-T T.81, annex B).

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace lade::media {

// A Huffman code as stored: the number of codes of 1 to 16 bits, and the symbols in the order of
// their codes (T.81, B.2.4.2). Views of the file.
struct huffman_code {
  std::span<const std::uint8_t> counts;  // 16; empty if the code is not defined
  std::span<const std::uint8_t> symbols;
};

struct jpeg_component {
  std::array<std::int16_t, 64> quantisation{};  // in rows, not zigzag
  huffman_code dc;
  huffman_code ac;
};

// The supported kind: one sequential scan with all components, Huffman codes, 8 bits.
struct jpeg_headers {
  int width = 0;
  int height = 0;
  int count = 0;                             // of components: 1 (grey) or 3
  bool rgb = false;                          // three components are R, G, B; else Y, Cb, Cr
  int across = 1;                            // blocks of the first component per MCU,
  int down = 1;                              // horizontally and vertically; others have one
  int mcu_rows_per_group = 1;                // rows of MCUs that libjpeg decodes at once
  std::array<jpeg_component, 3> components;  // `count` of them
  int restart_interval = 0;                  // in MCUs; 0: no restarts
  std::size_t scan = 0;                      // offset of the entropy-coded bytes

  int blocks() const noexcept { return across * down + count - 1; }  // of an MCU

  // MCUs per row, rows of MCUs, and restarts between them.
  int columns() const noexcept { return (width + 8 * across - 1) / (8 * across); }
  int rows() const noexcept { return (height + 8 * down - 1) / (8 * down); }
  unsigned restarts() const noexcept;

  // The most bytes that the scan can have, with the marker after it.
  std::size_t most_scan_bytes() const noexcept;
};

// The zigzag order: the position in the block of the k-th coefficient (T.81, figure A.6).
inline constexpr std::array<std::uint8_t, 64> jpeg_zigzag{
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// Returns nothing for other kinds of JPEG, for damaged headers, and for headers that are unusual or
// that libjpeg would warn about. libjpeg-turbo reads those files.
std::optional<jpeg_headers> read_jpeg_headers(std::span<const std::byte> file);

}  // namespace lade::media
