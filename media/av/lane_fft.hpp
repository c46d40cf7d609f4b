// A real FFT of several signals at once, one per vector lane.

#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace lade::media {

// Transforms `lanes` real signals of the same even length at once. Every operation is a loop over
// the lanes, of constant length, which compilers vectorise. Immutable, so thread-safe.
class lane_fft {
 public:
  static constexpr std::size_t lanes = 16;
  using lane = std::array<float, lanes>;

  // One complex number per signal.
  struct value {
    lane re;
    lane im;
  };

  // `length`: even, at least 2. Fast if it is a product of small primes.
  explicit lane_fft(std::size_t length);

  std::size_t bins() const noexcept { return half_ + 1; }

  // Transforms `signals` into bins() values of `spectrum`. Value i of `signals` has samples 2i (re)
  // and 2i + 1 (im). Both vectors have bins() values; `signals` is overwritten.
  void transform(std::vector<value>& signals, std::vector<value>& spectrum) const;

 private:
  // exp(-2 pi i k / n)
  struct root {
    float re;
    float im;
  };
  static std::vector<root> roots_of(std::size_t n);

  // One pass of Stockham's algorithm, which keeps values in order: transforms of size n over values
  // `stride` apart become transforms of size n / radix.
  struct pass {
    std::size_t radix;
    std::size_t n;
    std::size_t stride;
    std::vector<root> small;  // roots of `radix`
    std::vector<root> large;  // roots of `n`
  };
  static void run(const pass& by, const value* from, value* to);

  std::size_t half_;
  std::vector<pass> passes_;
  std::vector<root> roots_;  // roots of the length
};

}  // namespace lade::media
