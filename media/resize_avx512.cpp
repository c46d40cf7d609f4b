#include "resize_kernels.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

// GCC 12 warns about uninitialised operands in its own intrinsics.
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define LADE_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")))

namespace lade::media {

LADE_AVX512 static inline __m512i weight_pair_512(const std::int16_t* weights) {
  std::int32_t pair = 0;
  std::memcpy(&pair, weights, sizeof pair);
  return _mm512_set1_epi32(pair);
}

// Sums of 64 columns: see resize_avx2.cpp.
struct wide_column_sums {
  __m512i even_low, odd_low, even_high, odd_high;
};

LADE_AVX512 static inline wide_column_sums no_wide_columns() {
  constexpr int shift = resize_axis::precision - resize_kernels::blend_precision;
  const auto half = _mm512_set1_epi32(1 << (shift - 1));
  return {half, half, half, half};
}

LADE_AVX512 static inline __m512i even_bytes(__m512i columns) {
  return _mm512_and_si512(columns, _mm512_set1_epi16(0xff));
}

LADE_AVX512 static inline void add_wide_rows(wide_column_sums& sums, const std::uint8_t* upper,
                                             const std::uint8_t* lower, __mmask64 mask,
                                             __m512i weights) {
  const auto a = _mm512_maskz_loadu_epi8(mask, upper);
  const auto b = _mm512_maskz_loadu_epi8(mask, lower);
  const auto low = _mm512_unpacklo_epi16(a, b);
  const auto high = _mm512_unpackhi_epi16(a, b);
  sums.even_low = _mm512_dpwssd_epi32(sums.even_low, even_bytes(low), weights);
  sums.odd_low = _mm512_dpwssd_epi32(sums.odd_low, _mm512_srli_epi16(low, 8), weights);
  sums.even_high = _mm512_dpwssd_epi32(sums.even_high, even_bytes(high), weights);
  sums.odd_high = _mm512_dpwssd_epi32(sums.odd_high, _mm512_srli_epi16(high, 8), weights);
}

LADE_AVX512 static inline __m512i wide_words_of(__m512i even, __m512i odd) {
  constexpr int shift = resize_axis::precision - resize_kernels::blend_precision;
  return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(even, shift),
                                 _mm512_slli_epi32(odd, 16 - shift));
}

// Stores the first 32 columns, or all 64 if there are more.
LADE_AVX512 static inline void store_wide_columns(const wide_column_sums& sums, int count,
                                                  std::int16_t* out) {
  const auto low = wide_words_of(sums.even_low, sums.odd_low);
  const auto high = wide_words_of(sums.even_high, sums.odd_high);
  const auto first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const auto second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  _mm512_storeu_si512(out, _mm512_permutex2var_epi64(low, first, high));
  if (count > 32) _mm512_storeu_si512(out + 32, _mm512_permutex2var_epi64(low, second, high));
}

// Blends a number of row pairs known at compile time. Their weights and addresses stay in
// registers.
template <std::size_t... Pairs>
LADE_AVX512 static void blend_wide_pairs(const std::uint8_t* const* rows,
                                         const std::int16_t* weights, int count, std::int16_t* out,
                                         std::index_sequence<Pairs...>) {
  const std::uint8_t* const upper[] = {rows[2 * Pairs]...};
  const std::uint8_t* const lower[] = {rows[2 * Pairs + 1]...};
  const __m512i pairs[] = {weight_pair_512(weights + 2 * Pairs)...};
  for (int x = 0; x < count; x += 64) {
    const auto mask = static_cast<__mmask64>(first_lanes(count - x));
    auto sums = no_wide_columns();
    (add_wide_rows(sums, upper[Pairs] + x, lower[Pairs] + x, mask, pairs[Pairs]), ...);
    store_wide_columns(sums, count - x, out + x);
  }
}

LADE_AVX512 static void blend_wide_many(const std::uint8_t* const* rows,
                                        const std::int16_t* weights, int taps, int count,
                                        std::int16_t* out) {
  for (int x = 0; x < count; x += 64) {
    const auto mask = static_cast<__mmask64>(first_lanes(count - x));
    auto sums = no_wide_columns();
    for (int k = 0; k < taps; k += 2)
      add_wide_rows(sums, rows[k] + x, rows[k + 1] + x, mask, weight_pair_512(weights + k));
    store_wide_columns(sums, count - x, out + x);
  }
}

static void blend_avx512(const std::uint8_t* const* rows, const std::int16_t* weights, int taps,
                         int count, std::int16_t* out) {
  switch ((taps + 1) / 2) {
    case 1: return blend_wide_pairs(rows, weights, count, out, std::make_index_sequence<1>());
    case 2: return blend_wide_pairs(rows, weights, count, out, std::make_index_sequence<2>());
    case 3: return blend_wide_pairs(rows, weights, count, out, std::make_index_sequence<3>());
    case 4: return blend_wide_pairs(rows, weights, count, out, std::make_index_sequence<4>());
    default: return blend_wide_many(rows, weights, taps, count, out);
  }
}

// 32 words with their samples in the upper bits, minus 0x8000: signed numbers.
LADE_AVX512 static inline __m512i load_32_signed(const std::uint8_t* row, __mmask32 mask,
                                                 __m128i left) {
  return _mm512_xor_si512(_mm512_sll_epi16(_mm512_maskz_loadu_epi16(mask, row), left),
                          _mm512_set1_epi16(-0x8000));
}

LADE_AVX512 static void blend_16_avx512(const std::uint8_t* const* rows,
                                        const std::int16_t* weights, int taps, int count,
                                        const wide_samples& samples, std::int16_t* out) {
  constexpr int shift = resize_axis::precision + 8 - resize_kernels::blend_precision;
  constexpr int sign = 0x8000 << resize_axis::precision;
  const auto half = _mm512_set1_epi32(sign + (1 << (shift - 1)));
  const auto left = _mm_cvtsi32_si128(samples.left);
  const auto centre = _mm512_set1_epi16(samples.centre);
  const auto gain = _mm512_set1_epi16(samples.gain);
  for (int x = 0; x < count; x += 32) {
    const auto mask = static_cast<__mmask32>(first_lanes(count - x));
    auto low = half;
    auto high = half;
    for (int k = 0; k < taps; k += 2) {
      const auto upper = load_32_signed(rows[k] + 2 * x, mask, left);
      const auto lower = load_32_signed(rows[k + 1] + 2 * x, mask, left);
      const auto pair = weight_pair_512(weights + k);
      low = _mm512_dpwssd_epi32(low, _mm512_unpacklo_epi16(upper, lower), pair);
      high = _mm512_dpwssd_epi32(high, _mm512_unpackhi_epi16(upper, lower), pair);
    }
    const auto values =
        _mm512_packs_epi32(_mm512_srai_epi32(low, shift), _mm512_srai_epi32(high, shift));
    const auto more = _mm512_mulhrs_epi16(_mm512_sub_epi16(values, centre), gain);
    const auto most = _mm512_set1_epi16(resize_kernels::most_blended);
    _mm512_storeu_si512(out + x, _mm512_min_epi16(_mm512_add_epi16(values, more), most));
  }
}

// Picks every second or fourth sample from two vectors: 32 samples of one of two channels, or 16 of
// one of four channels, twice.
struct strided_picks {
  alignas(64) std::array<std::int16_t, 32> from{};

  explicit constexpr strided_picks(int channels, int channel) {
    for (int i = 0; i < 32; ++i)
      from[static_cast<std::size_t>(i)] = static_cast<std::int16_t>((channels * i + channel) % 64);
  }
};
static constexpr std::array<strided_picks, 2> picks_of_2{strided_picks(2, 0), strided_picks(2, 1)};
static constexpr std::array<strided_picks, 4> picks_of_4{strided_picks(4, 0), strided_picks(4, 1),
                                                         strided_picks(4, 2), strided_picks(4, 3)};

LADE_AVX512 static void split_2_avx512(const std::int16_t* in, int count,
                                       std::int16_t* const* out) {
  for (int x = 0; x < count; x += 32, in += 64) {
    const auto a = _mm512_loadu_si512(in);
    const auto b = _mm512_loadu_si512(in + 32);
    for (std::size_t c = 0; c < 2; ++c)
      _mm512_storeu_si512(out[c] + x, _mm512_permutex2var_epi16(
                                          a, _mm512_load_si512(picks_of_2[c].from.data()), b));
  }
}

LADE_AVX512 static void split_4_avx512(const std::int16_t* in, int count,
                                       std::int16_t* const* out) {
  for (int x = 0; x < count; x += 32, in += 128) {
    const auto a = _mm512_loadu_si512(in);
    const auto b = _mm512_loadu_si512(in + 32);
    const auto c = _mm512_loadu_si512(in + 64);
    const auto d = _mm512_loadu_si512(in + 96);
    for (std::size_t channel = 0; channel < 4; ++channel) {
      const auto from = _mm512_load_si512(picks_of_4[channel].from.data());
      const auto low = _mm512_permutex2var_epi16(a, from, b);
      const auto high = _mm512_permutex2var_epi16(c, from, d);
      _mm512_storeu_si512(out[channel] + x, _mm512_mask_blend_epi16(0xffff0000, low, high));
    }
  }
}

// Picks one channel of 32 pixels from three vectors: `of_two` from the first two, then `of_third`
// from the third.
struct channel_picks {
  alignas(64) std::array<std::int16_t, 32> of_two{};
  alignas(64) std::array<std::int16_t, 32> of_third{};

  explicit constexpr channel_picks(int channel) {
    for (std::size_t i = 0; i < 32; ++i) {
      const auto from = static_cast<std::int16_t>(3 * i + std::size_t(channel));
      of_two[i] = static_cast<std::int16_t>(from % 64);
      of_third[i] = static_cast<std::int16_t>(from < 64 ? i : std::size_t(32 + from - 64));
    }
  }
};
static constexpr std::array<channel_picks, 3> picks{channel_picks(0), channel_picks(1),
                                                    channel_picks(2)};

LADE_AVX512 static void split_3_avx512(const std::int16_t* in, int count,
                                       std::int16_t* const* out) {
  for (int x = 0; x < count; x += 32, in += 96) {
    const auto a = _mm512_loadu_si512(in);
    const auto b = _mm512_loadu_si512(in + 32);
    const auto c = _mm512_loadu_si512(in + 64);
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const auto of_two = _mm512_load_si512(picks[channel].of_two.data());
      const auto of_third = _mm512_load_si512(picks[channel].of_third.data());
      const auto two = _mm512_permutex2var_epi16(a, of_two, b);
      _mm512_storeu_si512(out[channel] + x, _mm512_permutex2var_epi16(two, of_third, c));
    }
  }
}

// The 64 samples from a base on, or the first 32 twice.
struct sample_window {
  __m512i low, high;
};

template <block_span Span>
LADE_AVX512 static inline sample_window load_window(const std::int16_t* from) {
  const auto low = _mm512_loadu_si512(from);
  return {low, Span == block_span::sixteen_in_32 ? low : _mm512_loadu_si512(from + 32)};
}

// A pair of samples for each of sixteen outputs.
template <block_span Span>
LADE_AVX512 static inline __m512i pick_pairs(const sample_window& first,
                                             const sample_window& second, __m512i pairs) {
  if constexpr (Span == block_span::sixteen_in_32)
    return _mm512_permutexvar_epi32(pairs, first.low);
  const auto samples = _mm512_permutex2var_epi32(first.low, pairs, first.high);
  if constexpr (Span == block_span::sixteen_in_64) return samples;
  return _mm512_mask_blend_epi32(0xff00, samples,
                                 _mm512_permutex2var_epi32(second.low, pairs, second.high));
}

// in[0] is source sample `origin`.
template <block_span Span>
LADE_AVX512 static void filter_blocks(const std::int16_t* in, int origin,
                                      const resize_blocks& blocks, std::uint8_t* out) {
  constexpr int shift = resize_axis::precision + resize_kernels::blend_precision;
  const auto half = _mm512_set1_epi32(1 << (shift - 1));
  const auto one = _mm512_set1_epi32(1);
  // In registers: stores of bytes may alias anything in memory.
  const int count = blocks.count();
  const int pair_count = blocks.pairs();
  const int* bases = blocks.bases(0);
  const auto* first_pairs = blocks.pairs(0);
  const auto* weights = blocks.weights(0);
  for (int b = 0; b < count; ++b, bases += 2, first_pairs += resize_blocks::outputs) {
    const auto first = load_window<Span>(in + (bases[0] - origin));
    const auto second =
        Span == block_span::eight_in_64 ? load_window<Span>(in + (bases[1] - origin)) : first;
    auto pairs = _mm512_loadu_si512(first_pairs);
    auto sums = half;
    for (int k = 0; k < pair_count; ++k, weights += 2 * resize_blocks::outputs) {
      const auto samples = pick_pairs<Span>(first, second, pairs);
      sums = _mm512_dpwssd_epi32(sums, samples, _mm512_loadu_si512(weights));
      pairs = _mm512_add_epi32(pairs, one);
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + b * resize_blocks::outputs),
                     _mm512_cvtepi32_epi8(_mm512_srai_epi32(sums, shift)));
  }
}

static void filter_avx512(const std::int16_t* in, const resize_axis& axis,
                          const resize_blocks* blocks, std::uint8_t* out) {
  if (blocks == nullptr) return avx2_resize.filter(in, axis, blocks, out);
  switch (blocks->span()) {
    case block_span::sixteen_in_32:
      return filter_blocks<block_span::sixteen_in_32>(in, axis.first(), *blocks, out);
    case block_span::sixteen_in_64:
      return filter_blocks<block_span::sixteen_in_64>(in, axis.first(), *blocks, out);
    case block_span::eight_in_64:
      return filter_blocks<block_span::eight_in_64>(in, axis.first(), *blocks, out);
  }
}

const resize_kernels avx512_resize{
    .blend = blend_avx512,
    .blend_16 = blend_16_avx512,
    .split_2 = split_2_avx512,
    .split_3 = split_3_avx512,
    .split_4 = split_4_avx512,
    .filter = filter_avx512,
};

}  // namespace lade::media

#undef LADE_AVX512
#pragma GCC diagnostic pop

#endif
