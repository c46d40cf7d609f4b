#include "lane_fft.hpp"

#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>

namespace lade::media {

std::vector<lane_fft::root> lane_fft::roots_of(std::size_t n) {
  std::vector<root> roots(n);
  for (std::size_t k = 0; k < n; ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    roots[k] = {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
  }
  return roots;
}

static std::size_t next_radix(std::size_t n) noexcept {
  if (n % 4 == 0) return 4;
  for (std::size_t p = 2; p * p <= n; ++p)
    if (n % p == 0) return p;
  return n;
}

lane_fft::lane_fft(std::size_t length) : half_(length / 2), roots_(roots_of(length)) {
  std::size_t stride = 1;
  for (std::size_t n = half_; n > 1;) {
    const auto radix = next_radix(n);
    passes_.push_back({radix, n, stride, roots_of(radix), roots_of(n)});
    n /= radix;
    stride *= radix;
  }
}

// sum += a * w
static void add_product(lane_fft::value& sum, const lane_fft::value& a, float re, float im) {
  for (std::size_t l = 0; l < lane_fft::lanes; ++l) {
    sum.re[l] += a.re[l] * re - a.im[l] * im;
    sum.im[l] += a.re[l] * im + a.im[l] * re;
  }
}

void lane_fft::run(const pass& by, const value* from, value* to) {
  const auto m = by.n / by.radix;
  for (std::size_t k = 0; k < m; ++k)
    for (std::size_t q = 0; q < by.stride; ++q)
      for (std::size_t r = 0; r < by.radix; ++r) {
        value sum{};
        for (std::size_t j = 0; j < by.radix; ++j) {
          const auto& w = by.small[j * r % by.radix];
          add_product(sum, from[q + by.stride * (k + m * j)], w.re, w.im);
        }
        const auto& turn = by.large[k * r % by.n];
        auto& result = to[q + by.stride * (by.radix * k + r)];
        result = {};
        add_product(result, sum, turn.re, turn.im);
      }
}

// The spectrum of a real signal from that of its even samples plus i times its odd ones (Sorensen
// et al., "Real-valued fast Fourier transform algorithms", IEEE Trans. ASSP 35, 1987).
static lane_fft::value separated(const lane_fft::value& a, const lane_fft::value& b, float re,
                                 float im) {
  lane_fft::value result;
  for (std::size_t l = 0; l < lane_fft::lanes; ++l) {
    const float even_re = (a.re[l] + b.re[l]) / 2;
    const float even_im = (a.im[l] - b.im[l]) / 2;
    const float odd_re = (a.im[l] + b.im[l]) / 2;
    const float odd_im = (b.re[l] - a.re[l]) / 2;
    result.re[l] = even_re + odd_re * re - odd_im * im;
    result.im[l] = even_im + odd_re * im + odd_im * re;
  }
  return result;
}

void lane_fft::transform(std::vector<value>& signals, std::vector<value>& spectrum) const {
  for (const auto& each : passes_) {
    run(each, signals.data(), spectrum.data());
    std::swap(signals, spectrum);
  }
  for (std::size_t k = 0; k <= half_; ++k) {
    const auto& w = roots_[k];
    spectrum[k] = separated(signals[k % half_], signals[(half_ - k) % half_], w.re, w.im);
  }
}

}  // namespace lade::media
