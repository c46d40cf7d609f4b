// The instruction sets of kernels.

#pragma once

#include <cstdint>

namespace lade::media {

enum class simd : std::uint8_t { plain, avx2, avx512 };

// The widest one that this CPU supports.
simd best_simd() noexcept;

// A mask of the first `count` lanes, up to 64.
inline std::uint64_t first_lanes(int count) noexcept {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// a * b / 2^15, rounded as the vector instruction (pmulhrsw) does.
inline int multiply_q15(int a, int b) noexcept { return (a * b + (1 << 14)) >> 15; }

}  // namespace lade::media
