#include "simd.hpp"

namespace lade::media {

#if defined(__x86_64__)

simd best_simd() noexcept {
  static const simd best = [] {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__builtin_cpu_supports("bmi2"))
      return simd::plain;
    const bool wide = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni") &&
                      __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
    return wide ? simd::avx512 : simd::avx2;
  }();
  return best;
}

#else

simd best_simd() noexcept { return simd::plain; }

#endif

}  // namespace lade::media
