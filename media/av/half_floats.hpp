// Conversions of 32-bit floats to 16-bit floats, rounded to nearest, ties to even.

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace lade::media {

// NaN stays NaN.
inline std::uint16_t bf16_of(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// IEEE 754 binary16. Values from 65,520 on are infinite, NaN stays NaN.
inline std::uint16_t f16_of(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return static_cast<std::uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {  // below 2^-14: multiples of 2^-24
    const auto steps = static_cast<std::uint32_t>(std::nearbyint(std::abs(value) * 0x1p24F));
    return static_cast<std::uint16_t>(sign | steps);
  }
  const auto rebased = magnitude - ((127U - 15U) << 23);
  return static_cast<std::uint16_t>(sign | (rebased + 0xfff + (rebased >> 13 & 1)) >> 13);
}

}  // namespace lade::media
