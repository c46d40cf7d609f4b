// The inner loops of a resize, in plain C++ and for each instruction set. All give the same bits:
// everything up to 8 bits is integer arithmetic, and floats are made by one fused multiply-add.

#pragma once

#include "colour_matrix.hpp"
#include "resize_axis.hpp"

#include <array>
#include <cstdint>

namespace lade::media {

enum class simd : std::uint8_t { plain, avx2, avx512 };

// The widest that this machine has.
simd best_simd() noexcept;

// value * scale + bias, for values whose channel repeats with a period that divides 48.
struct normalisation {
  static constexpr int period = 48;
  std::array<float, period> scale;
  std::array<float, period> bias;
};

// Rows of samples between the two passes are 16 bits with `blend_precision` fractional bits.
// Outputs of split and filter are written in whole vectors: they need `row_padding` samples of
// room behind them. So do the inputs of split and filter, whose values there do not matter.
struct resize_kernels {
  static constexpr int blend_precision = 6;
  static constexpr int row_padding = resize_axis::row_padding;

  // The vertical pass: out[x] = the weighted sum of rows[k][x], for x < count.
  void (*blend)(const std::uint8_t* const* rows, const std::int16_t* weights, int taps, int count,
                std::int16_t* out);

  // Takes `count` interleaved pixels of three channels apart.
  void (*split)(const std::int16_t* in, int count, std::int16_t* const* out);

  // The horizontal pass over one channel. in[0] is source sample axis.first(). `blocks` are those
  // of the axis, or null when they do not exist.
  void (*filter)(const std::int16_t* in, const resize_axis& axis, const resize_blocks* blocks,
                 std::uint8_t* out);

  // `rows` are Y, Cb, Cr and become R, G, B. Works on whole vectors within row_padding.
  void (*yuv_to_rgb)(std::uint8_t* const* rows, int count, const colour_conversion& by);

  // Limited range to full range, of luma, grey, R, G or B. Works on whole vectors within
  // row_padding.
  void (*expand)(std::uint8_t* row, int count);

  // Puts three channels, or four, together as pixels. Writes exactly 3 * count, or 4 * count bytes.
  void (*interleave)(const std::uint8_t* const* in, int count, std::uint8_t* out);
  void (*interleave_4)(const std::uint8_t* const* in, int count, std::uint8_t* out);

  // 8 bits to normalised floats, rounded to nearest even. Writes exactly `count` elements.
  void (*to_f32)(const std::uint8_t* in, int count, const normalisation& by, float* out);
  void (*to_f16)(const std::uint8_t* in, int count, const normalisation& by, std::uint16_t* out);
  void (*to_bf16)(const std::uint8_t* in, int count, const normalisation& by, std::uint16_t* out);
};

// The kernels of a level, which this machine must have.
const resize_kernels& kernels(simd level) noexcept;

extern const resize_kernels plain_kernels;
extern const resize_kernels avx2_kernels;
extern const resize_kernels avx512_kernels;

}  // namespace lade::media
