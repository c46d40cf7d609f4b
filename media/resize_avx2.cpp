#include "resize_kernels.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#define LADE_AVX2 __attribute__((target("avx2,fma,f16c")))

namespace lade::media {

LADE_AVX2 static inline __m128i load_128(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

LADE_AVX2 static inline __m256i load_halves(const void* low, const void* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load_128(low)), load_128(high), 1);
}

// Two successive weights in every lane.
LADE_AVX2 static inline __m256i weight_pair_256(const std::int16_t* weights) {
  std::int32_t pair = 0;
  std::memcpy(&pair, weights, sizeof pair);
  return _mm256_set1_epi32(pair);
}

LADE_AVX2 static inline __m256i load_256(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

LADE_AVX2 static inline void store_256(__m256i value, std::int16_t* out) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), value);
}

// Sums of 32 columns. Even and odd columns are separated by arithmetic: only one or two ports of a
// CPU execute shuffles.
struct column_sums {
  __m256i even_low, odd_low, even_high, odd_high;
};

LADE_AVX2 static inline column_sums no_columns() {
  constexpr int shift = resize_axis::precision - resize_kernels::blend_precision;
  const auto half = _mm256_set1_epi32(1 << (shift - 1));
  return {half, half, half, half};
}

LADE_AVX2 static inline __m256i multiply_even(__m256i columns, __m256i weights) {
  return _mm256_madd_epi16(_mm256_and_si256(columns, _mm256_set1_epi16(0xff)), weights);
}

LADE_AVX2 static inline __m256i multiply_odd(__m256i columns, __m256i weights) {
  return _mm256_madd_epi16(_mm256_srli_epi16(columns, 8), weights);
}

// Adds 32 columns of two rows. Interleaved, each 32-bit lane holds two columns of one row, then the
// same columns of the other.
LADE_AVX2 static inline void add_rows(column_sums& sums, const std::uint8_t* upper,
                                      const std::uint8_t* lower, __m256i weights) {
  const auto a = load_256(upper);
  const auto b = load_256(lower);
  const auto low = _mm256_unpacklo_epi16(a, b);
  const auto high = _mm256_unpackhi_epi16(a, b);
  sums.even_low = _mm256_add_epi32(sums.even_low, multiply_even(low, weights));
  sums.odd_low = _mm256_add_epi32(sums.odd_low, multiply_odd(low, weights));
  sums.even_high = _mm256_add_epi32(sums.even_high, multiply_even(high, weights));
  sums.odd_high = _mm256_add_epi32(sums.odd_high, multiply_odd(high, weights));
}

// Interleaves even and odd sums as words.
LADE_AVX2 static inline __m256i words_of(__m256i even, __m256i odd) {
  constexpr int shift = resize_axis::precision - resize_kernels::blend_precision;
  return _mm256_blend_epi16(_mm256_srli_epi32(even, shift), _mm256_slli_epi32(odd, 16 - shift),
                            0xaa);
}

LADE_AVX2 static inline void store_columns(const column_sums& sums, std::int16_t* out) {
  const auto low = words_of(sums.even_low, sums.odd_low);
  const auto high = words_of(sums.even_high, sums.odd_high);
  store_256(_mm256_permute2x128_si256(low, high, 0x20), out);
  store_256(_mm256_permute2x128_si256(low, high, 0x31), out + 16);
}

// Blends a number of row pairs known at compile time. Their weights and addresses stay in
// registers.
template <std::size_t... Pairs>
LADE_AVX2 static void blend_pairs(const std::uint8_t* const* rows, const std::int16_t* weights,
                                  int count, std::int16_t* out, std::index_sequence<Pairs...>) {
  const std::uint8_t* const upper[] = {rows[2 * Pairs]...};
  const std::uint8_t* const lower[] = {rows[2 * Pairs + 1]...};
  const __m256i pairs[] = {weight_pair_256(weights + 2 * Pairs)...};
  for (int next = 0; next < count; next += 32) {
    const int x = std::min(next, count - 32);
    auto sums = no_columns();
    (add_rows(sums, upper[Pairs] + x, lower[Pairs] + x, pairs[Pairs]), ...);
    store_columns(sums, out + x);
  }
}

LADE_AVX2 static void blend_many(const std::uint8_t* const* rows, const std::int16_t* weights,
                                 int taps, int count, std::int16_t* out) {
  for (int next = 0; next < count; next += 32) {
    const int x = std::min(next, count - 32);
    auto sums = no_columns();
    for (int k = 0; k < taps; k += 2)
      add_rows(sums, rows[k] + x, rows[k + 1] + x, weight_pair_256(weights + k));
    store_columns(sums, out + x);
  }
}

// 32 columns at a time; the last 32 overlap the ones before.
static void blend_avx2(const std::uint8_t* const* rows, const std::int16_t* weights, int taps,
                       int count, std::int16_t* out) {
  if (count < 32) return plain_resize.blend(rows, weights, taps, count, out);
  switch ((taps + 1) / 2) {
    case 1: return blend_pairs(rows, weights, count, out, std::make_index_sequence<1>());
    case 2: return blend_pairs(rows, weights, count, out, std::make_index_sequence<2>());
    case 3: return blend_pairs(rows, weights, count, out, std::make_index_sequence<3>());
    case 4: return blend_pairs(rows, weights, count, out, std::make_index_sequence<4>());
    default: return blend_many(rows, weights, taps, count, out);
  }
}

// Sixteen words with their samples in the upper bits, minus 0x8000: signed numbers.
LADE_AVX2 static inline __m256i load_signed(const std::uint8_t* row, int x, __m128i left) {
  return _mm256_xor_si256(_mm256_sll_epi16(load_256(row + 2 * x), left),
                          _mm256_set1_epi16(-0x8000));
}

LADE_AVX2 static void blend_16_avx2(const std::uint8_t* const* rows, const std::int16_t* weights,
                                    int taps, int count, const wide_samples& samples,
                                    std::int16_t* out) {
  if (count < 16) return plain_resize.blend_16(rows, weights, taps, count, samples, out);
  constexpr int shift = resize_axis::precision + 8 - resize_kernels::blend_precision;
  constexpr int sign = 0x8000 << resize_axis::precision;
  const auto half = _mm256_set1_epi32(sign + (1 << (shift - 1)));
  const auto left = _mm_cvtsi32_si128(samples.left);
  const auto centre = _mm256_set1_epi16(samples.centre);
  const auto gain = _mm256_set1_epi16(samples.gain);
  for (int next = 0; next < count; next += 16) {
    const int x = std::min(next, count - 16);
    auto low = half;
    auto high = half;
    for (int k = 0; k < taps; k += 2) {
      const auto upper = load_signed(rows[k], x, left);
      const auto lower = load_signed(rows[k + 1], x, left);
      const auto pair = weight_pair_256(weights + k);
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(upper, lower), pair));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(upper, lower), pair));
    }
    const auto values =
        _mm256_packs_epi32(_mm256_srai_epi32(low, shift), _mm256_srai_epi32(high, shift));
    const auto more = _mm256_mulhrs_epi16(_mm256_sub_epi16(values, centre), gain);
    store_256(_mm256_min_epi16(_mm256_add_epi16(values, more),
                               _mm256_set1_epi16(resize_kernels::most_blended)),
              out + x);
  }
}

LADE_AVX2 static void split_2_avx2(const std::int16_t* in, int count, std::int16_t* const* out) {
  const auto lower = _mm256_set1_epi32(0xffff);
  for (int x = 0; x < count; x += 16, in += 32) {
    const auto a = load_256(in);
    const auto b = load_256(in + 16);
    const auto first = _mm256_packus_epi32(_mm256_and_si256(a, lower), _mm256_and_si256(b, lower));
    const auto second = _mm256_packus_epi32(_mm256_srli_epi32(a, 16), _mm256_srli_epi32(b, 16));
    store_256(_mm256_permute4x64_epi64(first, 0xd8), out[0] + x);
    store_256(_mm256_permute4x64_epi64(second, 0xd8), out[1] + x);
  }
}

// Two pixels of four channels in each half, as a pair of words per channel.
LADE_AVX2 static inline __m256i channel_pairs(const std::int16_t* low, const std::int16_t* high) {
  const auto order = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
  return _mm256_shuffle_epi8(load_halves(low, high), order);
}

// Each half handles eight pixels.
LADE_AVX2 static void split_4_avx2(const std::int16_t* in, int count, std::int16_t* const* out) {
  for (int x = 0; x < count; x += 16, in += 64) {
    const auto a = channel_pairs(in, in + 32);
    const auto b = channel_pairs(in + 8, in + 40);
    const auto c = channel_pairs(in + 16, in + 48);
    const auto d = channel_pairs(in + 24, in + 56);
    const auto ab_low = _mm256_unpacklo_epi32(a, b);
    const auto ab_high = _mm256_unpackhi_epi32(a, b);
    const auto cd_low = _mm256_unpacklo_epi32(c, d);
    const auto cd_high = _mm256_unpackhi_epi32(c, d);
    store_256(_mm256_unpacklo_epi64(ab_low, cd_low), out[0] + x);
    store_256(_mm256_unpackhi_epi64(ab_low, cd_low), out[1] + x);
    store_256(_mm256_unpacklo_epi64(ab_high, cd_high), out[2] + x);
    store_256(_mm256_unpackhi_epi64(ab_high, cd_high), out[3] + x);
  }
}

// A shuffle that sorts eight samples of a channel, which blends have gathered from 24 interleaved
// ones.
LADE_AVX2 static inline __m256i order_of_eight(int a, int b, int c, int d, int e, int f, int g,
                                               int h) {
  const auto word = [](int i) { return static_cast<short>(2 * i | (2 * i + 1) << 8); };
  return _mm256_broadcastsi128_si256(
      _mm_setr_epi16(word(a), word(b), word(c), word(d), word(e), word(f), word(g), word(h)));
}

// Gathers each channel from three vectors of eight by two blends, and sorts it by a shuffle. Each
// half handles eight pixels.
LADE_AVX2 static void split_3_avx2(const std::int16_t* in, int count, std::int16_t* const* out) {
  const auto order_0 = order_of_eight(0, 3, 6, 1, 4, 7, 2, 5);
  const auto order_1 = order_of_eight(1, 4, 7, 2, 5, 0, 3, 6);
  const auto order_2 = order_of_eight(2, 5, 0, 3, 6, 1, 4, 7);
  for (int x = 0; x < count; x += 16, in += 48) {
    const auto a = load_halves(in, in + 24);
    const auto b = load_halves(in + 8, in + 32);
    const auto c = load_halves(in + 16, in + 40);
    const auto r = _mm256_blend_epi16(_mm256_blend_epi16(a, b, 0x92), c, 0x24);
    const auto g = _mm256_blend_epi16(_mm256_blend_epi16(a, b, 0x24), c, 0x49);
    const auto s = _mm256_blend_epi16(_mm256_blend_epi16(a, b, 0x49), c, 0x92);
    store_256(_mm256_shuffle_epi8(r, order_0), out[0] + x);
    store_256(_mm256_shuffle_epi8(g, order_1), out[1] + x);
    store_256(_mm256_shuffle_epi8(s, order_2), out[2] + x);
  }
}

// The tables of an axis, copied to registers: stores of bytes may alias anything in memory.
struct axis_tables {
  const std::int16_t* in;
  const int* offsets;
  const std::int16_t* weights;
  int stride;

  axis_tables(const std::int16_t* samples, const resize_axis& axis)
      : in(samples), offsets(axis.offsets()), weights(axis.table()), stride(axis.stride()) {}
};

// Four source samples of output i in the lower half, of output i + 1 in the upper half.
LADE_AVX2 static inline __m128i four_samples_of_two(const axis_tables& tables, int i) {
  const auto* a = reinterpret_cast<const __m128i*>(tables.in + tables.offsets[i]);
  const auto* b = reinterpret_cast<const double*>(tables.in + tables.offsets[i + 1]);
  return _mm_castpd_si128(_mm_loadh_pd(_mm_castsi128_pd(_mm_loadl_epi64(a)), b));
}

// For four weights: two partial sums each of outputs i, i + 1 (lower half), i + 4 and i + 5.
LADE_AVX2 static inline __m256i two_and_two_outputs(const axis_tables& tables, int i) {
  const auto samples =
      _mm256_inserti128_si256(_mm256_castsi128_si256(four_samples_of_two(tables, i)),
                              four_samples_of_two(tables, i + 4), 1);
  const auto* weights = tables.weights + 4 * i;
  return _mm256_madd_epi16(samples, load_halves(weights, weights + 16));
}

// The sums of outputs i to i + 7, of four weights each.
LADE_AVX2 static inline __m256i eight_narrow_sums(const axis_tables& tables, int i) {
  return _mm256_hadd_epi32(two_and_two_outputs(tables, i), two_and_two_outputs(tables, i + 2));
}

// Four partial sums each of outputs i (lower half) and i + 1, of eight weights each.
LADE_AVX2 static inline __m256i two_outputs(const axis_tables& tables, int i) {
  const auto* offsets = tables.offsets + i;
  return _mm256_madd_epi16(load_halves(tables.in + offsets[0], tables.in + offsets[1]),
                           load_256(tables.weights + 8 * i));
}

// The sums of outputs i to i + 7, of eight weights each.
LADE_AVX2 static inline __m256i eight_sums(const axis_tables& tables, int i) {
  const auto first = _mm256_hadd_epi32(two_outputs(tables, i), two_outputs(tables, i + 2));
  const auto second = _mm256_hadd_epi32(two_outputs(tables, i + 4), two_outputs(tables, i + 6));
  const auto even_and_odd = _mm256_hadd_epi32(first, second);
  return _mm256_permutevar8x32_epi32(even_and_odd, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Eight partial sums of output i, of a multiple of sixteen weights.
LADE_AVX2 static inline __m256i one_output(const axis_tables& tables, int i) {
  const auto* samples = tables.in + tables.offsets[i];
  const auto* weights = tables.weights + i * tables.stride;
  auto sum = _mm256_madd_epi16(load_256(samples), load_256(weights));
  for (int k = 16; k < tables.stride; k += 16)
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(load_256(samples + k), load_256(weights + k)));
  return sum;
}

// Two partial sums of each output from i to i + 3, in both halves.
LADE_AVX2 static inline __m256i four_outputs(const axis_tables& tables, int i) {
  return _mm256_hadd_epi32(_mm256_hadd_epi32(one_output(tables, i), one_output(tables, i + 1)),
                           _mm256_hadd_epi32(one_output(tables, i + 2), one_output(tables, i + 3)));
}

// The sums of outputs i to i + 7, of a multiple of sixteen weights each.
LADE_AVX2 static inline __m256i eight_wide_sums(const axis_tables& tables, int i) {
  const auto first = four_outputs(tables, i);
  const auto second = four_outputs(tables, i + 4);
  return _mm256_add_epi32(_mm256_permute2x128_si256(first, second, 0x20),
                          _mm256_permute2x128_si256(first, second, 0x31));
}

static void filter_one(const std::int16_t* in, const resize_axis& axis, int i, std::uint8_t* out) {
  constexpr int shift = resize_axis::precision + resize_kernels::blend_precision;
  const auto* source = in + (axis.start(i) - axis.first());
  int sum = 1 << (shift - 1);
  for (int k = 0; k < axis.taps(i); ++k) sum += axis.weights(i)[k] * source[k];
  out[i] = static_cast<std::uint8_t>(sum >> shift);
}

// Rounds eight sums and stores them as bytes.
LADE_AVX2 static inline void store_outputs(__m256i sums, std::uint8_t* out) {
  constexpr int shift = resize_axis::precision + resize_kernels::blend_precision;
  const auto half = _mm256_set1_epi32(1 << (shift - 1));
  const auto values = _mm256_srai_epi32(_mm256_add_epi32(sums, half), shift);
  const auto words =
      _mm_packs_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_packus_epi16(words, words));
}

LADE_AVX2 static void filter_avx2(const std::int16_t* in, const resize_axis& axis,
                                  const resize_blocks*, std::uint8_t* out) {
  const axis_tables tables(in, axis);
  const int count = axis.count();
  int i = 0;
  if (tables.stride == 4) {
    for (; i + 8 <= count; i += 8) store_outputs(eight_narrow_sums(tables, i), out + i);
  } else if (tables.stride == 8) {
    for (; i + 8 <= count; i += 8) store_outputs(eight_sums(tables, i), out + i);
  } else {
    for (; i + 8 <= count; i += 8) store_outputs(eight_wide_sums(tables, i), out + i);
  }
  for (; i < count; ++i) filter_one(in, axis, i, out);
}

const resize_kernels avx2_resize{
    .blend = blend_avx2,
    .blend_16 = blend_16_avx2,
    .split_2 = split_2_avx2,
    .split_3 = split_3_avx2,
    .split_4 = split_4_avx2,
    .filter = filter_avx2,
};

}  // namespace lade::media

#undef LADE_AVX2

#endif
