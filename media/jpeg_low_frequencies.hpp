// The order in which the vector code loads coefficients of a block into lanes.

#pragma once

#include "jpeg_headers.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace lade::media {

// The coefficients that are not 0 in some blocks: only the means (DC), also the 4 x 4 lowest
// frequencies, or any.
enum class jpeg_used : std::uint8_t { mean, low, all };

// Positions in a block, by rows, of the eight values of a 128-bit lane.
using jpeg_lane = std::array<std::uint8_t, 8>;

inline constexpr std::array<jpeg_lane, 8> jpeg_rows = [] {
  std::array<jpeg_lane, 8> rows{};
  for (std::size_t i = 0; i < 64; ++i) rows[i / 8][i % 8] = static_cast<std::uint8_t>(i);
  return rows;
}();

// The lowest frequencies: rows 0 and 2 in pairs, then rows 1 and 3. Columns are in the order 0, 2,
// 1, 3, so that the columns of a row are pairs of the same kind.
inline constexpr std::array<jpeg_lane, 2> jpeg_low_pairs{{
    {0, 16, 2, 18, 1, 17, 3, 19},
    {8, 24, 10, 26, 9, 25, 11, 27},
}};

constexpr std::size_t zigzag_index(std::size_t place) {
  std::size_t k = 0;
  while (jpeg_zigzag[k] != place) ++k;
  return k;
}

constexpr bool is_low_frequency(std::size_t k) {
  return jpeg_zigzag[k] / 8 < 4 && jpeg_zigzag[k] % 8 < 4;
}

}  // namespace lade::media
