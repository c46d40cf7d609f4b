// The inner loops after a resize: from rows of 8-bit channels to the elements of a tensor, in plain
// C++ and for each instruction set. All produce the same bits: up to 8 bits, arithmetic is of
// integers; a float is the result of one fused multiply-add.

#pragma once

#include "colour_matrix.hpp"
#include "resize_axis.hpp"
#include "simd.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace lade::media {

// value * scale + bias. The factors of successive values repeat with a period that divides 48.
struct normalisation {
  static constexpr int period = 48;
  std::array<float, period> scale;
  std::array<float, period> bias;
};

struct pixel_kernels {
  // Rows that are converted in place need this padding after them: whole vectors are written.
  static constexpr int row_padding = resize_axis::row_padding;

  // Converts rows of Y, Cb, Cr to R, G, B in place.
  void (*yuv_to_rgb)(std::uint8_t* const* rows, int count, const colour_conversion& by);

  // Converts a row of luma, grey, R, G or B from limited to full range.
  void (*expand)(std::uint8_t* row, int count);

  // Interleave three or four channels. Write exactly 3 * count, or 4 * count bytes.
  void (*interleave)(const std::uint8_t* const* in, int count, std::uint8_t* out);
  void (*interleave_4)(const std::uint8_t* const* in, int count, std::uint8_t* out);

  // Transposes 16 rows of 16 bytes: out[x * to_stride + y] = in[y * stride + x].
  void (*transpose_16)(const std::uint8_t* in, std::size_t stride, std::uint8_t* out,
                       std::size_t to_stride);

  // Convert bytes to normalised floats, rounded to nearest even. Write exactly `count` elements.
  void (*to_f32)(const std::uint8_t* in, int count, const normalisation& by, float* out);
  void (*to_f16)(const std::uint8_t* in, int count, const normalisation& by, std::uint16_t* out);
  void (*to_bf16)(const std::uint8_t* in, int count, const normalisation& by, std::uint16_t* out);
};

// The kernels of a level that this CPU supports.
const pixel_kernels& pixel_kernels_of(simd level) noexcept;

extern const pixel_kernels plain_pixels;
extern const pixel_kernels avx2_pixels;
extern const pixel_kernels avx512_pixels;

}  // namespace lade::media
