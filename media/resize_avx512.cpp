#include "resize_kernels.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include <array>
#include <cstring>

// GCC 12 takes the undefined operands of its own intrinsics for mistakes.
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define LADE_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")))

namespace lade::media {

LADE_AVX512 static inline __m512i weight_pair_512(const std::int16_t* weights) {
  std::int32_t pair;
  std::memcpy(&pair, weights, sizeof pair);
  return _mm512_set1_epi32(pair);
}

// Sums of sixteen even and of sixteen odd columns: see resize_avx2.cpp.
struct wide_column_sums {
  __m512i even;
  __m512i odd;
};

LADE_AVX512 static inline void add_wide_rows(wide_column_sums& sums, __m512i columns,
                                             __m512i weights) {
  const auto even = _mm512_and_si512(columns, _mm512_set1_epi16(0xff));
  sums.even = _mm512_dpwssd_epi32(sums.even, even, weights);
  sums.odd = _mm512_dpwssd_epi32(sums.odd, _mm512_srli_epi16(columns, 8), weights);
}

LADE_AVX512 static inline __m512i wide_words_of(const wide_column_sums& sums) {
  constexpr int shift = resize_axis::precision - resize_kernels::blend_precision;
  return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(sums.even, shift),
                                 _mm512_slli_epi32(sums.odd, 16 - shift));
}

LADE_AVX512 static void blend_avx512(const std::uint8_t* const* rows, const std::int16_t* weights,
                                     int taps, int count, std::int16_t* out) {
  constexpr int shift = resize_axis::precision - resize_kernels::blend_precision;
  const auto half = _mm512_set1_epi32(1 << (shift - 1));
  const auto first_half = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const auto second_half = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  for (int x = 0; x < count; x += 64) {
    const auto which = static_cast<__mmask64>(first_lanes(count - x));
    wide_column_sums low{half, half};
    wide_column_sums high{half, half};
    for (int k = 0; k < taps; k += 2) {
      const auto upper = _mm512_maskz_loadu_epi8(which, rows[k] + x);
      const auto lower = _mm512_maskz_loadu_epi8(which, rows[k + 1] + x);
      const auto pair = weight_pair_512(weights + k);
      add_wide_rows(low, _mm512_unpacklo_epi16(upper, lower), pair);
      add_wide_rows(high, _mm512_unpackhi_epi16(upper, lower), pair);
    }
    const auto first = wide_words_of(low);
    const auto second = wide_words_of(high);
    _mm512_storeu_si512(out + x, _mm512_permutex2var_epi64(first, first_half, second));
    if (count - x > 32)
      _mm512_storeu_si512(out + x + 32, _mm512_permutex2var_epi64(first, second_half, second));
  }
}

// 32 words as signed numbers: 0x8000 less than the samples in their upper bits.
LADE_AVX512 static inline __m512i load_32_signed(const std::uint8_t* row, __mmask32 which,
                                                 __m128i left) {
  return _mm512_xor_si512(_mm512_sll_epi16(_mm512_maskz_loadu_epi16(which, row), left),
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
    const auto which = static_cast<__mmask32>(first_lanes(count - x));
    auto low = half;
    auto high = half;
    for (int k = 0; k < taps; k += 2) {
      const auto upper = load_32_signed(rows[k] + 2 * x, which, left);
      const auto lower = load_32_signed(rows[k + 1] + 2 * x, which, left);
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

// Picks every second or fourth sample out of two vectors: of two channels 32, of four channels 16,
// twice over.
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

// Picks one channel of 32 pixels out of three vectors: `of_two` from the first two, `of_third`
// completes them from the third.
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

LADE_AVX512 static void filter_avx512(const std::int16_t* in, const resize_axis& axis,
                                      const resize_blocks* blocks, std::uint8_t* out) {
  if (blocks == nullptr) return avx2_resize.filter(in, axis, blocks, out);
  constexpr int shift = resize_axis::precision + resize_kernels::blend_precision;
  const auto half = _mm512_set1_epi32(1 << (shift - 1));
  const auto next_pair = _mm512_set1_epi32(2 | 2 << 16);
  // In registers: stores of bytes may alias anything in memory.
  const int count = blocks->count();
  const int pairs = blocks->pairs();
  const bool narrow = blocks->narrow();
  const int* bases = blocks->bases();
  const auto* offsets = blocks->offsets(0);
  const auto* weights = blocks->weights(0);
  const int first = axis.first();
  for (int b = 0; b < count; ++b) {
    const auto* window = in + (bases[b] - first);
    const auto low = _mm512_loadu_si512(window);
    const auto high = narrow ? low : _mm512_loadu_si512(window + 32);
    auto from = _mm512_loadu_si512(offsets + b * resize_blocks::outputs);
    auto sums = half;
    for (int k = 0; k < pairs; ++k, weights += resize_blocks::outputs) {
      const auto samples =
          narrow ? _mm512_permutexvar_epi16(from, low) : _mm512_permutex2var_epi16(low, from, high);
      sums = _mm512_dpwssd_epi32(sums, samples, _mm512_loadu_si512(weights));
      from = _mm512_add_epi16(from, next_pair);
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + b * resize_blocks::outputs),
                     _mm512_cvtepi32_epi8(_mm512_srai_epi32(sums, shift)));
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
