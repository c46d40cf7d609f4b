#include "resize_kernels.hpp"

#include <algorithm>
#include <cstring>

namespace lade::media {

static void blend_plain(const std::uint8_t* const* rows, const std::int16_t* weights, int taps,
                        int count, std::int16_t* out) {
  constexpr int shift = resize_axis::precision - resize_kernels::blend_precision;
  for (int x = 0; x < count; ++x) {
    int sum = 1 << (shift - 1);
    for (int k = 0; k < taps; ++k) sum += weights[k] * rows[k][x];
    out[x] = static_cast<std::int16_t>(sum >> shift);
  }
}

// A sample in the upper bits of a word.
static int left_aligned(const std::uint8_t* row, int x, int left) {
  std::uint16_t sample = 0;
  std::memcpy(&sample, row + 2 * x, sizeof sample);
  return static_cast<std::uint16_t>(sample << left);
}

static void blend_16_plain(const std::uint8_t* const* rows, const std::int16_t* weights, int taps,
                           int count, const wide_samples& samples, std::int16_t* out) {
  constexpr int shift = resize_axis::precision + 8 - resize_kernels::blend_precision;
  for (int x = 0; x < count; ++x) {
    int sum = 1 << (shift - 1);
    for (int k = 0; k < taps; ++k) sum += weights[k] * left_aligned(rows[k], x, samples.left);
    const int value = sum >> shift;
    const int scaled = value + multiply_q15(value - samples.centre, samples.gain);
    out[x] = static_cast<std::int16_t>(std::min(scaled, resize_kernels::most_blended));
  }
}

template <int Channels>
static void split_plain(const std::int16_t* in, int count, std::int16_t* const* out) {
  for (int x = 0; x < count; ++x)
    for (int c = 0; c < Channels; ++c) out[c][x] = in[Channels * x + c];
}

static void filter_plain(const std::int16_t* in, const resize_axis& axis, const resize_blocks*,
                         std::uint8_t* out) {
  constexpr int shift = resize_axis::precision + resize_kernels::blend_precision;
  for (int i = 0; i < axis.count(); ++i) {
    const auto* source = in + (axis.start(i) - axis.first());
    int sum = 1 << (shift - 1);
    for (int k = 0; k < axis.taps(i); ++k) sum += axis.weights(i)[k] * source[k];
    out[i] = static_cast<std::uint8_t>(sum >> shift);
  }
}

const resize_kernels plain_resize{
    .blend = blend_plain,
    .blend_16 = blend_16_plain,
    .split_2 = split_plain<2>,
    .split_3 = split_plain<3>,
    .split_4 = split_plain<4>,
    .filter = filter_plain,
};

#if defined(__x86_64__)

const resize_kernels& resize_kernels_of(simd level) noexcept {
  switch (level) {
    case simd::plain: return plain_resize;
    case simd::avx2: return avx2_resize;
    case simd::avx512: return avx512_resize;
  }
  return plain_resize;
}

#else

const resize_kernels& resize_kernels_of(simd) noexcept { return plain_resize; }

#endif

}  // namespace lade::media
