// The steps after the resize: YUV to RGB, and bytes to normalised floats in planes.

#pragma once

#include <array>

#include "bare_resize.hpp"

namespace bench {

struct normalisation {
  std::array<float, 3> scale;
  std::array<float, 3> shift;
};

// torchvision's ImageNet mean and standard deviation, over bytes.
inline normalisation imagenet() {
  constexpr std::array<float, 3> mean{0.485F, 0.456F, 0.406F}, deviation{0.229F, 0.224F, 0.225F};
  normalisation result{};
  for (std::size_t c = 0; c < 3; ++c) {
    result.scale[c] = 1 / (255 * deviation[c]);
    result.shift[c] = -mean[c] / deviation[c];
  }
  return result;
}

// One row of interleaved RGB to one row in each of three planes, which lie `plane` floats apart.
// The row may be read beyond its end. The planes' rows begin at multiples of 64 bytes and are
// written past the caches, since a batch is larger than they are: call `flush_floats` when all is
// written.
inline void normalise(const std::uint8_t* rgb, int pixels, const normalisation& by, float* out,
                      std::size_t plane) {
  int x = 0;
#if defined(__AVX512VBMI__)
  __m512i first[3];
  __m512 scale[3], shift[3];
  for (std::size_t c = 0; c < 3; ++c) {
    first[c] = _mm512_add_epi32(
        _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                           _mm512_set1_epi32(3)),
        _mm512_set1_epi32(static_cast<int>(c)));
    scale[c] = _mm512_set1_ps(by.scale[c]);
    shift[c] = _mm512_set1_ps(by.shift[c]);
  }
  for (; x + 16 <= pixels; x += 16) {
    __m512i bytes = _mm512_loadu_si512(rgb + 3 * x);
    for (std::size_t c = 0; c < 3; ++c) {
      __m512i wide = _mm512_maskz_permutexvar_epi8(0x1111111111111111, first[c], bytes);
      _mm512_stream_ps(out + c * plane + x,
                       _mm512_fmadd_ps(_mm512_cvtepi32_ps(wide), scale[c], shift[c]));
    }
  }
#elif defined(__AVX2__)
  for (std::size_t c = 0; c < 3; ++c) {
    const __m256 scale = _mm256_set1_ps(by.scale[c]), shift = _mm256_set1_ps(by.shift[c]);
    auto at = [c](int i) { return static_cast<char>(3 * i + static_cast<int>(c)); };
    const __m128i four =
        _mm_setr_epi8(at(0), -1, -1, -1, at(1), -1, -1, -1, at(2), -1, -1, -1, at(3), -1, -1, -1);
    const __m256i pick = _mm256_broadcastsi128_si256(four);
    for (int i = 0; i + 8 <= pixels; i += 8) {
      auto load = [&](int offset) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rgb + 3 * i + offset));
      };
      __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(load(0)), load(12), 1);
      __m256i wide = _mm256_shuffle_epi8(bytes, pick);
      _mm256_stream_ps(out + c * plane + i,
                       _mm256_fmadd_ps(_mm256_cvtepi32_ps(wide), scale, shift));
    }
  }
  x = pixels / 8 * 8;
#endif
  for (; x < pixels; ++x)
    for (std::size_t c = 0; c < 3; ++c)
      out[c * plane + static_cast<std::size_t>(x)] = std::fma(
          static_cast<float>(rgb[3 * static_cast<std::size_t>(x) + c]), by.scale[c], by.shift[c]);
}

// One row of one plane in the same way.
inline void normalise_plane(const std::uint8_t* in, int pixels, float scale, float shift,
                            float* out) {
  int x = 0;
#if defined(__AVX512VBMI__)
  for (; x + 16 <= pixels; x += 16) {
    __m512i wide = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + x)));
    _mm512_stream_ps(out + x, _mm512_fmadd_ps(_mm512_cvtepi32_ps(wide), _mm512_set1_ps(scale),
                                              _mm512_set1_ps(shift)));
  }
#elif defined(__AVX2__)
  for (; x + 8 <= pixels; x += 8) {
    __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(in + x)));
    _mm256_stream_ps(out + x, _mm256_fmadd_ps(_mm256_cvtepi32_ps(wide), _mm256_set1_ps(scale),
                                              _mm256_set1_ps(shift)));
  }
#endif
  for (; x < pixels; ++x) out[x] = std::fma(static_cast<float>(in[x]), scale, shift);
}

inline void flush_floats() {
#if defined(__AVX2__)
  _mm_sfence();
#endif
}

#if defined(__AVX512VBMI__)
namespace detail {

// The first `pixels` of 32 pixels, interleaved.
inline void store_rgb(__m256i red, __m256i green, __m256i blue, int pixels, std::uint8_t* rgb) {
  auto byte_index = [](int vector) {
    alignas(64) std::uint8_t index[64];
    for (int i = 0; i < 64; ++i) {
      int flat = vector * 64 + i;
      index[i] = static_cast<std::uint8_t>(flat / 3 % 32 + flat % 3 * 32);
    }
    return _mm512_load_si512(index);
  };
  // Bytes 0-31 are red, 32-63 green, 64-95 blue.
  static const __m512i order0 = byte_index(0), order1 = byte_index(1);
  __m512i red_green = _mm512_inserti64x4(_mm512_castsi256_si512(red), green, 1);
  __m512i only_blue = _mm512_castsi256_si512(blue);
  auto mask = [](int n) { return n >= 64 ? ~0ULL : (1ULL << n) - 1; };
  _mm512_mask_storeu_epi8(rgb, mask(3 * pixels),
                          _mm512_permutex2var_epi8(red_green, order0, only_blue));
  if (3 * pixels > 64)
    _mm512_mask_storeu_epi8(rgb + 64, mask(3 * pixels - 64),
                            _mm512_permutex2var_epi8(red_green, order1, only_blue));
}

}  // namespace detail
#endif

// Rows of red, green and blue, which may be read beyond their end, to interleaved ones.
inline void interleave(const std::uint8_t* red, const std::uint8_t* green, const std::uint8_t* blue,
                       std::uint8_t* rgb, int pixels) {
  int x = 0;
#if defined(__AVX512VBMI__)
  auto load = [](const std::uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  };
  for (; x < pixels; x += 32)
    detail::store_rgb(load(red + x), load(green + x), load(blue + x), std::min(32, pixels - x),
                      rgb + 3 * x);
#elif defined(__AVX2__)
  // Which byte of colour c is at place i of the 48 bytes of 16 pixels; a negative one gives 0.
  auto order = [](int vector, int c) {
    alignas(16) std::int8_t index[16];
    for (int i = 0; i < 16; ++i) {
      int flat = vector * 16 + i;
      index[i] = static_cast<std::int8_t>(flat % 3 == c ? flat / 3 : -1);
    }
    return _mm_load_si128(reinterpret_cast<const __m128i*>(index));
  };
  static const __m128i orders[3][3] = {{order(0, 0), order(0, 1), order(0, 2)},
                                       {order(1, 0), order(1, 1), order(1, 2)},
                                       {order(2, 0), order(2, 1), order(2, 2)}};
  auto load = [](const std::uint8_t* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  };
  for (; x + 16 <= pixels; x += 16) {
    __m128i r = load(red + x), g = load(green + x), b = load(blue + x);
    for (int vector = 0; vector < 3; ++vector) {
      const __m128i* at = orders[vector];
      __m128i both = _mm_or_si128(_mm_shuffle_epi8(r, at[0]), _mm_shuffle_epi8(g, at[1]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(rgb + 3 * x + 16 * vector),
                       _mm_or_si128(both, _mm_shuffle_epi8(b, at[2])));
    }
  }
  x = pixels / 16 * 16;
#endif
  for (; x < pixels; ++x) {
    rgb[3 * x] = red[x];
    rgb[3 * x + 1] = green[x];
    rgb[3 * x + 2] = blue[x];
  }
}

// Full-range BT.601 rows of 4 fractional bits to interleaved RGB. The coefficients are split into
// whole numbers and a remainder below one half, which 16-bit rounding multiplications can hold.
inline void yuv_to_rgb(const std::int16_t* y, const std::int16_t* u, const std::int16_t* v,
                       std::uint8_t* rgb, int pixels) {
  constexpr int rv = 13173;   // 1.402 = 1 + 0.402
  constexpr int gu = -11277;  // -0.344136
  constexpr int gv = 9367;    // -0.714136 = 0.285864 - 1
  constexpr int bu = -7471;   // 1.772 = 2 - 0.228
  constexpr int zero = 128 << 4;
  int x = 0;
#if defined(__AVX512VBMI__)
  auto load = [](const std::int16_t* from) { return _mm512_loadu_si512(from); };
  auto times = [](__m512i value, int by) {
    return _mm512_mulhrs_epi16(value, _mm512_set1_epi16(static_cast<short>(by)));
  };
  auto bytes = [](__m512i value) {
    return _mm512_cvtusepi16_epi8(
        _mm512_max_epi16(_mm512_srai_epi16(value, 4), _mm512_setzero_si512()));
  };
  for (; x < pixels; x += 32) {
    __m512i luma = _mm512_add_epi16(load(y + x), _mm512_set1_epi16(8));
    __m512i blue_part = _mm512_sub_epi16(load(u + x), _mm512_set1_epi16(zero));
    __m512i red_part = _mm512_sub_epi16(load(v + x), _mm512_set1_epi16(zero));
    __m512i red = _mm512_add_epi16(luma, _mm512_add_epi16(red_part, times(red_part, rv)));
    __m512i green = _mm512_add_epi16(
        luma,
        _mm512_sub_epi16(_mm512_add_epi16(times(blue_part, gu), times(red_part, gv)), red_part));
    __m512i blue = _mm512_add_epi16(
        luma, _mm512_add_epi16(_mm512_add_epi16(blue_part, blue_part), times(blue_part, bu)));
    detail::store_rgb(bytes(red), bytes(green), bytes(blue), std::min(32, pixels - x), rgb + 3 * x);
  }
#endif
  auto times_plain = [](int value, int by) { return (value * by + 0x4000) >> 15; };
  auto byte = [](int value) { return static_cast<std::uint8_t>(std::clamp(value >> 4, 0, 255)); };
  for (; x < pixels; ++x) {
    int luma = y[x] + 8, blue_part = u[x] - zero, red_part = v[x] - zero;
    rgb[3 * x] = byte(luma + red_part + times_plain(red_part, rv));
    rgb[3 * x + 1] = byte(luma + times_plain(blue_part, gu) + times_plain(red_part, gv) - red_part);
    rgb[3 * x + 2] = byte(luma + 2 * blue_part + times_plain(blue_part, bu));
  }
}

}  // namespace bench
