#include "pixel_kernels.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>

// GCC 12 warns about uninitialised operands in its own intrinsics.
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define LADE_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")))

namespace lade::media {

LADE_AVX512 static inline __m512i sixteenths_512(const std::uint8_t* in) {
  const auto bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
  return _mm512_slli_epi16(_mm512_cvtepu8_epi16(bytes), 4);
}

LADE_AVX512 static inline void store_sixteenths_512(__m512i value, std::uint8_t* out) {
  const auto words = _mm512_max_epi16(_mm512_srai_epi16(value, 4), _mm512_setzero_si512());
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtusepi16_epi8(words));
}

// See full_luma in pixel_kernels.cpp.
LADE_AVX512 static inline __m512i full_luma_512(const std::uint8_t* in,
                                                const colour_conversion& by) {
  const auto offset = _mm512_set1_epi16(static_cast<short>(16 * by.offset));
  const auto y = _mm512_sub_epi16(sixteenths_512(in), offset);
  const auto more = _mm512_mulhrs_epi16(y, _mm512_set1_epi16(by.luma));
  return _mm512_add_epi16(_mm512_add_epi16(y, more), _mm512_set1_epi16(8));
}

LADE_AVX512 static void yuv_to_rgb_avx512(std::uint8_t* const* rows, int count,
                                          const colour_conversion& by) {
  const auto centre = _mm512_set1_epi16(128 * 16);
  const auto conversion = by;  // in registers: stores of bytes may alias anything in memory
  for (int x = 0; x < count; x += 32) {
    const auto y = full_luma_512(rows[0] + x, conversion);
    const auto u = _mm512_sub_epi16(sixteenths_512(rows[1] + x), centre);
    const auto v = _mm512_sub_epi16(sixteenths_512(rows[2] + x), centre);
    const auto red = _mm512_mulhrs_epi16(v, _mm512_set1_epi16(conversion.red));
    const auto green =
        _mm512_add_epi16(_mm512_mulhrs_epi16(u, _mm512_set1_epi16(conversion.green_u)),
                         _mm512_mulhrs_epi16(v, _mm512_set1_epi16(conversion.green_v)));
    const auto blue = _mm512_mulhrs_epi16(u, _mm512_set1_epi16(conversion.blue));
    const auto yv = _mm512_add_epi16(y, v);
    const auto y2u = _mm512_add_epi16(y, _mm512_add_epi16(u, u));
    store_sixteenths_512(_mm512_add_epi16(yv, red), rows[0] + x);
    store_sixteenths_512(_mm512_add_epi16(_mm512_sub_epi16(y, v), green), rows[1] + x);
    store_sixteenths_512(_mm512_add_epi16(y2u, blue), rows[2] + x);
  }
}

LADE_AVX512 static void expand_avx512(std::uint8_t* row, int count) {
  for (int x = 0; x < count; x += 32)
    store_sixteenths_512(full_luma_512(row + x, limited_range), row + x);
}

// Indices for the `part`-th 64 of 192 interleaved bytes: into the 128 bytes of the first two
// channels, and into the third channel where `thirds` has a bit.
struct interleave_picks {
  alignas(64) std::array<std::uint8_t, 64> of_two{};
  alignas(64) std::array<std::uint8_t, 64> of_third{};
  std::uint64_t thirds = 0;

  explicit constexpr interleave_picks(int part) {
    for (int i = 0; i < 64; ++i) {
      const int position = 64 * part + i;
      const auto byte = static_cast<std::uint8_t>(position / 3);
      const auto at = static_cast<std::size_t>(i);
      of_two[at] = static_cast<std::uint8_t>(byte + (position % 3 == 1 ? 64 : 0));
      of_third[at] = byte;
      if (position % 3 == 2) thirds |= std::uint64_t{1} << i;
    }
  }
};
static constexpr std::array<interleave_picks, 3> interleave_tables{
    interleave_picks(0), interleave_picks(1), interleave_picks(2)};

LADE_AVX512 static void interleave_avx512(const std::uint8_t* const* in, int count,
                                          std::uint8_t* out) {
  for (int x = 0; x < count; x += 64) {
    const auto mask = static_cast<__mmask64>(first_lanes(count - x));
    const auto r = _mm512_maskz_loadu_epi8(mask, in[0] + x);
    const auto g = _mm512_maskz_loadu_epi8(mask, in[1] + x);
    const auto b = _mm512_maskz_loadu_epi8(mask, in[2] + x);
    for (int part = 0; part < 3; ++part) {
      const auto& pick = interleave_tables[static_cast<std::size_t>(part)];
      const auto two = _mm512_permutex2var_epi8(r, _mm512_load_si512(pick.of_two.data()), g);
      const auto bytes = _mm512_mask_permutexvar_epi8(two, pick.thirds,
                                                      _mm512_load_si512(pick.of_third.data()), b);
      const int left = std::max(3 * (count - x) - 64 * part, 0);
      _mm512_mask_storeu_epi8(out + 3 * x + 64 * part, first_lanes(left), bytes);
    }
  }
}

static void transpose_16_avx512(const std::uint8_t* in, std::size_t stride, std::uint8_t* out,
                                std::size_t to_stride) {
  avx2_pixels.transpose_16(in, stride, out, to_stride);
}

// Sixteen bytes in lanes of 32 bits, shifted left by `shift`.
LADE_AVX512 static inline __m512i bytes_in_lanes(const std::uint8_t* in, __mmask16 mask,
                                                 unsigned shift) {
  const auto lanes = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, in));
  return _mm512_slli_epi32(lanes, shift);
}

LADE_AVX512 static void interleave_4_avx512(const std::uint8_t* const* in, int count,
                                            std::uint8_t* out) {
  for (int x = 0; x < count; x += 16) {
    const auto mask = static_cast<__mmask16>(first_lanes(count - x));
    const auto rg =
        _mm512_or_si512(bytes_in_lanes(in[0] + x, mask, 0), bytes_in_lanes(in[1] + x, mask, 8));
    const auto ba =
        _mm512_or_si512(bytes_in_lanes(in[2] + x, mask, 16), bytes_in_lanes(in[3] + x, mask, 24));
    _mm512_mask_storeu_epi32(out + 4 * x, mask, _mm512_or_si512(rg, ba));
  }
}

// Sixteen normalised values. `phase`: 0 to 2, the third of the period.
LADE_AVX512 static inline __m512 normalised_16(const std::uint8_t* in, __mmask16 mask,
                                               const normalisation& by, int phase) {
  const auto bytes = _mm_maskz_loadu_epi8(mask, in);
  const auto values = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
  return _mm512_fmadd_ps(values, _mm512_loadu_ps(by.scale.data() + 16 * phase),
                         _mm512_loadu_ps(by.bias.data() + 16 * phase));
}

LADE_AVX512 static inline int next_phase(int phase) { return phase == 2 ? 0 : phase + 1; }

LADE_AVX512 static void to_f32_avx512(const std::uint8_t* in, int count, const normalisation& by,
                                      float* out) {
  for (int x = 0, phase = 0; x < count; x += 16, phase = next_phase(phase)) {
    const auto mask = static_cast<__mmask16>(first_lanes(count - x));
    _mm512_mask_storeu_ps(out + x, mask, normalised_16(in + x, mask, by, phase));
  }
}

LADE_AVX512 static void to_f16_avx512(const std::uint8_t* in, int count, const normalisation& by,
                                      std::uint16_t* out) {
  for (int x = 0, phase = 0; x < count; x += 16, phase = next_phase(phase)) {
    const auto mask = static_cast<__mmask16>(first_lanes(count - x));
    const auto halves = _mm512_cvtps_ph(normalised_16(in + x, mask, by, phase),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_mask_storeu_epi16(out + x, mask, halves);
  }
}

LADE_AVX512 static void to_bf16_avx512(const std::uint8_t* in, int count, const normalisation& by,
                                       std::uint16_t* out) {
  for (int x = 0, phase = 0; x < count; x += 16, phase = next_phase(phase)) {
    const auto mask = static_cast<__mmask16>(first_lanes(count - x));
    const auto bits = _mm512_castps_si512(normalised_16(in + x, mask, by, phase));
    const auto odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const auto bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const auto upper = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);
    _mm256_mask_storeu_epi16(out + x, mask, _mm512_cvtepi32_epi16(upper));
  }
}

const pixel_kernels avx512_pixels{
    .yuv_to_rgb = yuv_to_rgb_avx512,
    .expand = expand_avx512,
    .interleave = interleave_avx512,
    .interleave_4 = interleave_4_avx512,
    .transpose_16 = transpose_16_avx512,
    .to_f32 = to_f32_avx512,
    .to_f16 = to_f16_avx512,
    .to_bf16 = to_bf16_avx512,
};

}  // namespace lade::media

#undef LADE_AVX512
#pragma GCC diagnostic pop

#endif
