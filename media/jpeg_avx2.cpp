#include "jpeg_kernels.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include <array>
#include <cstring>
#include <utility>

#define LADE_AVX2 __attribute__((target("avx2,fma,f16c,bmi,bmi2")))

namespace lade::media {

// A pair of factors for _mm256_madd_epi16.
LADE_AVX2 static inline __m256i factors_256(int low, int high) {
  return _mm256_set1_epi32((low & 0xffff) | static_cast<int>(static_cast<unsigned>(high) << 16));
}

// 32-bit values of 16 lanes: those that unpacklo and unpackhi make of 16-bit ones.
struct wide_lanes_256 {
  __m256i low;
  __m256i high;
};

LADE_AVX2 static inline wide_lanes_256 add(const wide_lanes_256& a, const wide_lanes_256& b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}

LADE_AVX2 static inline wide_lanes_256 subtract(const wide_lanes_256& a, const wide_lanes_256& b) {
  return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}

// a * x + b * y.
LADE_AVX2 static inline wide_lanes_256 weighted(int a, __m256i x, int b, __m256i y) {
  const auto by = factors_256(a, b);
  return {_mm256_madd_epi16(_mm256_unpacklo_epi16(x, y), by),
          _mm256_madd_epi16(_mm256_unpackhi_epi16(x, y), by)};
}

// x * 2^13, and half a unit of what is shifted out.
template <int shift>
LADE_AVX2 static inline wide_lanes_256 widened(__m256i x) {
  const auto zero = _mm256_setzero_si256(), round = _mm256_set1_epi32(1 << (shift - 1));
  const auto low = _mm256_srai_epi32(_mm256_unpacklo_epi16(zero, x), 3);
  const auto high = _mm256_srai_epi32(_mm256_unpackhi_epi16(zero, x), 3);
  return {_mm256_add_epi32(low, round), _mm256_add_epi32(high, round)};
}

template <int shift>
LADE_AVX2 static inline __m256i narrowed(const wide_lanes_256& x) {
  return _mm256_packs_epi32(_mm256_srai_epi32(x.low, shift), _mm256_srai_epi32(x.high, shift));
}

// The transform along one axis of 16 lines at a time: see transform_line in jpeg_kernels.cpp.
template <int shift>
LADE_AVX2 static inline void transform_lines_256(__m256i* x) {
  const auto even_2 = weighted(4433, x[2], 4433 - 15137, x[6]);
  const auto even_3 = weighted(4433 + 6270, x[2], 4433, x[6]);
  const auto even_0 = widened<shift>(_mm256_add_epi16(x[0], x[4]));
  const auto even_1 = widened<shift>(_mm256_sub_epi16(x[0], x[4]));

  const auto sum_73 = _mm256_add_epi16(x[7], x[3]), sum_51 = _mm256_add_epi16(x[5], x[1]);
  const auto z3 = weighted(9633 - 16069, sum_73, 9633, sum_51);
  const auto z4 = weighted(9633, sum_73, 9633 - 3196, sum_51);
  const auto odd_0 = add(weighted(2446 - 7373, x[7], -7373, x[1]), z3);
  const auto odd_1 = add(weighted(16819 - 20995, x[5], -20995, x[3]), z4);
  const auto odd_2 = add(weighted(-20995, x[5], 25172 - 20995, x[3]), z3);
  const auto odd_3 = add(weighted(-7373, x[7], 12299 - 7373, x[1]), z4);

  const auto put = [x](int i, const wide_lanes_256& even, const wide_lanes_256& odd) LADE_AVX2 {
    x[i] = narrowed<shift>(add(even, odd));
    x[7 - i] = narrowed<shift>(subtract(even, odd));
  };
  put(0, add(even_0, even_3), odd_3);
  put(1, add(even_1, even_2), odd_2);
  put(2, subtract(even_1, even_2), odd_1);
  put(3, subtract(even_0, even_3), odd_0);
}

// For row `row` of a block: which bytes of which eight coefficients in zigzag order it has. A
// shuffle makes the bytes 0 that it does not take.
struct row_shuffle {
  std::array<std::int8_t, 16> bytes{};
  bool used = false;
};

static constexpr row_shuffle shuffle_of(std::size_t row, std::size_t eighth) {
  row_shuffle shuffle;
  shuffle.bytes.fill(-1);
  for (std::size_t k = 8 * eighth; k < 8 * eighth + 8; ++k) {
    if (jpeg_zigzag[k] / 8 != row) continue;
    const std::size_t column = jpeg_zigzag[k] % 8;
    shuffle.used = true;
    shuffle.bytes[2 * column] = static_cast<std::int8_t>(2 * (k - 8 * eighth));
    shuffle.bytes[2 * column + 1] = static_cast<std::int8_t>(2 * (k - 8 * eighth) + 1);
  }
  return shuffle;
}

template <std::size_t row, std::size_t eighth>
static constexpr row_shuffle shuffle_into = shuffle_of(row, eighth);

template <std::size_t row, std::size_t eighth>
LADE_AVX2 static inline void take_from(const __m256i* zigzag, __m256i& out) {
  if constexpr (shuffle_into<row, eighth>.used) {
    const auto bytes =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(shuffle_into<row, eighth>.bytes.data()));
    const auto taken = _mm256_shuffle_epi8(zigzag[eighth], _mm256_broadcastsi128_si256(bytes));
    out = _mm256_or_si256(out, taken);
  }
}

template <std::size_t row, std::size_t... eighths>
LADE_AVX2 static inline __m256i row_of_zigzag(const __m256i* zigzag,
                                              std::index_sequence<eighths...>) {
  auto out = _mm256_setzero_si256();
  (take_from<row, eighths>(zigzag, out), ...);
  return out;
}

template <std::size_t... rows>
LADE_AVX2 static inline void rows_of_zigzag_256(const __m256i* zigzag, __m256i* x,
                                                std::index_sequence<rows...>) {
  ((x[rows] = row_of_zigzag<rows>(zigzag, std::make_index_sequence<8>())), ...);
}

// Rows become columns, in each lane.
LADE_AVX2 static inline void transpose_lanes_256(__m256i* x) {
  __m256i pairs[8], fours[8];
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = _mm256_unpacklo_epi16(x[2 * i], x[2 * i + 1]);
    pairs[2 * i + 1] = _mm256_unpackhi_epi16(x[2 * i], x[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      fours[4 * i + 2 * j] = _mm256_unpacklo_epi32(pairs[4 * i + j], pairs[4 * i + 2 + j]);
      fours[4 * i + 2 * j + 1] = _mm256_unpackhi_epi32(pairs[4 * i + j], pairs[4 * i + 2 + j]);
    }
  for (int j = 0; j < 4; ++j) {
    x[2 * j] = _mm256_unpacklo_epi64(fours[j], fours[4 + j]);
    x[2 * j + 1] = _mm256_unpackhi_epi64(fours[j], fours[4 + j]);
  }
}

// Stores columns of samples as bytes, row by row.
LADE_AVX2 static inline void store_blocks_256(const __m256i* x, std::uint8_t* const* out,
                                              std::ptrdiff_t stride) {
  const auto a = _mm256_packs_epi16(x[0], x[4]), b = _mm256_packs_epi16(x[1], x[5]);
  const auto c = _mm256_packs_epi16(x[2], x[6]), d = _mm256_packs_epi16(x[3], x[7]);
  const auto ac_low = _mm256_unpacklo_epi8(a, c), ac_high = _mm256_unpackhi_epi8(a, c);
  const auto bd_low = _mm256_unpacklo_epi8(b, d), bd_high = _mm256_unpackhi_epi8(b, d);
  const auto left_0 = _mm256_unpacklo_epi8(ac_low, bd_low);
  const auto left_1 = _mm256_unpackhi_epi8(ac_low, bd_low);
  const auto right_0 = _mm256_unpacklo_epi8(ac_high, bd_high);
  const auto right_1 = _mm256_unpackhi_epi8(ac_high, bd_high);
  const auto centre = _mm256_set1_epi8(-128);
  alignas(32) std::uint8_t rows[4][32];  // two rows of each block
  const auto put = [&](int i, __m256i samples) LADE_AVX2 {
    _mm256_store_si256(reinterpret_cast<__m256i*>(rows[i]), _mm256_xor_si256(samples, centre));
  };
  put(0, _mm256_unpacklo_epi32(left_0, right_0));
  put(1, _mm256_unpackhi_epi32(left_0, right_0));
  put(2, _mm256_unpacklo_epi32(left_1, right_1));
  put(3, _mm256_unpackhi_epi32(left_1, right_1));
  for (int block = 0; block < 2; ++block)
    for (int y = 0; y < 8; ++y)
      std::memcpy(out[block] + y * stride, rows[y / 2] + 16 * block + 8 * (y % 2), 8);
}

LADE_AVX2 static inline __m256i load_lanes(const std::int16_t* low, const std::int16_t* high) {
  return _mm256_set_m128i(_mm_load_si128(reinterpret_cast<const __m128i*>(high)),
                          _mm_load_si128(reinterpret_cast<const __m128i*>(low)));
}

LADE_AVX2 static bool transform_two(const std::int16_t* const* blocks,
                                    const std::int16_t* quantisation, std::uint8_t* const* out,
                                    std::ptrdiff_t stride) {
  __m256i zigzag[8], x[8];
  for (int i = 0; i < 8; ++i) zigzag[i] = load_lanes(blocks[0] + 8 * i, blocks[1] + 8 * i);
  rows_of_zigzag_256(zigzag, x, std::make_index_sequence<8>());
  for (int i = 0; i < 8; ++i) {
    const auto by = _mm_loadu_si128(reinterpret_cast<const __m128i*>(quantisation + 8 * i));
    x[i] = _mm256_mullo_epi16(x[i], _mm256_broadcastsi128_si256(by));
  }
  const auto most = _mm256_set1_epi16(8191);
  const auto large =
      _mm256_or_si256(_mm256_cmpgt_epi16(x[0], most),
                      _mm256_cmpgt_epi16(_mm256_sub_epi16(_mm256_setzero_si256(), most), x[0]));
  transform_lines_256<11>(x);
  transpose_lanes_256(x);
  transform_lines_256<18>(x);
  store_blocks_256(x, out, stride);
  return _mm256_testz_si256(large, large) != 0;
}

LADE_AVX2 static bool transform_avx2(const std::int16_t* const* blocks, int count,
                                     const std::int16_t* quantisation, std::uint8_t* const* out,
                                     std::ptrdiff_t stride) {
  bool exact = true;
  for (; count >= 2; count -= 2, blocks += 2, out += 2)
    exact &= transform_two(blocks, quantisation, out, stride);
  if (count == 0) return exact;
  const std::int16_t* const twice[] = {blocks[0], blocks[0]};
  std::uint8_t* const twice_out[] = {out[0], out[0]};
  return transform_two(twice, quantisation, twice_out, stride) && exact;
}

LADE_AVX2 static inline __m256i words_256(const std::uint8_t* in) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
}

// Low bytes of 16 words each, one behind the other: a is 0, b is 1, ...
LADE_AVX2 static inline void store_alternating_256(__m256i even, __m256i odd, std::uint8_t* out) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                      _mm256_or_si256(even, _mm256_slli_epi16(odd, 8)));
}

LADE_AVX2 static inline __m256i three_and_one(__m256i three, __m256i one) {
  return _mm256_add_epi16(_mm256_add_epi16(three, _mm256_slli_epi16(three, 1)), one);
}

LADE_AVX2 static void double_columns_avx2(const std::uint8_t* in, int count, std::uint8_t* out) {
  for (int x = 0; x < count; x += 16) {
    const auto here = words_256(in + x);
    const auto left = three_and_one(here, words_256(in + x - 1));
    const auto right = three_and_one(here, words_256(in + x + 1));
    store_alternating_256(_mm256_srli_epi16(_mm256_add_epi16(left, _mm256_set1_epi16(1)), 2),
                          _mm256_srli_epi16(_mm256_add_epi16(right, _mm256_set1_epi16(2)), 2),
                          out + 2 * x);
  }
}

LADE_AVX2 static void double_both_avx2(const std::uint8_t* near, const std::uint8_t* far, int count,
                                       std::uint8_t* out) {
  const auto sum = [&](int x)
                       LADE_AVX2 { return three_and_one(words_256(near + x), words_256(far + x)); };
  for (int x = 0; x < count; x += 16) {
    const auto here = sum(x);
    const auto left = three_and_one(here, sum(x - 1)), right = three_and_one(here, sum(x + 1));
    store_alternating_256(_mm256_srli_epi16(_mm256_add_epi16(left, _mm256_set1_epi16(8)), 4),
                          _mm256_srli_epi16(_mm256_add_epi16(right, _mm256_set1_epi16(7)), 4),
                          out + 2 * x);
  }
}

// Words to bytes, saturated.
LADE_AVX2 static inline void store_bytes_256(__m256i words, std::uint8_t* out) {
  const auto bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(bytes));
}

LADE_AVX2 static void double_rows_avx2(const std::uint8_t* near, const std::uint8_t* far, int bias,
                                       int count, std::uint8_t* out) {
  const auto round = _mm256_set1_epi16(static_cast<short>(bias));
  for (int x = 0; x < count; x += 16) {
    const auto sum = three_and_one(words_256(near + x), words_256(far + x));
    store_bytes_256(_mm256_srli_epi16(_mm256_add_epi16(sum, round), 2), out + x);
  }
}

// (x * factor + 2^15) / 2^16 rounded down, in 16 bits.
LADE_AVX2 static inline __m256i multiplied_256(__m256i x, int factor) {
  const auto twice =
      _mm256_mulhi_epi16(_mm256_add_epi16(x, x), _mm256_set1_epi16(static_cast<short>(factor)));
  return _mm256_srai_epi16(_mm256_add_epi16(twice, _mm256_set1_epi16(1)), 1);
}

// Factors beyond 16 bits are split: 91881 = 65536 + 26345, 116130 = 2 * 65536 - 14942,
// -46802 = 18734 - 65536.
LADE_AVX2 static void to_rgb_avx2(const std::uint8_t* const* in, int count,
                                  std::uint8_t* const* out) {
  const std::uint8_t *const y_row = in[0], *const cb_row = in[1], *const cr_row = in[2];
  std::uint8_t *const red = out[0], *const green = out[1], *const blue = out[2];
  const auto centre = _mm256_set1_epi16(128);
  const auto half = _mm256_set1_epi32(1 << 15);
  for (int x = 0; x < count; x += 16) {
    const auto y = words_256(y_row + x);
    const auto cb = _mm256_sub_epi16(words_256(cb_row + x), centre);
    const auto cr = _mm256_sub_epi16(words_256(cr_row + x), centre);
    store_bytes_256(_mm256_add_epi16(_mm256_add_epi16(y, cr), multiplied_256(cr, 26345)), red + x);
    const auto mixed = narrowed<16>(add(weighted(-22554, cb, 18734, cr), {half, half}));
    store_bytes_256(_mm256_add_epi16(_mm256_sub_epi16(y, cr), mixed), green + x);
    const auto twice = _mm256_add_epi16(cb, cb);
    store_bytes_256(_mm256_add_epi16(_mm256_add_epi16(y, twice), multiplied_256(cb, -14942)),
                    blue + x);
  }
}

const jpeg_kernels avx2_jpeg{.unstuff = plain_unstuff,
                             .entropy = &bmi2_entropy,
                             .transform = transform_avx2,
                             .double_columns = double_columns_avx2,
                             .double_both = double_both_avx2,
                             .double_rows = double_rows_avx2,
                             .to_rgb = to_rgb_avx2};

}  // namespace lade::media

#undef LADE_AVX2

#endif
