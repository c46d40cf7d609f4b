#include "pixel_kernels.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>

#define LADE_AVX2 __attribute__((target("avx2,fma,f16c")))

namespace lade::media {

LADE_AVX2 static inline __m128i load_sixteen(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

LADE_AVX2 static inline __m256i sixteenths(const std::uint8_t* in) {
  return _mm256_slli_epi16(_mm256_cvtepu8_epi16(load_sixteen(in)), 4);
}

LADE_AVX2 static inline void store_sixteenths(__m256i value, std::uint8_t* out) {
  const auto words = _mm256_srai_epi16(value, 4);
  const auto bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(bytes));
}

// See full_luma in pixel_kernels.cpp.
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

// A shuffle of sixteen bytes of `channel` into the `part`-th sixteen of 48 interleaved bytes. A
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
  return _mm_shuffle_epi8(bytes, load_sixteen(by.from.data()));
}

LADE_AVX2 static void interleave_avx2(const std::uint8_t* const* in, int count, std::uint8_t* out) {
  int x = 0;
  for (; x + 16 <= count; x += 16) {
    const auto r = load_sixteen(in[0] + x);
    const auto g = load_sixteen(in[1] + x);
    const auto b = load_sixteen(in[2] + x);
    for (int part = 0; part < 3; ++part) {
      const auto& by = spreads[part];
      const auto bytes =
          _mm_or_si128(_mm_or_si128(spread(r, by[0]), spread(g, by[1])), spread(b, by[2]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 3 * x + 16 * part), bytes);
    }
  }
  const std::array<const std::uint8_t*, 3> rest{in[0] + x, in[1] + x, in[2] + x};
  plain_pixels.interleave(rest.data(), count - x, out + 3 * x);
}

LADE_AVX2 static inline void store_sixteen(__m128i value, std::uint8_t* out) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), value);
}

LADE_AVX2 static void interleave_4_avx2(const std::uint8_t* const* in, int count,
                                        std::uint8_t* out) {
  int x = 0;
  for (; x + 16 <= count; x += 16) {
    const auto r = load_sixteen(in[0] + x);
    const auto g = load_sixteen(in[1] + x);
    const auto b = load_sixteen(in[2] + x);
    const auto a = load_sixteen(in[3] + x);
    const auto rg_low = _mm_unpacklo_epi8(r, g);
    const auto rg_high = _mm_unpackhi_epi8(r, g);
    const auto ba_low = _mm_unpacklo_epi8(b, a);
    const auto ba_high = _mm_unpackhi_epi8(b, a);
    store_sixteen(_mm_unpacklo_epi16(rg_low, ba_low), out + 4 * x);
    store_sixteen(_mm_unpackhi_epi16(rg_low, ba_low), out + 4 * x + 16);
    store_sixteen(_mm_unpacklo_epi16(rg_high, ba_high), out + 4 * x + 32);
    store_sixteen(_mm_unpackhi_epi16(rg_high, ba_high), out + 4 * x + 48);
  }
  const std::array<const std::uint8_t*, 4> rest{in[0] + x, in[1] + x, in[2] + x, in[3] + x};
  plain_pixels.interleave_4(rest.data(), count - x, out + 4 * x);
}

// Interleaving each row with the row eight further down rotates the index of a byte, four bits of
// row and four of column, by one bit. Four rotations exchange row and column.
LADE_AVX2 static void transpose_16_avx2(const std::uint8_t* in, std::size_t stride,
                                        std::uint8_t* out, std::size_t to_stride) {
  __m128i rows[16];
  for (std::size_t y = 0; y < 16; ++y) rows[y] = load_sixteen(in + y * stride);
  for (int times = 0; times < 4; ++times) {
    __m128i next[16];
    for (std::size_t y = 0; y < 8; ++y) {
      next[2 * y] = _mm_unpacklo_epi8(rows[y], rows[y + 8]);
      next[2 * y + 1] = _mm_unpackhi_epi8(rows[y], rows[y + 8]);
    }
    std::copy_n(next, 16, rows);
  }
  for (std::size_t x = 0; x < 16; ++x) store_sixteen(rows[x], out + x * to_stride);
}

// Eight normalised values. `phase`: the position of the first one in the period.
LADE_AVX2 static inline __m256 normalised_8(const std::uint8_t* in, const normalisation& by,
                                            int phase) {
  const auto bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in));
  const auto values = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
  return _mm256_fmadd_ps(values, _mm256_loadu_ps(by.scale.data() + phase),
                         _mm256_loadu_ps(by.bias.data() + phase));
}

// Eight normalised values as elements of each type.
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

const pixel_kernels avx2_pixels{
    .yuv_to_rgb = yuv_to_rgb_avx2,
    .expand = expand_avx2,
    .interleave = interleave_avx2,
    .interleave_4 = interleave_4_avx2,
    .transpose_16 = transpose_16_avx2,
    .to_f32 = normalise_avx2<eight_f32>,
    .to_f16 = normalise_avx2<eight_f16>,
    .to_bf16 = normalise_avx2<eight_bf16>,
};

}  // namespace lade::media

#undef LADE_AVX2

#endif
