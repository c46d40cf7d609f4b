#include "jpeg_kernels.hpp"

#if defined(__x86_64__)

#include "jpeg_low_frequencies.hpp"

#include <immintrin.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>

// GCC 12 warns about uninitialised operands in its own intrinsics.
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define LADE_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2")))
#define LADE_VECTORS jpeg_avx512

namespace lade::media::jpeg_avx512 {

using vector = __m512i;
static constexpr int blocks_at_once = 4;

LADE_TARGET static inline vector zero() { return _mm512_setzero_si512(); }
LADE_TARGET static inline vector all_8(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
LADE_TARGET static inline vector all_16(int x) { return _mm512_set1_epi16(static_cast<short>(x)); }
LADE_TARGET static inline vector all_32(int x) { return _mm512_set1_epi32(x); }

LADE_TARGET static inline vector add_16(vector a, vector b) { return _mm512_add_epi16(a, b); }
LADE_TARGET static inline vector add_32(vector a, vector b) { return _mm512_add_epi32(a, b); }
LADE_TARGET static inline vector subtract_16(vector a, vector b) { return _mm512_sub_epi16(a, b); }
LADE_TARGET static inline vector subtract_32(vector a, vector b) { return _mm512_sub_epi32(a, b); }
LADE_TARGET static inline vector multiply_16(vector a, vector b) {
  return _mm512_mullo_epi16(a, b);
}
LADE_TARGET static inline vector multiply_high_16(vector a, vector b) {
  return _mm512_mulhi_epi16(a, b);
}
LADE_TARGET static inline vector multiply_add(vector a, vector b) {
  return _mm512_madd_epi16(a, b);
}

LADE_TARGET static inline vector absolute_16(vector x) { return _mm512_abs_epi16(x); }
LADE_TARGET static inline vector add_unsigned_16(vector a, vector b) {
  return _mm512_adds_epu16(a, b);
}

LADE_TARGET static inline vector bits_both(vector a, vector b) { return _mm512_and_si512(a, b); }
LADE_TARGET static inline vector bits_either(vector a, vector b) { return _mm512_or_si512(a, b); }
LADE_TARGET static inline vector bits_differ(vector a, vector b) { return _mm512_xor_si512(a, b); }

template <int by>
LADE_TARGET static inline vector shift_left_16(vector x) {
  return _mm512_slli_epi16(x, by);
}
template <int by>
LADE_TARGET static inline vector shift_right_16(vector x) {
  return _mm512_srli_epi16(x, by);
}
template <int by>
LADE_TARGET static inline vector shift_right_32(vector x) {
  return _mm512_srai_epi32(x, by);
}
LADE_TARGET static inline vector halve_16(vector x) { return _mm512_srai_epi16(x, 1); }

LADE_TARGET static inline vector pack_16(vector a, vector b) { return _mm512_packs_epi16(a, b); }
LADE_TARGET static inline vector pack_32(vector a, vector b) { return _mm512_packs_epi32(a, b); }
LADE_TARGET static inline vector interleave_low_8(vector a, vector b) {
  return _mm512_unpacklo_epi8(a, b);
}
LADE_TARGET static inline vector interleave_high_8(vector a, vector b) {
  return _mm512_unpackhi_epi8(a, b);
}
LADE_TARGET static inline vector interleave_low_16(vector a, vector b) {
  return _mm512_unpacklo_epi16(a, b);
}
LADE_TARGET static inline vector interleave_high_16(vector a, vector b) {
  return _mm512_unpackhi_epi16(a, b);
}
LADE_TARGET static inline vector interleave_low_32(vector a, vector b) {
  return _mm512_unpacklo_epi32(a, b);
}
LADE_TARGET static inline vector interleave_high_32(vector a, vector b) {
  return _mm512_unpackhi_epi32(a, b);
}
LADE_TARGET static inline vector interleave_low_64(vector a, vector b) {
  return _mm512_unpacklo_epi64(a, b);
}
LADE_TARGET static inline vector interleave_high_64(vector a, vector b) {
  return _mm512_unpackhi_epi64(a, b);
}
LADE_TARGET static inline vector pick_even_32(vector a, vector b) {
  return _mm512_castps_si512(
      _mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0x88));
}
LADE_TARGET static inline vector pick_odd_32(vector a, vector b) {
  return _mm512_castps_si512(
      _mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0xdd));
}

// Transposes 4 x 4 bytes in each lane.
LADE_TARGET static inline vector transpose_4_bytes(vector x) {
  return _mm512_shuffle_epi8(x, _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6,
                                                                     10, 14, 3, 7, 11, 15)));
}

LADE_TARGET static inline vector load_in_each_lane(const std::int16_t* in) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
}
LADE_TARGET static inline vector load_words(const std::uint8_t* in) {
  return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in)));
}
LADE_TARGET static inline void store(vector x, std::uint8_t* out) { _mm512_storeu_si512(out, x); }
// Stores words as saturated bytes.
LADE_TARGET static inline void store_bytes(vector words, std::uint8_t* out) {
  const auto positive = _mm512_max_epi16(words, zero());
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtusepi16_epi8(positive));
}

LADE_TARGET static inline bool all_within(vector x, int most) {
  return (_mm512_cmpgt_epi16_mask(x, all_16(most)) | _mm512_cmpgt_epi16_mask(all_16(-most), x)) ==
         0;
}

LADE_TARGET static inline bool all_at_most_16(vector x, int most) {
  return _mm512_cmpgt_epu16_mask(x, all_16(most)) == 0;
}

// The first and the second half of each block.
struct zigzag_vectors {
  vector first[4];
  vector second[4];
};

// Bit k is set if coefficient k is not among the lowest frequencies.
static constexpr std::uint64_t high_coefficients = [] {
  std::uint64_t high = 0;
  for (std::size_t k = 0; k < 64; ++k) high |= std::uint64_t{!is_low_frequency(k)} << k;
  return high;
}();

LADE_TARGET static inline jpeg_used load_zigzag(const std::int16_t* const* blocks,
                                                zigzag_vectors& zigzag) {
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {
    zigzag.first[i] = _mm512_load_si512(blocks[i]);
    zigzag.second[i] = _mm512_load_si512(blocks[i] + 32);
  }
  const auto any = [](const vector* x) LADE_TARGET {
    const auto all = bits_either(bits_either(x[0], x[1]), bits_either(x[2], x[3]));
    return std::uint64_t{_mm512_test_epi16_mask(all, all)};
  };
  const auto used = any(zigzag.first) | any(zigzag.second) << 32;
  if ((used & high_coefficients) != 0) return jpeg_used::all;
  return used > 1 ? jpeg_used::low : jpeg_used::mean;
}

// The zigzag positions of four adjacent lanes, from lane `first` on.
template <std::size_t count>
static constexpr std::array<std::int16_t, 32> zigzag_places(
    const std::array<jpeg_lane, count>& lanes, std::size_t first) {
  std::array<std::int16_t, 32> places{};
  for (std::size_t i = 0; i < 32 && first + i / 8 < count; ++i)
    places[i] = static_cast<std::int16_t>(zigzag_index(lanes[first + i / 8][i % 8]));
  return places;
}

static constexpr auto upper_rows = zigzag_places(jpeg_rows, 0);
static constexpr auto lower_rows = zigzag_places(jpeg_rows, 4);
static constexpr auto low_pairs = zigzag_places(jpeg_low_pairs, 0);

// Transposes lanes of 128 bits: from a vector per block to a vector per row, with one block per
// lane.
LADE_TARGET static inline void four_lanes_of_blocks(const vector* blocks, vector* rows) {
  const auto a = _mm512_shuffle_i32x4(blocks[0], blocks[1], 0x88);
  const auto b = _mm512_shuffle_i32x4(blocks[0], blocks[1], 0xdd);
  const auto c = _mm512_shuffle_i32x4(blocks[2], blocks[3], 0x88);
  const auto d = _mm512_shuffle_i32x4(blocks[2], blocks[3], 0xdd);
  rows[0] = _mm512_shuffle_i32x4(a, c, 0x88);
  rows[1] = _mm512_shuffle_i32x4(b, d, 0x88);
  rows[2] = _mm512_shuffle_i32x4(a, c, 0xdd);
  rows[3] = _mm512_shuffle_i32x4(b, d, 0xdd);
}

LADE_TARGET static inline void rows_of_zigzag(const zigzag_vectors& zigzag, vector* x) {
  const auto upper = _mm512_loadu_si512(upper_rows.data());
  const auto lower = _mm512_loadu_si512(lower_rows.data());
  vector top[4], bottom[4];
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {
    top[i] = _mm512_permutex2var_epi16(zigzag.first[i], upper, zigzag.second[i]);
    bottom[i] = _mm512_permutex2var_epi16(zigzag.first[i], lower, zigzag.second[i]);
  }
  four_lanes_of_blocks(top, x);
  four_lanes_of_blocks(bottom, x + 4);
}

// The two lanes of low frequencies, with one block per 128-bit lane.
LADE_TARGET static inline void pairs_of_zigzag(const zigzag_vectors& zigzag, vector* x) {
  const auto places = _mm512_loadu_si512(low_pairs.data());
  vector pairs[4];
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) pairs[i] = _mm512_permutexvar_epi16(places, zigzag.first[i]);
  const auto a = _mm512_shuffle_i32x4(pairs[0], pairs[1], 0x44);
  const auto b = _mm512_shuffle_i32x4(pairs[2], pairs[3], 0x44);
  x[0] = _mm512_shuffle_i32x4(a, b, 0x88);
  x[1] = _mm512_shuffle_i32x4(a, b, 0xdd);
}

// Copies 64 bytes at a time until there is a marker among them. The plain loop copies the rest, and
// a 0xff at the end of the last vector.
LADE_TARGET static const std::uint8_t* unstuff(const std::uint8_t* from, const std::uint8_t* end,
                                               std::uint8_t*& to) {
  std::uint64_t after = 0;  // bit 0: the previous byte was 0xff
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

}  // namespace lade::media::jpeg_avx512

#include "jpeg_vectors.hpp"

namespace lade::media {

const jpeg_kernels avx512_jpeg{.unstuff = jpeg_avx512::unstuff,
                               .entropy = &bmi2_entropy,
                               .transform = jpeg_avx512::transform<jpeg_avx512::transform_few>,
                               .transform_to_4 = jpeg_avx512::transform<jpeg_avx512::reduce_few<4>>,
                               .transform_to_2 = jpeg_avx512::transform<jpeg_avx512::reduce_few<2>>,
                               .double_columns = jpeg_avx512::double_columns,
                               .double_both = jpeg_avx512::double_both,
                               .double_rows = jpeg_avx512::double_rows,
                               .to_rgb = jpeg_avx512::to_rgb};

}  // namespace lade::media

#undef LADE_TARGET
#undef LADE_VECTORS
#pragma GCC diagnostic pop

#endif
