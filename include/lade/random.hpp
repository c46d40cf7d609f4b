// Random numbers that depend on a key, not on the thread that draws them or the time.

#pragma once

#include <cassert>
#include <cstdint>
#include <limits>

namespace lade {

// One step of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
// OOPSLA 2014): a bijection of 64-bit numbers with pseudorandom values.
constexpr std::uint64_t scramble(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// A generator of random bits, usable with the standard distributions. A stage passes one to each
// call of its function that takes one, keyed by (seed, epoch, position of the sample, stage, part).
// So every run draws the same numbers, with any number of threads.
//
// The members below return the same values on every platform; the standard distributions do not.
class random {
  __extension__ using uint128 = unsigned __int128;

 public:
  using result_type = std::uint64_t;

  constexpr random() = default;

  // random(seed, epoch, position): an independent stream of numbers for each combination of keys.
  template <class... Keys>
  constexpr explicit random(std::uint64_t seed, Keys... keys) noexcept : state_(scramble(seed)) {
    ((state_ = scramble(state_ ^ static_cast<std::uint64_t>(keys))), ...);
  }

  static constexpr result_type min() noexcept { return 0; }
  static constexpr result_type max() noexcept { return std::numeric_limits<result_type>::max(); }
  constexpr result_type operator()() noexcept {
    auto bits = scramble(state_);
    state_ += 0x9e3779b97f4a7c15;
    return bits;
  }

  // Skips `count` numbers in constant time.
  constexpr void discard(std::uint64_t count) noexcept { state_ += count * 0x9e3779b97f4a7c15; }

  // Uniform in [0, 1), a multiple of 2^-53.
  constexpr double uniform() noexcept { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

  // Uniform in [low, high).
  constexpr double uniform(double low, double high) noexcept {
    return low + (high - low) * uniform();
  }

  // Uniform in [0, bound), without bias (Lemire: Fast Random Integer Generation in an Interval,
  // 2019). `bound` is at least 1.
  constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    assert(bound > 0);
    auto product = static_cast<uint128>((*this)()) * bound;
    if (static_cast<std::uint64_t>(product) < bound) {
      auto threshold = (0 - bound) % bound;
      while (static_cast<std::uint64_t>(product) < threshold)
        product = static_cast<uint128>((*this)()) * bound;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace lade
