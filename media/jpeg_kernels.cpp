#include "jpeg_kernels.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace lade::media {

const std::uint8_t* plain_unstuff(const std::uint8_t* from, const std::uint8_t* end,
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

// An inverse DCT of eight values, `step` apart, times 2^(13 - shift): the algorithm of Loeffler,
// Ligtenberg and Moschytz with 13-bit constants (jidctint.c).
static void transform_line(int* line, std::ptrdiff_t step, int shift) {
  const int x0 = line[0], x1 = line[step], x2 = line[2 * step], x3 = line[3 * step];
  const int x4 = line[4 * step], x5 = line[5 * step], x6 = line[6 * step], x7 = line[7 * step];
  const int round = 1 << (shift - 1);
  if ((x1 | x2 | x3 | x4 | x5 | x6 | x7) == 0) {
    const int all = (x0 * (1 << 13) + round) >> shift;
    for (int i = 0; i < 8; ++i) line[i * step] = all;
    return;
  }
  const int z1 = (x2 + x6) * 4433;
  const int even_2 = z1 - x6 * 15137, even_3 = z1 + x2 * 6270;
  const int even_0 = (x0 + x4) * (1 << 13) + round, even_1 = (x0 - x4) * (1 << 13) + round;

  const int z5 = (x7 + x3 + x5 + x1) * 9633;
  const int z3 = z5 - (x7 + x3) * 16069, z4 = z5 - (x5 + x1) * 3196;
  const int z71 = (x7 + x1) * -7373, z53 = (x5 + x3) * -20995;
  const int odd_0 = x7 * 2446 + z71 + z3, odd_1 = x5 * 16819 + z53 + z4;
  const int odd_2 = x3 * 25172 + z53 + z3, odd_3 = x1 * 12299 + z71 + z4;

  const auto put = [&](std::ptrdiff_t i, int even, int odd) {
    line[i * step] = (even + odd) >> shift;
    line[(7 - i) * step] = (even - odd) >> shift;
  };
  put(0, even_0 + even_3, odd_3);
  put(1, even_1 + even_2, odd_2);
  put(2, even_1 - even_2, odd_1);
  put(3, even_0 - even_3, odd_0);
}

static std::uint8_t byte_of(int value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0, 255));
}

// Whether columns can be transformed without overflow, both here and in 16 bits, in which
// libjpeg-turbo's vector code wraps and saturates. True for all coefficients of 8-bit samples.
static bool columns_are_small(const std::array<int, 64>& block) {
  constexpr int most = 4096;
  std::array<int, 8> sums{};
  for (std::size_t y = 0; y < 8; ++y)
    for (std::size_t x = 0; x < 8; ++x) sums[x] += std::abs(block[8 * y + x]);
  return std::ranges::max(sums) <= most;
}

// The same for rows, after the columns are transformed: the vector code adds two of their values in
// 16 bits.
static bool rows_are_small(const std::array<int, 64>& block) {
  constexpr int most = 16383;
  return std::ranges::all_of(block, [](int value) { return std::abs(value) <= most; });
}

// Dequantises a block, and stores it by rows. Returns false if its columns are not small.
static bool dequantise(const std::int16_t* zigzag, const std::int16_t* quantisation,
                       std::array<int, 64>& block) {
  for (std::size_t k = 0; k < 64; ++k) {
    const auto index = jpeg_zigzag[k];
    block[index] = zigzag[k] * quantisation[index];
  }
  return columns_are_small(block);
}

template <int side>
static void store_block(const std::array<int, 64>& block, std::uint8_t* out,
                        std::ptrdiff_t stride) {
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x)
      out[y * stride + x] = byte_of(block[static_cast<std::size_t>(8 * y + x)] + 128);
}

// The transforms return false if the values between the passes are not small.
static bool transform_8(std::array<int, 64>& block) {
  for (int x = 0; x < 8; ++x) transform_line(block.data() + x, 8, 11);
  if (!rows_are_small(block)) return false;
  for (int y = 0; y < 8; ++y) transform_line(block.data() + 8 * y, 1, 18);
  return true;
}

// Eight values, `step` apart, to four, times 2^(13 - shift) (jidctred.c). The fifth value has no
// influence.
static void transform_line_to_4(int* line, std::ptrdiff_t step, int shift) {
  const int x1 = line[step], x2 = line[2 * step], x3 = line[3 * step];
  const int x5 = line[5 * step], x6 = line[6 * step], x7 = line[7 * step];
  const int round = 1 << shift;
  const int mean = line[0] * (1 << 14) + round;
  const int even = x2 * 15137 - x6 * 6270;
  const int outer = x3 * 7373 + x1 * 20995 - x7 * 4176 - x5 * 4926;
  const int inner = x5 * 11893 + x1 * 8697 - x7 * 1730 - x3 * 17799;
  line[0] = (mean + even + outer) >> (shift + 1);
  line[3 * step] = (mean + even - outer) >> (shift + 1);
  line[step] = (mean - even + inner) >> (shift + 1);
  line[2 * step] = (mean - even - inner) >> (shift + 1);
}

static bool transform_4(std::array<int, 64>& block) {
  for (int x = 0; x < 8; ++x) transform_line_to_4(block.data() + x, 8, 11);
  for (int y = 0; y < 4; ++y) transform_line_to_4(block.data() + 8 * y, 1, 18);
  return true;
}

// Eight values to two: only the first and the odd ones have influence.
static void transform_line_to_2(int* line, std::ptrdiff_t step, int shift) {
  const int mean = line[0] * (1 << 15) + (1 << (shift + 1));
  const int odd =
      line[step] * 29692 - line[3 * step] * 10426 + line[5 * step] * 6967 - line[7 * step] * 5906;
  line[0] = (mean + odd) >> (shift + 2);
  line[step] = (mean - odd) >> (shift + 2);
}

static bool transform_2(std::array<int, 64>& block) {
  for (const int x : {0, 1, 3, 5, 7}) transform_line_to_2(block.data() + x, 8, 11);
  for (int y = 0; y < 2; ++y) transform_line_to_2(block.data() + 8 * y, 1, 18);
  return true;
}

template <int side, auto transform_samples>
static bool transform_plain(const std::int16_t* const* blocks, int count,
                            const std::int16_t* quantisation, std::uint8_t* const* out,
                            std::ptrdiff_t stride) {
  std::array<int, 64> block;
  for (int i = 0; i < count; ++i) {
    if (!dequantise(blocks[i], quantisation, block) || !transform_samples(block)) return false;
    store_block<side>(block, out[i], stride);
  }
  return true;
}

bool transform_to_1(const std::int16_t* const* blocks, int count, const std::int16_t* quantisation,
                    std::uint8_t* const* out, std::ptrdiff_t) {
  constexpr int most = 4091;  // libjpeg's range limit table wraps beyond this
  for (int i = 0; i < count; ++i) {
    const int mean = blocks[i][0] * quantisation[0];
    if (std::abs(mean) > most) return false;
    *out[i] = byte_of(((mean + 4) >> 3) + 128);
  }
  return true;
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

static void to_rgb_plain(const std::uint8_t* const* in, int count, std::uint8_t* const* out) {
  constexpr int half = 1 << 15;
  for (int x = 0; x < count; ++x) {
    const int y = in[0][x], cb = in[1][x] - 128, cr = in[2][x] - 128;
    out[0][x] = byte_of(y + ((91881 * cr + half) >> 16));
    out[1][x] = byte_of(y + ((-22554 * cb - 46802 * cr + half) >> 16));
    out[2][x] = byte_of(y + ((116130 * cb + half) >> 16));
  }
}

const jpeg_kernels plain_jpeg{.unstuff = plain_unstuff,
                              .entropy = &plain_entropy,
                              .transform = transform_plain<8, transform_8>,
                              .transform_to_4 = transform_plain<4, transform_4>,
                              .transform_to_2 = transform_plain<2, transform_2>,
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
