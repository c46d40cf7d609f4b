// The inner loops of lade's own decoder of JPEG, in plain C++ and for each instruction set. All
// give the same bits, those of libjpeg-turbo.

#pragma once

#include "jpeg_entropy.hpp"
#include "simd.hpp"

#include <cstddef>
#include <cstdint>

namespace lade::media {

// Dequantises and transforms `count` blocks of one component. `blocks` are in zigzag order, aligned
// to 64 bytes; out[i] is the first sample of a block, whose rows are `stride` apart. False if a
// value is so large that libjpeg-turbo's vector code would cut it off.
using jpeg_transform = bool (*)(const std::int16_t* const* blocks, int count,
                                const std::int16_t* quantisation, std::uint8_t* const* out,
                                std::ptrdiff_t stride);

struct jpeg_kernels {
  // What rows need behind and before them: whole vectors are read and written.
  static constexpr int row_padding = 64;

  // Copies the bytes of a scan up to the next marker or to `end`, without the 0 behind each 0xff.
  // Writes up to 64 bytes more. Returns where the marker is, and sets `to` behind what was copied.
  const std::uint8_t* (*unstuff)(const std::uint8_t* from, const std::uint8_t* end,
                                 std::uint8_t*& to);

  const jpeg_entropy* entropy;

  // To 8 x 8 samples (jidctint.c), in the arithmetic of libjpeg-turbo's vector code.
  jpeg_transform transform;

  // To 4 x 4 and 2 x 2 samples (jidctred.c).
  jpeg_transform transform_to_4;
  jpeg_transform transform_to_2;

  // Smooth upsampling (jdsample.c): each of `count` samples becomes two beside each other, of which
  // the nearer neighbour is a quarter. Reads one sample before and behind the row. The second
  // blends with the row above or below in the same way.
  void (*double_columns)(const std::uint8_t* in, int count, std::uint8_t* out);
  void (*double_both)(const std::uint8_t* near, const std::uint8_t* far, int count,
                      std::uint8_t* out);

  // A row of twice as many: `bias` is 1 above and 2 below the middle of the sample.
  void (*double_rows)(const std::uint8_t* near, const std::uint8_t* far, int bias, int count,
                      std::uint8_t* out);

  // Y, Cb and Cr to R, G and B (jdcolor.c).
  void (*to_rgb)(const std::uint8_t* const* in, int count, std::uint8_t* const* out);
};

// The kernels of a level, which this machine must have.
const jpeg_kernels& jpeg_kernels_of(simd level) noexcept;

// To one sample (jidctred.c).
bool transform_to_1(const std::int16_t* const* blocks, int count, const std::int16_t* quantisation,
                    std::uint8_t* const* out, std::ptrdiff_t stride);

// By memchr, which is quick.
const std::uint8_t* plain_unstuff(const std::uint8_t* from, const std::uint8_t* end,
                                  std::uint8_t*& to);

extern const jpeg_kernels plain_jpeg;
extern const jpeg_kernels avx2_jpeg;
extern const jpeg_kernels avx512_jpeg;

}  // namespace lade::media
