// Conversion of Y, Cb and Cr to R, G and B: the matrices and ranges of the standards.

#pragma once

#include <lade/media/picture.hpp>

#include <cstdint>

namespace lade::media {

// A matrix and a range for 8-bit samples, in fixed point. With y = 16 (Y - offset), u = 16 (Cb -
// 128), v = 16 (Cr - 128), and each product rounded to an integer:
//
//   16 R = y + y luma + v + v red
//   16 G = y + y luma - v + v green_v + u green_u
//   16 B = y + y luma + 2 u + u blue
//
// The factors are multiples of 2^-15. Each is an entry of the matrix minus the integer that the
// formula adds, so that it fits into 16 bits.
struct colour_conversion {
  std::int16_t offset;  // the code of black
  std::int16_t luma;
  std::int16_t red;
  std::int16_t green_u;
  std::int16_t green_v;
  std::int16_t blue;
};

// Rec. ITU-T H.273, 8.3: E'R = E'Y + 2 (1 - KR) E'PR, E'B = E'Y + 2 (1 - KB) E'PB, and green from
// E'Y = KR E'R + (1 - KR - KB) E'G + KB E'B. KR and KB are those of Rec. ITU-R BT.601-7, 2.5.1;
// BT.709-6, item 3.2; BT.2020-2, table 4. In limited range (BT.601-7, 2.5.3; BT.709-6, item 3.4),
// luma has 219 steps from 16 on, and chroma 224; in full range (ITU-T T.871) both have 255.
constexpr colour_conversion conversion_of(colour_matrix matrix, bool full_range) noexcept {
  const bool is_601 = matrix == colour_matrix::bt601;
  const bool is_709 = matrix == colour_matrix::bt709;
  const double kr = is_601 ? 0.299 : is_709 ? 0.2126 : 0.2627;
  const double kb = is_601 ? 0.114 : is_709 ? 0.0722 : 0.0593;
  const double kg = 1 - kr - kb;
  const double chroma = full_range ? 1 : 255.0 / 224;
  const auto fixed = [](double factor) {
    return static_cast<std::int16_t>(factor * 32768 + (factor < 0 ? -0.5 : 0.5));
  };
  return {.offset = static_cast<std::int16_t>(full_range ? 0 : 16),
          .luma = fixed(full_range ? 0 : 255.0 / 219 - 1),
          .red = fixed(2 * (1 - kr) * chroma - 1),
          .green_u = fixed(-2 * kb * (1 - kb) / kg * chroma),
          .green_v = fixed(1 - 2 * kr * (1 - kr) / kg * chroma),
          .blue = fixed(2 * (1 - kb) * chroma - 2)};
}

// For samples with a range but without chroma: only `offset` and `luma` are used.
inline constexpr auto limited_range = conversion_of(colour_matrix::bt709, false);

}  // namespace lade::media
