// The inner loops of a resize, in plain C++ and for each instruction set. All give the same bits.

#pragma once

#include "resize_axis.hpp"
#include "simd.hpp"

#include <cstdint>

namespace lade::media {

// Samples of 9 to 16 bits in words of this machine, and how they become 8-bit samples with
// fractional bits: by the value of their upper 8 bits, whose distance from `centre` then changes by
// `gain`. So the highest code of full range becomes 255, and the middle of chroma stays 128.
struct wide_samples {
  int left = 0;             // bits above the significant ones, which are ignored
  std::int16_t centre = 0;  // with blend_precision fractional bits
  std::int16_t gain = 0;    // in multiples of 2^-15
};

// Rows of samples between the two passes are 16 bits with `blend_precision` fractional bits. All
// outputs are written in whole vectors: they need room for `row_padding` samples behind them. So do
// the inputs of filter, and for as many pixels those of split, whose values there do not matter.
struct resize_kernels {
  static constexpr int blend_precision = 6;
  static constexpr int most_blended = 255 << blend_precision;
  static constexpr int row_padding = resize_axis::row_padding;

  // The vertical pass: out[x] = the weighted sum of rows[k][x], for x < count. If `taps` is odd,
  // rows[taps] is any row, and its weight 0. No weight is below 0.
  void (*blend)(const std::uint8_t* const* rows, const std::int16_t* weights, int taps, int count,
                std::int16_t* out);

  // The same for words, which need not be aligned. No result is above 255.
  void (*blend_16)(const std::uint8_t* const* rows, const std::int16_t* weights, int taps,
                   int count, const wide_samples& samples, std::int16_t* out);

  // Takes `count` interleaved pixels of two, three or four channels apart.
  void (*split_2)(const std::int16_t* in, int count, std::int16_t* const* out);
  void (*split_3)(const std::int16_t* in, int count, std::int16_t* const* out);
  void (*split_4)(const std::int16_t* in, int count, std::int16_t* const* out);

  // The horizontal pass over one channel. in[0] is source sample axis.first(). `blocks` are those
  // of the axis, or null when they do not exist.
  void (*filter)(const std::int16_t* in, const resize_axis& axis, const resize_blocks* blocks,
                 std::uint8_t* out);
};

// The kernels of a level, which this machine must have.
const resize_kernels& resize_kernels_of(simd level) noexcept;

extern const resize_kernels plain_resize;
extern const resize_kernels avx2_resize;
extern const resize_kernels avx512_resize;

}  // namespace lade::media
