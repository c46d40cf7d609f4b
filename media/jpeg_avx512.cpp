#include "jpeg_kernels.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include <array>
#include <bit>
#include <cstring>

// GCC 12 takes the undefined operands of its own intrinsics for mistakes.
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define LADE_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2")))

namespace lade::media {

// 64 bytes at a time, as long as there is no marker among them. The last ones, and those that end
// with a 0xff, are left to the plain loop.
LADE_AVX512 static const std::uint8_t* unstuff_avx512(const std::uint8_t* from,
                                                      const std::uint8_t* end, std::uint8_t*& to) {
  std::uint64_t after = 0;  // bit 0: whether the byte before was 0xff
  for (; end - from >= 64; from += 64) {
    const auto bytes = _mm512_loadu_si512(from);
    const std::uint64_t ones = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(-1));
    const std::uint64_t zeros = _mm512_testn_epi8_mask(bytes, bytes);
    const auto stuffed = ones << 1 | after;
    if ((stuffed & ~zeros) != 0) [[unlikely]]
      break;
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(~stuffed, bytes));
    to += std::popcount(~stuffed);
    after = ones >> 63;
  }
  if (after != 0) {
    --to;
    --from;
  }
  return plain_unstuff(from, end, to);
}

// A pair of factors for _mm512_madd_epi16.
LADE_AVX512 static inline __m512i factors(int low, int high) {
  return _mm512_set1_epi32((low & 0xffff) | static_cast<int>(static_cast<unsigned>(high) << 16));
}

// 32-bit values of 32 lanes: those that unpacklo and unpackhi make of 16-bit ones.
struct wide_lanes {
  __m512i low;
  __m512i high;
};

LADE_AVX512 static inline wide_lanes add(const wide_lanes& a, const wide_lanes& b) {
  return {_mm512_add_epi32(a.low, b.low), _mm512_add_epi32(a.high, b.high)};
}

LADE_AVX512 static inline wide_lanes subtract(const wide_lanes& a, const wide_lanes& b) {
  return {_mm512_sub_epi32(a.low, b.low), _mm512_sub_epi32(a.high, b.high)};
}

// a * x + b * y.
LADE_AVX512 static inline wide_lanes weighted(int a, __m512i x, int b, __m512i y) {
  const auto by = factors(a, b);
  return {_mm512_madd_epi16(_mm512_unpacklo_epi16(x, y), by),
          _mm512_madd_epi16(_mm512_unpackhi_epi16(x, y), by)};
}

// x * 2^13, and half a unit of what is shifted out.
template <int shift>
LADE_AVX512 static inline wide_lanes widened(__m512i x) {
  const auto zero = _mm512_setzero_si512(), round = _mm512_set1_epi32(1 << (shift - 1));
  const auto scaled = [&](__m512i upper) LADE_AVX512 {
    return _mm512_add_epi32(_mm512_srai_epi32(upper, 3), round);
  };
  return {scaled(_mm512_unpacklo_epi16(zero, x)), scaled(_mm512_unpackhi_epi16(zero, x))};
}

template <int shift>
LADE_AVX512 static inline __m512i narrowed(const wide_lanes& x) {
  return _mm512_packs_epi32(_mm512_srai_epi32(x.low, shift), _mm512_srai_epi32(x.high, shift));
}

// The transform along one axis of 32 lines at a time: see transform_line in jpeg_kernels.cpp.
template <int shift>
LADE_AVX512 static inline void transform_lines(__m512i* x) {
  const auto even_2 = weighted(4433, x[2], 4433 - 15137, x[6]);
  const auto even_3 = weighted(4433 + 6270, x[2], 4433, x[6]);
  const auto even_0 = widened<shift>(_mm512_add_epi16(x[0], x[4]));
  const auto even_1 = widened<shift>(_mm512_sub_epi16(x[0], x[4]));

  const auto sum_73 = _mm512_add_epi16(x[7], x[3]), sum_51 = _mm512_add_epi16(x[5], x[1]);
  const auto z3 = weighted(9633 - 16069, sum_73, 9633, sum_51);
  const auto z4 = weighted(9633, sum_73, 9633 - 3196, sum_51);
  const auto odd_0 = add(weighted(2446 - 7373, x[7], -7373, x[1]), z3);
  const auto odd_1 = add(weighted(16819 - 20995, x[5], -20995, x[3]), z4);
  const auto odd_2 = add(weighted(-20995, x[5], 25172 - 20995, x[3]), z3);
  const auto odd_3 = add(weighted(-7373, x[7], 12299 - 7373, x[1]), z4);

  const auto put = [x](int i, const wide_lanes& even, const wide_lanes& odd) LADE_AVX512 {
    x[i] = narrowed<shift>(add(even, odd));
    x[7 - i] = narrowed<shift>(subtract(even, odd));
  };
  put(0, add(even_0, even_3), odd_3);
  put(1, add(even_1, even_2), odd_2);
  put(2, subtract(even_1, even_2), odd_1);
  put(3, subtract(even_0, even_3), odd_0);
}

// Place of coefficient i of a block, row by row, in zigzag order.
struct zigzag_places {
  alignas(64) std::array<std::int16_t, 64> places{};
  constexpr zigzag_places() {
    for (std::size_t k = 0; k < 64; ++k) places[jpeg_zigzag[k]] = static_cast<std::int16_t>(k);
  }
};
static constexpr zigzag_places rows_of_zigzag;

// Four rows of four blocks, a block in each, become four rows of all blocks: a block in each lane
// of 128 bits.
LADE_AVX512 static inline void lanes_of_blocks(const __m512i* blocks, __m512i* rows) {
  const auto a = _mm512_shuffle_i32x4(blocks[0], blocks[1], 0x88);
  const auto b = _mm512_shuffle_i32x4(blocks[0], blocks[1], 0xdd);
  const auto c = _mm512_shuffle_i32x4(blocks[2], blocks[3], 0x88);
  const auto d = _mm512_shuffle_i32x4(blocks[2], blocks[3], 0xdd);
  rows[0] = _mm512_shuffle_i32x4(a, c, 0x88);
  rows[1] = _mm512_shuffle_i32x4(b, d, 0x88);
  rows[2] = _mm512_shuffle_i32x4(a, c, 0xdd);
  rows[3] = _mm512_shuffle_i32x4(b, d, 0xdd);
}

// Rows become columns, in each lane.
LADE_AVX512 static inline void transpose_lanes(__m512i* x) {
  __m512i pairs[8], fours[8];
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = _mm512_unpacklo_epi16(x[2 * i], x[2 * i + 1]);
    pairs[2 * i + 1] = _mm512_unpackhi_epi16(x[2 * i], x[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      fours[4 * i + 2 * j] = _mm512_unpacklo_epi32(pairs[4 * i + j], pairs[4 * i + 2 + j]);
      fours[4 * i + 2 * j + 1] = _mm512_unpackhi_epi32(pairs[4 * i + j], pairs[4 * i + 2 + j]);
    }
  for (int j = 0; j < 4; ++j) {
    x[2 * j] = _mm512_unpacklo_epi64(fours[j], fours[4 + j]);
    x[2 * j + 1] = _mm512_unpackhi_epi64(fours[j], fours[4 + j]);
  }
}

// Stores columns of samples as bytes, row by row.
LADE_AVX512 static inline void store_blocks(const __m512i* x, std::uint8_t* const* out,
                                            std::ptrdiff_t stride) {
  const auto a = _mm512_packs_epi16(x[0], x[4]), b = _mm512_packs_epi16(x[1], x[5]);
  const auto c = _mm512_packs_epi16(x[2], x[6]), d = _mm512_packs_epi16(x[3], x[7]);
  const auto ac_low = _mm512_unpacklo_epi8(a, c), ac_high = _mm512_unpackhi_epi8(a, c);
  const auto bd_low = _mm512_unpacklo_epi8(b, d), bd_high = _mm512_unpackhi_epi8(b, d);
  const auto left_0 = _mm512_unpacklo_epi8(ac_low, bd_low);
  const auto left_1 = _mm512_unpackhi_epi8(ac_low, bd_low);
  const auto right_0 = _mm512_unpacklo_epi8(ac_high, bd_high);
  const auto right_1 = _mm512_unpackhi_epi8(ac_high, bd_high);
  const auto centre = _mm512_set1_epi8(-128);
  alignas(64) std::uint8_t rows[4][64];  // two rows of each block
  const auto put = [&](int i, __m512i samples) LADE_AVX512 {
    _mm512_store_si512(rows[i], _mm512_xor_si512(samples, centre));
  };
  put(0, _mm512_unpacklo_epi32(left_0, right_0));
  put(1, _mm512_unpackhi_epi32(left_0, right_0));
  put(2, _mm512_unpacklo_epi32(left_1, right_1));
  put(3, _mm512_unpackhi_epi32(left_1, right_1));
  for (int block = 0; block < 4; ++block)
    for (int y = 0; y < 8; ++y)
      std::memcpy(out[block] + y * stride, rows[y / 2] + 16 * block + 8 * (y % 2), 8);
}

// What the whole transform makes of blocks that have only a mean.
LADE_AVX512 static void fill_blocks(const std::int16_t* const* blocks, std::int16_t quantisation,
                                    std::uint8_t* const* out, std::ptrdiff_t stride) {
  for (int i = 0; i < 4; ++i) {
    const int mean = static_cast<std::int16_t>(blocks[i][0] * quantisation);
    const int sample = (mean + 4) >> 3;
    const auto byte = static_cast<std::uint8_t>((sample < -128  ? -128
                                                 : sample > 127 ? 127
                                                                : sample) +
                                                128);
    for (int y = 0; y < 8; ++y) std::memset(out[i] + y * stride, byte, 8);
  }
}

LADE_AVX512 static bool transform_four(const std::int16_t* const* blocks,
                                       const std::int16_t* quantisation, std::uint8_t* const* out,
                                       std::ptrdiff_t stride) {
  const auto upper = _mm512_load_si512(rows_of_zigzag.places.data());
  const auto lower = _mm512_load_si512(rows_of_zigzag.places.data() + 32);
  __m512i top[4], bottom[4], x[8];
  __mmask32 details = 0;  // whether a block has more than a mean
  for (int i = 0; i < 4; ++i) {
    const auto first = _mm512_load_si512(blocks[i]), second = _mm512_load_si512(blocks[i] + 32);
    const auto all = _mm512_or_si512(second, _mm512_maskz_mov_epi16(~1u, first));
    details |= _mm512_test_epi16_mask(all, all);
    top[i] = _mm512_permutex2var_epi16(first, upper, second);
    bottom[i] = _mm512_permutex2var_epi16(first, lower, second);
  }
  lanes_of_blocks(top, x);
  lanes_of_blocks(bottom, x + 4);
  for (int i = 0; i < 8; ++i) {
    const auto by = _mm_loadu_si128(reinterpret_cast<const __m128i*>(quantisation + 8 * i));
    x[i] = _mm512_mullo_epi16(x[i], _mm512_broadcast_i32x4(by));
  }
  const auto exact =
      _mm512_cmpgt_epi16_mask(_mm512_abs_epi16(x[0]), _mm512_set1_epi16(8191)) == 0 &&
      _mm512_cmpeq_epi16_mask(x[0], _mm512_set1_epi16(-32768)) == 0;
  if (details == 0) {
    fill_blocks(blocks, quantisation[0], out, stride);
    return exact;
  }
  transform_lines<11>(x);
  transpose_lanes(x);
  transform_lines<18>(x);
  store_blocks(x, out, stride);
  return exact;
}

LADE_AVX512 static bool transform_avx512(const std::int16_t* const* blocks, int count,
                                         const std::int16_t* quantisation, std::uint8_t* const* out,
                                         std::ptrdiff_t stride) {
  bool exact = true;
  for (; count >= 4; count -= 4, blocks += 4, out += 4)
    exact &= transform_four(blocks, quantisation, out, stride);
  if (count == 0) return exact;
  const std::int16_t* four[4];
  std::uint8_t* four_out[4];
  for (int i = 0; i < 4; ++i) {  // the last one several times
    four[i] = blocks[i < count ? i : count - 1];
    four_out[i] = out[i < count ? i : count - 1];
  }
  return transform_four(four, quantisation, four_out, stride) && exact;
}

LADE_AVX512 static inline __m512i words_512(const std::uint8_t* in) {
  return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in)));
}

// Low bytes of 32 words each, one behind the other: a is 0, b is 1, ...
LADE_AVX512 static inline void store_alternating(__m512i even, __m512i odd, std::uint8_t* out) {
  _mm512_storeu_si512(out, _mm512_or_si512(even, _mm512_slli_epi16(odd, 8)));
}

LADE_AVX512 static inline __m512i three_and_one(__m512i three, __m512i one) {
  return _mm512_add_epi16(_mm512_add_epi16(three, _mm512_slli_epi16(three, 1)), one);
}

LADE_AVX512 static void double_columns_avx512(const std::uint8_t* in, int count,
                                              std::uint8_t* out) {
  for (int x = 0; x < count; x += 32) {
    const auto here = words_512(in + x);
    const auto left = three_and_one(here, words_512(in + x - 1));
    const auto right = three_and_one(here, words_512(in + x + 1));
    store_alternating(_mm512_srli_epi16(_mm512_add_epi16(left, _mm512_set1_epi16(1)), 2),
                      _mm512_srli_epi16(_mm512_add_epi16(right, _mm512_set1_epi16(2)), 2),
                      out + 2 * x);
  }
}

LADE_AVX512 static void double_both_avx512(const std::uint8_t* near, const std::uint8_t* far,
                                           int count, std::uint8_t* out) {
  const auto sum = [&](int x) LADE_AVX512 {
    return three_and_one(words_512(near + x), words_512(far + x));
  };
  for (int x = 0; x < count; x += 32) {
    const auto here = sum(x);
    const auto left = three_and_one(here, sum(x - 1)), right = three_and_one(here, sum(x + 1));
    store_alternating(_mm512_srli_epi16(_mm512_add_epi16(left, _mm512_set1_epi16(8)), 4),
                      _mm512_srli_epi16(_mm512_add_epi16(right, _mm512_set1_epi16(7)), 4),
                      out + 2 * x);
  }
}

LADE_AVX512 static void double_rows_avx512(const std::uint8_t* near, const std::uint8_t* far,
                                           int bias, int count, std::uint8_t* out) {
  const auto round = _mm512_set1_epi16(static_cast<short>(bias));
  for (int x = 0; x < count; x += 32) {
    const auto sum = three_and_one(words_512(near + x), words_512(far + x));
    const auto blended = _mm512_srli_epi16(_mm512_add_epi16(sum, round), 2);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + x), _mm512_cvtepi16_epi8(blended));
  }
}

// (x * factor + 2^15) / 2^16 rounded down, in 16 bits.
LADE_AVX512 static inline __m512i multiplied(__m512i x, int factor) {
  const auto twice =
      _mm512_mulhi_epi16(_mm512_add_epi16(x, x), _mm512_set1_epi16(static_cast<short>(factor)));
  return _mm512_srai_epi16(_mm512_add_epi16(twice, _mm512_set1_epi16(1)), 1);
}

LADE_AVX512 static inline void store_bytes(__m512i words, std::uint8_t* out) {
  const auto positive = _mm512_max_epi16(words, _mm512_setzero_si512());
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtusepi16_epi8(positive));
}

// Factors beyond 16 bits are split: 91881 = 65536 + 26345, 116130 = 2 * 65536 - 14942,
// -46802 = 18734 - 65536.
LADE_AVX512 static void to_rgb_avx512(const std::uint8_t* const* in, int count,
                                      std::uint8_t* const* out) {
  const auto* const from = in;
  const std::uint8_t *const y_row = from[0], *const cb_row = from[1], *const cr_row = from[2];
  std::uint8_t *const red = out[0], *const green = out[1], *const blue = out[2];
  const auto centre = _mm512_set1_epi16(128);
  for (int x = 0; x < count; x += 32) {
    const auto y = words_512(y_row + x);
    const auto cb = _mm512_sub_epi16(words_512(cb_row + x), centre);
    const auto cr = _mm512_sub_epi16(words_512(cr_row + x), centre);
    store_bytes(_mm512_add_epi16(_mm512_add_epi16(y, cr), multiplied(cr, 26345)), red + x);
    const auto mixed = add(weighted(-22554, cb, 18734, cr),
                           {_mm512_set1_epi32(1 << 15), _mm512_set1_epi32(1 << 15)});
    store_bytes(_mm512_add_epi16(_mm512_sub_epi16(y, cr), narrowed<16>(mixed)), green + x);
    const auto twice = _mm512_add_epi16(cb, cb);
    store_bytes(_mm512_add_epi16(_mm512_add_epi16(y, twice), multiplied(cb, -14942)), blue + x);
  }
}

const jpeg_kernels avx512_jpeg{.unstuff = unstuff_avx512,
                               .entropy = &bmi2_entropy,
                               .transform = transform_avx512,
                               .double_columns = double_columns_avx512,
                               .double_both = double_both_avx512,
                               .double_rows = double_rows_avx512,
                               .to_rgb = to_rgb_avx512};

}  // namespace lade::media

#undef LADE_AVX512
#pragma GCC diagnostic pop

#endif
