#include "resize_kernels.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

#define LADE_AVX2 __attribute__((target("avx2,fma,f16c")))

namespace lade::media {

LADE_AVX2 static inline __m128i load_128(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

LADE_AVX2 static inline __m256i load_halves(const void* low, const void* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load_128(low)), load_128(high), 1);
}

// Two neighbouring weights in every lane.
LADE_AVX2 static inline __m256i weight_pair_256(const std::int16_t* weights) {
  std::int32_t pair;
  std::memcpy(&pair, weights, sizeof pair);
  return _mm256_set1_epi32(pair);
}

// Sixteen samples at a time; the last sixteen overlap the ones before.
LADE_AVX2 static void blend_avx2(const std::uint8_t* const* rows, const std::int16_t* weights,
                                 int taps, int count, std::int16_t* out) {
  if (count < 16) return plain_kernels.blend(rows, weights, taps, count, out);
  constexpr int shift = resize_axis::precision - resize_kernels::blend_precision;
  const auto half = _mm256_set1_epi32(1 << (shift - 1));
  for (int next = 0; next < count; next += 16) {
    const int x = std::min(next, count - 16);
    auto low = half;
    auto high = half;
    for (int k = 0; k < taps; k += 2) {
      const auto upper = _mm256_cvtepu8_epi16(load_128(rows[k] + x));
      const auto lower = _mm256_cvtepu8_epi16(load_128(rows[k + 1] + x));
      const auto pair = weight_pair_256(weights + k);
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(upper, lower), pair));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(upper, lower), pair));
    }
    const auto sums =
        _mm256_packs_epi32(_mm256_srai_epi32(low, shift), _mm256_srai_epi32(high, shift));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + x), sums);
  }
}

// Where in eight samples of a channel, picked from 24 interleaved ones, each of the eight lies.
LADE_AVX2 static inline __m256i order_of_eight(int a, int b, int c, int d, int e, int f, int g,
                                               int h) {
  const auto word = [](int i) { return static_cast<short>(2 * i | (2 * i + 1) << 8); };
  return _mm256_broadcastsi128_si256(
      _mm_setr_epi16(word(a), word(b), word(c), word(d), word(e), word(f), word(g), word(h)));
}

// Of three vectors of eight, each channel takes different lanes: two blends gather it, a shuffle
// puts it in order. Both halves do the same for eight pixels.
LADE_AVX2 static void split_avx2(const std::int16_t* in, int count, std::int16_t* const* out) {
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
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out[0] + x), _mm256_shuffle_epi8(r, order_0));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out[1] + x), _mm256_shuffle_epi8(g, order_1));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out[2] + x), _mm256_shuffle_epi8(s, order_2));
  }
}

// The tables of an axis, in registers: stores of bytes may alias anything in memory.
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

// Outputs of four weights: two partial sums each of i, i + 1 (lower half), i + 4 and i + 5.
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

// Four partial sums each of outputs i (lower half) and i + 4.
LADE_AVX2 static inline __m256i two_outputs(const axis_tables& tables, int i) {
  const auto* a = tables.in + tables.offsets[i];
  const auto* b = tables.in + tables.offsets[i + 4];
  const auto* weights_a = tables.weights + i * tables.stride;
  const auto* weights_b = weights_a + 4 * tables.stride;
  auto sum = _mm256_setzero_si256();
  for (int k = 0; k < tables.stride; k += 8) {
    const auto weights = load_halves(weights_a + k, weights_b + k);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(load_halves(a + k, b + k), weights));
  }
  return sum;
}

// The sums of outputs i to i + 7, of a multiple of eight weights each.
LADE_AVX2 static inline __m256i eight_wide_sums(const axis_tables& tables, int i) {
  const auto ab = _mm256_hadd_epi32(two_outputs(tables, i), two_outputs(tables, i + 1));
  const auto cd = _mm256_hadd_epi32(two_outputs(tables, i + 2), two_outputs(tables, i + 3));
  return _mm256_hadd_epi32(ab, cd);
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
  } else {
    for (; i + 8 <= count; i += 8) store_outputs(eight_wide_sums(tables, i), out + i);
  }
  for (; i < count; ++i) filter_one(in, axis, i, out);
}

LADE_AVX2 static inline __m256i sixteenths(const std::uint8_t* in) {
  return _mm256_slli_epi16(_mm256_cvtepu8_epi16(load_128(in)), 4);
}

LADE_AVX2 static inline void store_sixteenths(__m256i value, std::uint8_t* out) {
  const auto words = _mm256_srai_epi16(value, 4);
  const auto bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(bytes));
}

// Full-range luma in units of 1/16, with half a unit of the result for rounding.
LADE_AVX2 static inline __m256i full_luma_256(const std::uint8_t* in, const colour_conversion& by) {
  const auto offset = _mm256_set1_epi16(static_cast<short>(16 * by.offset));
  const auto y = _mm256_sub_epi16(sixteenths(in), offset);
  const auto more = _mm256_mulhrs_epi16(y, _mm256_set1_epi16(by.luma));
  return _mm256_add_epi16(_mm256_add_epi16(y, more), _mm256_set1_epi16(8));
}

LADE_AVX2 static void yuv_to_rgb_avx2(std::uint8_t* const* rows, int count,
                                      const colour_conversion& by) {
  const auto centre = _mm256_set1_epi16(128 * 16);
  const auto conversion = by;  // in registers: stores of bytes may alias anything in memory
  for (int x = 0; x < count; x += 16) {
    const auto y = full_luma_256(rows[0] + x, conversion);
    const auto u = _mm256_sub_epi16(sixteenths(rows[1] + x), centre);
    const auto v = _mm256_sub_epi16(sixteenths(rows[2] + x), centre);
    const auto red = _mm256_mulhrs_epi16(v, _mm256_set1_epi16(conversion.red));
    const auto green =
        _mm256_add_epi16(_mm256_mulhrs_epi16(u, _mm256_set1_epi16(conversion.green_u)),
                         _mm256_mulhrs_epi16(v, _mm256_set1_epi16(conversion.green_v)));
    const auto blue = _mm256_mulhrs_epi16(u, _mm256_set1_epi16(conversion.blue));
    const auto yv = _mm256_add_epi16(y, v);
    const auto y2u = _mm256_add_epi16(y, _mm256_add_epi16(u, u));
    store_sixteenths(_mm256_add_epi16(yv, red), rows[0] + x);
    store_sixteenths(_mm256_add_epi16(_mm256_sub_epi16(y, v), green), rows[1] + x);
    store_sixteenths(_mm256_add_epi16(y2u, blue), rows[2] + x);
  }
}

LADE_AVX2 static void expand_avx2(std::uint8_t* row, int count) {
  for (int x = 0; x < count; x += 16)
    store_sixteenths(full_luma_256(row + x, limited_range), row + x);
}

// For the `part`-th sixteen of 48 interleaved bytes: which of sixteen of `channel` go where. A
// negative index makes a zero.
struct byte_spread {
  alignas(16) std::array<std::int8_t, 16> from{};

  constexpr byte_spread(int part, int channel) {
    for (int i = 0; i < 16; ++i) {
      const int position = 16 * part + i;
      from[static_cast<std::size_t>(i)] =
          static_cast<std::int8_t>(position % 3 == channel ? position / 3 : -1);
    }
  }
};
static constexpr byte_spread spreads[3][3] = {
    {{0, 0}, {0, 1}, {0, 2}}, {{1, 0}, {1, 1}, {1, 2}}, {{2, 0}, {2, 1}, {2, 2}}};

LADE_AVX2 static inline __m128i spread(__m128i bytes, const byte_spread& by) {
  return _mm_shuffle_epi8(bytes, load_128(by.from.data()));
}

LADE_AVX2 static void interleave_avx2(const std::uint8_t* const* in, int count, std::uint8_t* out) {
  int x = 0;
  for (; x + 16 <= count; x += 16) {
    const auto r = load_128(in[0] + x);
    const auto g = load_128(in[1] + x);
    const auto b = load_128(in[2] + x);
    for (int part = 0; part < 3; ++part) {
      const auto& by = spreads[part];
      const auto bytes =
          _mm_or_si128(_mm_or_si128(spread(r, by[0]), spread(g, by[1])), spread(b, by[2]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 3 * x + 16 * part), bytes);
    }
  }
  const std::array<const std::uint8_t*, 3> rest{in[0] + x, in[1] + x, in[2] + x};
  plain_kernels.interleave(rest.data(), count - x, out + 3 * x);
}

LADE_AVX2 static inline void store_128(__m128i value, std::uint8_t* out) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), value);
}

LADE_AVX2 static void interleave_4_avx2(const std::uint8_t* const* in, int count,
                                        std::uint8_t* out) {
  int x = 0;
  for (; x + 16 <= count; x += 16) {
    const auto r = load_128(in[0] + x);
    const auto g = load_128(in[1] + x);
    const auto b = load_128(in[2] + x);
    const auto a = load_128(in[3] + x);
    const auto rg_low = _mm_unpacklo_epi8(r, g);
    const auto rg_high = _mm_unpackhi_epi8(r, g);
    const auto ba_low = _mm_unpacklo_epi8(b, a);
    const auto ba_high = _mm_unpackhi_epi8(b, a);
    store_128(_mm_unpacklo_epi16(rg_low, ba_low), out + 4 * x);
    store_128(_mm_unpackhi_epi16(rg_low, ba_low), out + 4 * x + 16);
    store_128(_mm_unpacklo_epi16(rg_high, ba_high), out + 4 * x + 32);
    store_128(_mm_unpackhi_epi16(rg_high, ba_high), out + 4 * x + 48);
  }
  const std::array<const std::uint8_t*, 4> rest{in[0] + x, in[1] + x, in[2] + x, in[3] + x};
  plain_kernels.interleave_4(rest.data(), count - x, out + 4 * x);
}

// Eight normalised values; `phase` is the first one's place in the period.
LADE_AVX2 static inline __m256 normalised_8(const std::uint8_t* in, const normalisation& by,
                                            int phase) {
  const auto bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in));
  const auto values = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
  return _mm256_fmadd_ps(values, _mm256_loadu_ps(by.scale.data() + phase),
                         _mm256_loadu_ps(by.bias.data() + phase));
}

// Eight normalised values as elements of a type.
struct eight_f32 {
  using element = float;
  LADE_AVX2 static void store(__m256 values, float* out) { _mm256_storeu_ps(out, values); }
};

struct eight_f16 {
  using element = std::uint16_t;
  LADE_AVX2 static void store(__m256 values, std::uint16_t* out) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                     _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
  }
};

struct eight_bf16 {
  using element = std::uint16_t;
  LADE_AVX2 static void store(__m256 values, std::uint16_t* out) {
    const auto bits = _mm256_castps_si256(values);
    const auto odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const auto bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const auto upper = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
    const auto words = _mm256_permute4x64_epi64(_mm256_packus_epi32(upper, upper), 0xd8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(words));
  }
};

template <class Eight>
LADE_AVX2 static void normalise_avx2(const std::uint8_t* in, int count, const normalisation& by,
                                     typename Eight::element* out) {
  constexpr int period = normalisation::period;
  int x = 0;
  for (; x + period <= count; x += period)
    for (int phase = 0; phase < period; phase += 8)
      Eight::store(normalised_8(in + x + phase, by, phase), out + x + phase);
  int phase = 0;
  for (; x + 8 <= count; x += 8, phase += 8) Eight::store(normalised_8(in + x, by, phase), out + x);
  if (x == count) return;
  std::array<std::uint8_t, 8> last{};
  std::array<typename Eight::element, 8> elements;
  std::copy(in + x, in + count, last.begin());
  Eight::store(normalised_8(last.data(), by, phase), elements.data());
  std::copy_n(elements.begin(), count - x, out + x);
}

const resize_kernels avx2_kernels{
    .blend = blend_avx2,
    .split = split_avx2,
    .filter = filter_avx2,
    .yuv_to_rgb = yuv_to_rgb_avx2,
    .expand = expand_avx2,
    .interleave = interleave_avx2,
    .interleave_4 = interleave_4_avx2,
    .to_f32 = normalise_avx2<eight_f32>,
    .to_f16 = normalise_avx2<eight_f16>,
    .to_bf16 = normalise_avx2<eight_bf16>,
};

}  // namespace lade::media

#undef LADE_AVX2

#endif
