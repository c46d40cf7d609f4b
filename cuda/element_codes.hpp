// Conversions between floats and the element types of tensors: f32, IEEE 754 binary16 (f16), bf16
// and u8. Kernels have their own codes for them, since their headers include no tensor.

#pragma once

#include "grid_code.hpp"

#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include "grid_mark.hpp"

namespace lade::cuda {

enum class element_code : std::uint8_t { u8, f16, bf16, f32 };

LADE_GRID_CODE std::uint32_t float_bits(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

LADE_GRID_CODE float float_of_bits(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Rounds to nearest even. Larger values become infinity; NaN stays NaN.
LADE_GRID_CODE std::uint16_t f16_of(float value) {
#if defined(__CUDA_ARCH__)
  return __half_as_ushort(__float2half_rn(value));
#else
  const auto sign = static_cast<std::uint16_t>((float_bits(value) >> 16) & 0x8000);
  const auto magnitude = float_bits(value) & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7fff;
  const float size = float_of_bits(magnitude);
  if (size >= 65520) return sign | 0x7c00;
  // The spacing is 2^-24 below 2^-14, and above that 2^-10 of the power of two.
  const int exponent = size < 0x1p-14F ? -14 : static_cast<int>(magnitude >> 23) - 127;
  const auto steps = static_cast<unsigned>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return static_cast<std::uint16_t>(sign | (steps + (static_cast<unsigned>(exponent + 14) << 10)));
#endif
}

LADE_GRID_CODE std::uint16_t bf16_of(float value) {
#if defined(__CUDA_ARCH__)
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
#else
  const auto bits = float_bits(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
#endif
}

LADE_GRID_CODE float float_of_f16(std::uint16_t half) {
#if defined(__CUDA_ARCH__)
  return __half2float(__ushort_as_half(half));
#else
  const unsigned exponent = (half >> 10) & 31;
  const unsigned fraction = half & 0x3ff;
  const auto sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  if (exponent == 31) return float_of_bits(sign | 0x7f800000 | (fraction << 13));
  if (exponent > 0) return float_of_bits(sign | ((exponent + 112) << 23) | (fraction << 13));
  return float_of_bits(sign | float_bits(static_cast<float>(fraction) * 0x1p-24F));
#endif
}

LADE_GRID_CODE float float_of_bf16(std::uint16_t upper) {
  return float_of_bits(std::uint32_t{upper} << 16);
}

// Rounds to nearest even, clamped to 0..255. NaN becomes 0.
LADE_GRID_CODE unsigned char byte_of(float value) {
  if (!(value > 0)) return 0;
  return value >= 255 ? 255 : static_cast<unsigned char>(rintf(value));
}

// The type of an element, and its conversions from and to float.
template <element_code Code>
struct element;

template <>
struct element<element_code::u8> {
  using type = unsigned char;
  LADE_GRID_CODE static type of(float value) { return byte_of(value); }
  LADE_GRID_CODE static float value(type code) { return code; }
};

template <>
struct element<element_code::f16> {
  using type = std::uint16_t;
  LADE_GRID_CODE static type of(float value) { return f16_of(value); }
  LADE_GRID_CODE static float value(type code) { return float_of_f16(code); }
};

template <>
struct element<element_code::bf16> {
  using type = std::uint16_t;
  LADE_GRID_CODE static type of(float value) { return bf16_of(value); }
  LADE_GRID_CODE static float value(type code) { return float_of_bf16(code); }
};

template <>
struct element<element_code::f32> {
  using type = float;
  LADE_GRID_CODE static type of(float value) { return value; }
  LADE_GRID_CODE static float value(type code) { return code; }
};

template <element_code Code>
using element_of = typename element<Code>::type;

// value * scale + bias for each channel, with one rounding.
struct channel_scaling {
  float scale[3] = {1, 1, 1};
  float bias[3] = {0, 0, 0};
};

// Converts an 8-bit channel to an element. u8 is unchanged, other types are scaled.
template <element_code Code>
LADE_GRID_CODE element_of<Code> scaled(unsigned byte, const channel_scaling& by, int channel) {
  if constexpr (Code == element_code::u8)
    return static_cast<unsigned char>(byte);
  else
    return element<Code>::of(fmaf(static_cast<float>(byte), by.scale[channel], by.bias[channel]));
}

}  // namespace lade::cuda

#undef LADE_GRID_CODE
