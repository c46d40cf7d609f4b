#include "jpeg_kernels.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace lade::media {

static const std::uint8_t* unstuff_plain(const std::uint8_t* from, const std::uint8_t* end,
                                         std::uint8_t*& to) {
  while (from < end) {
    const auto* found = static_cast<const std::uint8_t*>(
        std::memchr(from, 0xff, static_cast<std::size_t>(end - from)));
    const auto* const stop = found != nullptr ? found : end;
    to = std::copy(from, stop, to);
    if (found == nullptr || end - found < 2 || found[1] != 0) return stop;
    *to++ = 0xff;
    from = found + 2;
  }
  return end;
}

static std::int16_t wrap_16(int value) { return static_cast<std::int16_t>(value); }

static std::int16_t saturate_16(int value) {
  return static_cast<std::int16_t>(std::clamp(value, -32768, 32767));
}

// a * x + b * y, wrapping.
static std::uint32_t dot(int a, std::int16_t x, int b, std::int16_t y) {
  return static_cast<std::uint32_t>(a * x) + static_cast<std::uint32_t>(b * y);
}

// The transform along one axis, of eight values that are `step` apart, times 2^(13 - shift): the
// algorithm of Loeffler, Ligtenberg and Moschytz with constants of 13 bits, as in jidctint.c.
static void transform_line(std::int16_t* line, std::ptrdiff_t step, int shift) {
  std::array<std::int16_t, 8> x;
  for (std::size_t i = 0; i < 8; ++i) x[i] = line[static_cast<std::ptrdiff_t>(i) * step];
  const auto round = std::uint32_t{1} << (shift - 1);
  const auto widened = [round](std::int16_t value) {
    return static_cast<std::uint32_t>(value * (1 << 13)) + round;
  };
  const auto even_2 = dot(4433, x[2], 4433 - 15137, x[6]);
  const auto even_3 = dot(4433 + 6270, x[2], 4433, x[6]);
  const auto even_0 = widened(wrap_16(x[0] + x[4]));
  const auto even_1 = widened(wrap_16(x[0] - x[4]));

  const auto sum_73 = wrap_16(x[7] + x[3]), sum_51 = wrap_16(x[5] + x[1]);
  const auto z3 = dot(9633 - 16069, sum_73, 9633, sum_51);
  const auto z4 = dot(9633, sum_73, 9633 - 3196, sum_51);
  const auto odd_0 = dot(2446 - 7373, x[7], -7373, x[1]) + z3;
  const auto odd_1 = dot(16819 - 20995, x[5], -20995, x[3]) + z4;
  const auto odd_2 = dot(-20995, x[5], 25172 - 20995, x[3]) + z3;
  const auto odd_3 = dot(-7373, x[7], 12299 - 7373, x[1]) + z4;

  const auto put = [&](std::ptrdiff_t i, std::uint32_t even, std::uint32_t odd) {
    line[i * step] = saturate_16(static_cast<int>(even + odd) >> shift);
    line[(7 - i) * step] = saturate_16(static_cast<int>(even - odd) >> shift);
  };
  put(0, even_0 + even_3, odd_3);
  put(1, even_1 + even_2, odd_2);
  put(2, even_1 - even_2, odd_1);
  put(3, even_0 - even_3, odd_0);
}

static bool transform_block_plain(const std::int16_t* zigzag, const std::int16_t* quantisation,
                                  std::uint8_t* out, std::ptrdiff_t stride) {
  std::array<std::int16_t, 64> block;
  for (std::size_t k = 0; k < 64; ++k) {
    const auto place = jpeg_zigzag[k];
    block[place] = wrap_16(zigzag[k] * quantisation[place]);
  }
  constexpr int most = 8191;
  const bool exact = std::ranges::all_of(block.begin(), block.begin() + 8,
                                         [](int value) { return value >= -most && value <= most; });
  for (int x = 0; x < 8; ++x) transform_line(block.data() + x, 8, 11);
  for (int y = 0; y < 8; ++y) transform_line(block.data() + 8 * y, 1, 18);
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 8; ++x)
      out[y * stride + x] = static_cast<std::uint8_t>(
          std::clamp<int>(block[static_cast<std::size_t>(8 * y + x)], -128, 127) + 128);
  return exact;
}

static bool transform_plain(const std::int16_t* const* blocks, int count,
                            const std::int16_t* quantisation, std::uint8_t* const* out,
                            std::ptrdiff_t stride) {
  bool exact = true;
  for (int i = 0; i < count; ++i)
    exact &= transform_block_plain(blocks[i], quantisation, out[i], stride);
  return exact;
}

static void double_columns_plain(const std::uint8_t* in, int count, std::uint8_t* out) {
  for (int x = 0; x < count; ++x) {
    out[2 * x] = static_cast<std::uint8_t>((3 * in[x] + in[x - 1] + 1) >> 2);
    out[2 * x + 1] = static_cast<std::uint8_t>((3 * in[x] + in[x + 1] + 2) >> 2);
  }
}

static void double_both_plain(const std::uint8_t* near, const std::uint8_t* far, int count,
                              std::uint8_t* out) {
  const auto sum = [&](int x) { return 3 * near[x] + far[x]; };
  for (int x = 0; x < count; ++x) {
    out[2 * x] = static_cast<std::uint8_t>((3 * sum(x) + sum(x - 1) + 8) >> 4);
    out[2 * x + 1] = static_cast<std::uint8_t>((3 * sum(x) + sum(x + 1) + 7) >> 4);
  }
}

static void double_rows_plain(const std::uint8_t* near, const std::uint8_t* far, int bias,
                              int count, std::uint8_t* out) {
  for (int x = 0; x < count; ++x)
    out[x] = static_cast<std::uint8_t>((3 * near[x] + far[x] + bias) >> 2);
}

static std::uint8_t byte_of(int value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0, 255));
}

static void to_rgb_plain(const std::uint8_t* const* in, int count, std::uint8_t* const* out) {
  constexpr int half = 1 << 15;
  for (int x = 0; x < count; ++x) {
    const int y = in[0][x], cb = in[1][x] - 128, cr = in[2][x] - 128;
    out[0][x] = byte_of(y + ((91881 * cr + half) >> 16));
    out[1][x] = byte_of(y + ((-22554 * cb - 46802 * cr + half) >> 16));
    out[2][x] = byte_of(y + ((116130 * cb + half) >> 16));
  }
}

const jpeg_kernels plain_jpeg{.unstuff = unstuff_plain,
                              .entropy = &plain_entropy,
                              .transform = transform_plain,
                              .double_columns = double_columns_plain,
                              .double_both = double_both_plain,
                              .double_rows = double_rows_plain,
                              .to_rgb = to_rgb_plain};

#if defined(__x86_64__)

const jpeg_kernels& jpeg_kernels_of(simd level) noexcept {
  switch (level) {
    case simd::avx512: return avx512_jpeg;
    case simd::avx2: return avx2_jpeg;
    case simd::plain: break;
  }
  return plain_jpeg;
}

#else

const jpeg_kernels& jpeg_kernels_of(simd) noexcept { return plain_jpeg; }

#endif

}  // namespace lade::media
