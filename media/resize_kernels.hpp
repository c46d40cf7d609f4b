// The inner loops of a resize, in plain C++ and for each instruction set. All produce the same
// bits.

#pragma once

#include "resize_axis.hpp"
#include "simd.hpp"

#include <cstdint>

namespace lade::media {

// The conversion of samples of 9 to 16 bits, in words of native order, to 8-bit samples with
// fractional bits. The upper 8 bits are the integer part. Then the distance from `centre` is
// increased by `gain`, so that the highest code of full range becomes 255, and the middle of chroma
// stays 128.
struct wide_samples {
  int left = 0;             // ignored bits above the significant ones
  std::int16_t centre = 0;  // with blend_precision fractional bits
  std::int16_t gain = 0;    // in multiples of 2^-15
};

// Between the two passes, samples have 16 bits, `blend_precision` of them fractional. Outputs are
// written in whole vectors, so they need `row_padding` more samples. The inputs of filter and of
// split need the same padding, in samples or pixels; its values are ignored.
struct resize_kernels {
  static constexpr int blend_precision = 6;
  static constexpr int most_blended = 255 << blend_precision;
  static constexpr int row_padding = resize_axis::row_padding;

  // The vertical pass: out[x] = the weighted sum of rows[k][x], for x < count. If `taps` is odd,
  // rows[taps] is any row, with a weight of 0. No weight is negative.
  void (*blend)(const std::uint8_t* const* rows, const std::int16_t* weights, int taps, int count,
                std::int16_t* out);

  // The same for words, which may be unaligned. No result is above 255.
  void (*blend_16)(const std::uint8_t* const* rows, const std::int16_t* weights, int taps,
                   int count, const wide_samples& samples, std::int16_t* out);

  // Split `count` interleaved pixels of two, three or four channels.
  void (*split_2)(const std::int16_t* in, int count, std::int16_t* const* out);
  void (*split_3)(const std::int16_t* in, int count, std::int16_t* const* out);
  void (*split_4)(const std::int16_t* in, int count, std::int16_t* const* out);

  // The horizontal pass over one channel. in[0] is source sample axis.first(). `blocks`: the blocks
  // of the axis, or null if resize_blocks::plan returned false.
  void (*filter)(const std::int16_t* in, const resize_axis& axis, const resize_blocks* blocks,
                 std::uint8_t* out);
};

// The kernels of a level that this CPU supports.
const resize_kernels& resize_kernels_of(simd level) noexcept;

extern const resize_kernels plain_resize;
extern const resize_kernels avx2_resize;
extern const resize_kernels avx512_resize;

}  // namespace lade::media
