#include "jpeg_kernels.hpp"

#if defined(__x86_64__)

#include "jpeg_low_frequencies.hpp"

#include <immintrin.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#define LADE_TARGET __attribute__((target("avx2,fma,f16c,bmi,bmi2")))
#define LADE_VECTORS jpeg_avx2

namespace lade::media::jpeg_avx2 {

using vector = __m256i;
static constexpr int blocks_at_once = 2;

LADE_TARGET static inline vector zero() { return _mm256_setzero_si256(); }
LADE_TARGET static inline vector all_8(int x) { return _mm256_set1_epi8(static_cast<char>(x)); }
LADE_TARGET static inline vector all_16(int x) { return _mm256_set1_epi16(static_cast<short>(x)); }
LADE_TARGET static inline vector all_32(int x) { return _mm256_set1_epi32(x); }

LADE_TARGET static inline vector add_16(vector a, vector b) { return _mm256_add_epi16(a, b); }
LADE_TARGET static inline vector add_32(vector a, vector b) { return _mm256_add_epi32(a, b); }
LADE_TARGET static inline vector subtract_16(vector a, vector b) { return _mm256_sub_epi16(a, b); }
LADE_TARGET static inline vector subtract_32(vector a, vector b) { return _mm256_sub_epi32(a, b); }
LADE_TARGET static inline vector multiply_16(vector a, vector b) {
  return _mm256_mullo_epi16(a, b);
}
LADE_TARGET static inline vector multiply_high_16(vector a, vector b) {
  return _mm256_mulhi_epi16(a, b);
}
LADE_TARGET static inline vector multiply_add(vector a, vector b) {
  return _mm256_madd_epi16(a, b);
}

LADE_TARGET static inline vector absolute_16(vector x) { return _mm256_abs_epi16(x); }
LADE_TARGET static inline vector add_unsigned_16(vector a, vector b) {
  return _mm256_adds_epu16(a, b);
}

LADE_TARGET static inline vector bits_both(vector a, vector b) { return _mm256_and_si256(a, b); }
LADE_TARGET static inline vector bits_either(vector a, vector b) { return _mm256_or_si256(a, b); }
LADE_TARGET static inline vector bits_differ(vector a, vector b) { return _mm256_xor_si256(a, b); }

template <int by>
LADE_TARGET static inline vector shift_left_16(vector x) {
  return _mm256_slli_epi16(x, by);
}
template <int by>
LADE_TARGET static inline vector shift_right_16(vector x) {
  return _mm256_srli_epi16(x, by);
}
template <int by>
LADE_TARGET static inline vector shift_right_32(vector x) {
  return _mm256_srai_epi32(x, by);
}
LADE_TARGET static inline vector halve_16(vector x) { return _mm256_srai_epi16(x, 1); }

LADE_TARGET static inline vector pack_16(vector a, vector b) { return _mm256_packs_epi16(a, b); }
LADE_TARGET static inline vector pack_32(vector a, vector b) { return _mm256_packs_epi32(a, b); }
LADE_TARGET static inline vector interleave_low_8(vector a, vector b) {
  return _mm256_unpacklo_epi8(a, b);
}
LADE_TARGET static inline vector interleave_high_8(vector a, vector b) {
  return _mm256_unpackhi_epi8(a, b);
}
LADE_TARGET static inline vector interleave_low_16(vector a, vector b) {
  return _mm256_unpacklo_epi16(a, b);
}
LADE_TARGET static inline vector interleave_high_16(vector a, vector b) {
  return _mm256_unpackhi_epi16(a, b);
}
LADE_TARGET static inline vector interleave_low_32(vector a, vector b) {
  return _mm256_unpacklo_epi32(a, b);
}
LADE_TARGET static inline vector interleave_high_32(vector a, vector b) {
  return _mm256_unpackhi_epi32(a, b);
}
LADE_TARGET static inline vector interleave_low_64(vector a, vector b) {
  return _mm256_unpacklo_epi64(a, b);
}
LADE_TARGET static inline vector interleave_high_64(vector a, vector b) {
  return _mm256_unpackhi_epi64(a, b);
}
LADE_TARGET static inline vector pick_even_32(vector a, vector b) {
  return _mm256_castps_si256(
      _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
}
LADE_TARGET static inline vector pick_odd_32(vector a, vector b) {
  return _mm256_castps_si256(
      _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0xdd));
}

// Transposes 4 x 4 bytes in each lane.
LADE_TARGET static inline vector transpose_4_bytes(vector x) {
  return _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                    0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)));
}

LADE_TARGET static inline vector load_in_each_lane(const std::int16_t* in) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
}
LADE_TARGET static inline vector load_words(const std::uint8_t* in) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
}
LADE_TARGET static inline void store(vector x, std::uint8_t* out) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), x);
}
// Stores words as saturated bytes.
LADE_TARGET static inline void store_bytes(vector words, std::uint8_t* out) {
  const auto bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(bytes));
}

LADE_TARGET static inline bool all_within(vector x, int most) {
  const auto beyond =
      bits_either(_mm256_cmpgt_epi16(x, all_16(most)), _mm256_cmpgt_epi16(all_16(-most), x));
  return _mm256_testz_si256(beyond, beyond) != 0;
}

LADE_TARGET static inline bool all_at_most_16(vector x, int most) {
  const auto beyond = _mm256_subs_epu16(x, all_16(most));
  return _mm256_testz_si256(beyond, beyond) != 0;
}

// Eight coefficients of each block per vector.
struct zigzag_vectors {
  vector eighths[8];
};

// Masks of the first 32 coefficients: all bits are set in those outside of the lowest frequencies.
static constexpr std::array<std::int16_t, 32> high_coefficients = [] {
  std::array<std::int16_t, 32> high{};
  for (std::size_t k = 0; k < high.size(); ++k) high[k] = is_low_frequency(k) ? 0 : -1;
  return high;
}();

LADE_TARGET static inline jpeg_used load_zigzag(const std::int16_t* const* blocks,
                                                zigzag_vectors& zigzag) {
  auto* const x = zigzag.eighths;
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)
    x[i] = _mm256_set_m128i(_mm_load_si128(reinterpret_cast<const __m128i*>(blocks[1] + 8 * i)),
                            _mm_load_si128(reinterpret_cast<const __m128i*>(blocks[0] + 8 * i)));
  auto high = bits_either(bits_either(x[4], x[5]), bits_either(x[6], x[7]));
#pragma GCC unroll 8
  for (int i = 1; i < 4; ++i)
    high = bits_either(high, bits_both(x[i], load_in_each_lane(high_coefficients.data() + 8 * i)));
  high = bits_either(high, bits_both(x[0], load_in_each_lane(high_coefficients.data())));
  if (_mm256_testz_si256(high, high) == 0) return jpeg_used::all;
  const auto means = _mm256_set_epi32(0, 0, 0, 0xffff, 0, 0, 0, 0xffff);
  const auto low =
      bits_either(bits_either(x[1], x[2]), bits_either(x[3], _mm256_andnot_si256(means, x[0])));
  return _mm256_testz_si256(low, low) == 0 ? jpeg_used::low : jpeg_used::mean;
}

// A shuffle of eight coefficients in zigzag order to a lane. Positions that it does not fill become
// 0.
struct lane_shuffle {
  std::array<std::int8_t, 16> bytes{};
  bool used = false;
};

static constexpr lane_shuffle shuffle_of(const jpeg_lane& lane, std::size_t eighth) {
  lane_shuffle shuffle;
  shuffle.bytes.fill(-1);
  for (std::size_t i = 0; i < 8; ++i) {
    const auto k = zigzag_index(lane[i]);
    if (k / 8 != eighth) continue;
    shuffle.used = true;
    shuffle.bytes[2 * i] = static_cast<std::int8_t>(2 * (k % 8));
    shuffle.bytes[2 * i + 1] = static_cast<std::int8_t>(2 * (k % 8) + 1);
  }
  return shuffle;
}

template <const auto& lanes, std::size_t lane, std::size_t eighth>
static constexpr lane_shuffle shuffle_into = shuffle_of(lanes[lane], eighth);

template <const auto& lanes, std::size_t lane, std::size_t eighth>
LADE_TARGET static inline void take_from(const zigzag_vectors& zigzag, vector& out) {
  if constexpr (shuffle_into<lanes, lane, eighth>.used) {
    const auto bytes = _mm_loadu_si128(
        reinterpret_cast<const __m128i*>(shuffle_into<lanes, lane, eighth>.bytes.data()));
    out = bits_either(
        out, _mm256_shuffle_epi8(zigzag.eighths[eighth], _mm256_broadcastsi128_si256(bytes)));
  }
}

template <const auto& lanes, std::size_t lane, std::size_t... eighths>
LADE_TARGET static inline vector lane_of_zigzag(const zigzag_vectors& zigzag,
                                                std::index_sequence<eighths...>) {
  auto out = zero();
  (take_from<lanes, lane, eighths>(zigzag, out), ...);
  return out;
}

template <const auto& lanes, std::size_t... each>
LADE_TARGET static inline void lanes_of_zigzag(const zigzag_vectors& zigzag, vector* x,
                                               std::index_sequence<each...>) {
  ((x[each] = lane_of_zigzag<lanes, each>(zigzag, std::make_index_sequence<8>())), ...);
}

LADE_TARGET static inline void rows_of_zigzag(const zigzag_vectors& zigzag, vector* x) {
  lanes_of_zigzag<jpeg_rows>(zigzag, x, std::make_index_sequence<8>());
}

LADE_TARGET static inline void pairs_of_zigzag(const zigzag_vectors& zigzag, vector* x) {
  lanes_of_zigzag<jpeg_low_pairs>(zigzag, x, std::make_index_sequence<2>());
}

}  // namespace lade::media::jpeg_avx2

#include "jpeg_vectors.hpp"

namespace lade::media {

const jpeg_kernels avx2_jpeg{.unstuff = plain_unstuff,
                             .entropy = &bmi2_entropy,
                             .transform = jpeg_avx2::transform<jpeg_avx2::transform_few>,
                             .transform_to_4 = jpeg_avx2::transform<jpeg_avx2::reduce_few<4>>,
                             .transform_to_2 = jpeg_avx2::transform<jpeg_avx2::reduce_few<2>>,
                             .double_columns = jpeg_avx2::double_columns,
                             .double_both = jpeg_avx2::double_both,
                             .double_rows = jpeg_avx2::double_rows,
                             .to_rgb = jpeg_avx2::to_rgb};

}  // namespace lade::media

#undef LADE_TARGET
#undef LADE_VECTORS

#endif
