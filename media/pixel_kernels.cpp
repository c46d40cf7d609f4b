#include "pixel_kernels.hpp"

#include <bit>
#include <cmath>

namespace lade::media {

static void interleave_plain(const std::uint8_t* const* in, int count, std::uint8_t* out) {
  for (int x = 0; x < count; ++x)
    for (int c = 0; c < 3; ++c) out[3 * x + c] = in[c][x];
}

static void interleave_4_plain(const std::uint8_t* const* in, int count, std::uint8_t* out) {
  for (int x = 0; x < count; ++x)
    for (int c = 0; c < 4; ++c) out[4 * x + c] = in[c][x];
}

static void transpose_16_plain(const std::uint8_t* in, std::size_t stride, std::uint8_t* out,
                               std::size_t to_stride) {
  for (std::size_t y = 0; y < 16; ++y)
    for (std::size_t x = 0; x < 16; ++x) out[x * to_stride + y] = in[y * stride + x];
}

static std::uint8_t clamp_to_byte(int value) {
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

// y + y luma of colour_conversion, plus half a unit of the result (8 / 16) for rounding.
static int full_luma(std::uint8_t sample, const colour_conversion& by) {
  const int y = (sample - by.offset) * 16;
  return y + multiply_q15(y, by.luma) + 8;
}

static void yuv_to_rgb_plain(std::uint8_t* const* rows, int count, const colour_conversion& by) {
  for (int x = 0; x < count; ++x) {
    const int y = full_luma(rows[0][x], by);
    const int u = (rows[1][x] - 128) * 16;
    const int v = (rows[2][x] - 128) * 16;
    const int green = multiply_q15(u, by.green_u) + multiply_q15(v, by.green_v);
    rows[0][x] = clamp_to_byte((y + v + multiply_q15(v, by.red)) >> 4);
    rows[1][x] = clamp_to_byte((y - v + green) >> 4);
    rows[2][x] = clamp_to_byte((y + 2 * u + multiply_q15(u, by.blue)) >> 4);
  }
}

static void expand_plain(std::uint8_t* row, int count) {
  for (int x = 0; x < count; ++x) row[x] = clamp_to_byte(full_luma(row[x], limited_range) >> 4);
}

static float normalised(const std::uint8_t* in, int x, const normalisation& by) {
  const auto i = static_cast<std::size_t>(x % normalisation::period);
  return std::fma(static_cast<float>(in[x]), by.scale[i], by.bias[i]);
}

static std::uint16_t round_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// Rounds a finite value to IEEE 754 binary16, to nearest even.
static std::uint16_t round_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const auto magnitude = bits & 0x7fffffff;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520 and more round to infinity
  if (magnitude < 0x38800000) {                       // below 2^-14: multiples of 2^-24
    const float steps = std::nearbyint(std::abs(value) * 0x1p24F);
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(steps));
  }
  const auto rebased = magnitude - ((127 - 15) << 23);
  return static_cast<std::uint16_t>(sign | ((rebased + 0xfff + ((rebased >> 13) & 1)) >> 13));
}

static void to_f32_plain(const std::uint8_t* in, int count, const normalisation& by, float* out) {
  for (int x = 0; x < count; ++x) out[x] = normalised(in, x, by);
}

static void to_f16_plain(const std::uint8_t* in, int count, const normalisation& by,
                         std::uint16_t* out) {
  for (int x = 0; x < count; ++x) out[x] = round_to_f16(normalised(in, x, by));
}

static void to_bf16_plain(const std::uint8_t* in, int count, const normalisation& by,
                          std::uint16_t* out) {
  for (int x = 0; x < count; ++x) out[x] = round_to_bf16(normalised(in, x, by));
}

const pixel_kernels plain_pixels{
    .yuv_to_rgb = yuv_to_rgb_plain,
    .expand = expand_plain,
    .interleave = interleave_plain,
    .interleave_4 = interleave_4_plain,
    .transpose_16 = transpose_16_plain,
    .to_f32 = to_f32_plain,
    .to_f16 = to_f16_plain,
    .to_bf16 = to_bf16_plain,
};

#if defined(__x86_64__)

const pixel_kernels& pixel_kernels_of(simd level) noexcept {
  switch (level) {
    case simd::plain: return plain_pixels;
    case simd::avx2: return avx2_pixels;
    case simd::avx512: return avx512_pixels;
  }
  return plain_pixels;
}

#else

const pixel_kernels& pixel_kernels_of(simd) noexcept { return plain_pixels; }

#endif

}  // namespace lade::media
