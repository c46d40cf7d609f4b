// Conversion of Y, Cb and Cr to R, G and B in fixed point.

#pragma once

#include "grid_code.hpp"

#include <cstdint>

#include "grid_mark.hpp"

namespace lade::cuda {

// A matrix and a range for 8-bit samples. With y = 16 (Y - offset), u = 16 (Cb - 128), v = 16 (Cr -
// 128), and each product rounded to an integer:
//
//   16 R = y + y luma + v + v red
//   16 G = y + y luma - v + v green_v + u green_u
//   16 B = y + y luma + 2 u + u blue
//
// The factors are multiples of 2^-15. Each is an entry of the matrix minus the integer that the
// formula adds.
struct yuv_conversion {
  std::int16_t offset = 0;  // the code of black
  std::int16_t luma = 0;
  std::int16_t red = 0;
  std::int16_t green_u = 0;
  std::int16_t green_v = 0;
  std::int16_t blue = 0;
};

// The conversion for the weights of R and B in the luma, `kr` and `kb`. Rec. ITU-T H.273, 8.3:
//
//   R = Y + 2 (1 - kr) Cr,  B = Y + 2 (1 - kb) Cb,  Y = kr R + (1 - kr - kb) G + kb B
//
// In limited range, luma has 219 steps from 16 on, and chroma 224; in full range both have 255.
constexpr yuv_conversion conversion_for(double kr, double kb, bool full_range) noexcept {
  const double kg = 1 - kr - kb;
  const double luma = full_range ? 1 : 255.0 / 219;
  const double chroma = full_range ? 1 : 255.0 / 224;
  const auto fixed = [](double factor) {
    return static_cast<std::int16_t>(factor * 32768 + (factor < 0 ? -0.5 : 0.5));
  };
  yuv_conversion result;
  result.offset = full_range ? 0 : 16;
  result.luma = fixed(luma - 1);
  result.red = fixed(2 * (1 - kr) * chroma - 1);
  result.green_u = fixed(-2 * kb * (1 - kb) / kg * chroma);
  result.green_v = fixed(1 - 2 * kr * (1 - kr) / kg * chroma);
  result.blue = fixed(2 * (1 - kb) * chroma - 2);
  return result;
}

// a * b / 2^15, rounded.
LADE_GRID_CODE int product_q15(int a, int b) { return (a * b + (1 << 14)) >> 15; }

LADE_GRID_CODE unsigned char byte_of_16ths(int value) {
  return static_cast<unsigned char>(bounded(value >> 4, 0, 255));
}

// Converts Y, Cb, Cr to R, G, B in place.
LADE_GRID_CODE void convert_yuv(unsigned char* values, const yuv_conversion& by) {
  const int black = (values[0] - by.offset) * 16;
  const int y = black + product_q15(black, by.luma) + 8;  // with half a unit for rounding
  const int u = (values[1] - 128) * 16;
  const int v = (values[2] - 128) * 16;
  values[0] = byte_of_16ths(y + v + product_q15(v, by.red));
  values[1] = byte_of_16ths(y - v + product_q15(u, by.green_u) + product_q15(v, by.green_v));
  values[2] = byte_of_16ths(y + 2 * u + product_q15(u, by.blue));
}

}  // namespace lade::cuda

#undef LADE_GRID_CODE
