// The inner loops of lade's JPEG decoder, in plain C++ and for each instruction set. All produce
// the same bits as libjpeg-turbo, whose sources are named by file.

#pragma once

#include "jpeg_entropy.hpp"
#include "simd.hpp"

#include <cstddef>
#include <cstdint>

namespace lade::media {

// Dequantises and transforms `count` blocks of one component. `blocks` are in zigzag order, aligned
// to 64 bytes. out[i] is the first sample of a block, whose rows are `stride` apart. Returns false
// if a value is so large that libjpeg-turbo's vector code would saturate it.
using jpeg_transform = bool (*)(const std::int16_t* const* blocks, int count,
                                const std::int16_t* quantisation, std::uint8_t* const* out,
                                std::ptrdiff_t stride);

struct jpeg_kernels {
  // Rows need this padding on both sides: whole vectors are read and written.
  static constexpr int row_padding = 64;

  // Copies the bytes of a scan up to the next marker or `end`, without the 0 after each 0xff.
  // Writes up to 64 bytes more. Returns the position of the marker, and advances `to` past the
  // copied bytes.
  const std::uint8_t* (*unstuff)(const std::uint8_t* from, const std::uint8_t* end,
                                 std::uint8_t*& to);

  const jpeg_entropy* entropy;

  // Transforms to 8 x 8 samples (jidctint.c), in the arithmetic of libjpeg-turbo's vector code.
  jpeg_transform transform;

  // Transform to 4 x 4 and 2 x 2 samples (jidctred.c).
  jpeg_transform transform_to_4;
  jpeg_transform transform_to_2;

  // Smooth upsampling (jdsample.c, h2v1_fancy_upsample and h2v2_fancy_upsample). Each of `count`
  // samples becomes two: 3/4 of it plus 1/4 of the left or of the right neighbour. Reads one sample
  // before and one after the row. double_both first blends `near` and `far`, the row above or
  // below, in the same ratio.
  void (*double_columns)(const std::uint8_t* in, int count, std::uint8_t* out);
  void (*double_both)(const std::uint8_t* near, const std::uint8_t* far, int count,
                      std::uint8_t* out);

  // Smooth upsampling to one of two rows (h1v2_fancy_upsample). `bias`: 1 for the upper row, 2 for
  // the lower one.
  void (*double_rows)(const std::uint8_t* near, const std::uint8_t* far, int bias, int count,
                      std::uint8_t* out);

  // Converts Y, Cb and Cr to R, G and B (jdcolor.c).
  void (*to_rgb)(const std::uint8_t* const* in, int count, std::uint8_t* const* out);
};

// The kernels of a level that this CPU supports.
const jpeg_kernels& jpeg_kernels_of(simd level) noexcept;

// Transforms to one sample (jidctred.c).
bool transform_to_1(const std::int16_t* const* blocks, int count, const std::int16_t* quantisation,
                    std::uint8_t* const* out, std::ptrdiff_t stride);

// jpeg_kernels::unstuff with memchr.
const std::uint8_t* plain_unstuff(const std::uint8_t* from, const std::uint8_t* end,
                                  std::uint8_t*& to);

extern const jpeg_kernels plain_jpeg;
extern const jpeg_kernels avx2_jpeg;
extern const jpeg_kernels avx512_jpeg;

}  // namespace lade::media
