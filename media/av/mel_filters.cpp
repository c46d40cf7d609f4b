#include "mel_filters.hpp"

#include <algorithm>
#include <cmath>

namespace lade::media {

// Slaney's mel scale (Auditory Toolbox, 1998): linear up to 1,000 Hz, which is 15 mel; above, 27
// mel are a factor of 6.4.
static constexpr double slaney_step = 200.0 / 3;
static constexpr double slaney_break = 1000;
static double slaney_growth() noexcept { return std::log(6.4) / 27; }

static double mel_of(double hertz, mel_scale scale) {
  if (scale == mel_scale::htk) return 2595 * std::log10(1 + hertz / 700);
  if (hertz < slaney_break) return hertz / slaney_step;
  return slaney_break / slaney_step + std::log(hertz / slaney_break) / slaney_growth();
}

static double hertz_of(double mel, mel_scale scale) {
  if (scale == mel_scale::htk) return 700 * (std::pow(10, mel / 2595) - 1);
  constexpr double break_mel = slaney_break / slaney_step;
  if (mel < break_mel) return mel * slaney_step;
  return slaney_break * std::exp(slaney_growth() * (mel - break_mel));
}

// A triangle from `low` to `high` with its peak at `peak`, in Hz.
static mel_filter triangle(const log_mel_options& options, double low, double peak, double high) {
  mel_filter filter;
  const double height = options.equal_area ? 2 / (high - low) : 1;
  for (std::size_t bin = 0; bin <= static_cast<std::size_t>(options.n_fft) / 2; ++bin) {
    const double hertz = static_cast<double>(bin) * options.sample_rate / options.n_fft;
    const double weight = std::min((hertz - low) / (peak - low), (high - hertz) / (high - peak));
    if (weight <= 0) continue;
    if (filter.weights.empty()) filter.first = bin;
    filter.weights.push_back(static_cast<float>(height * weight));
  }
  return filter;
}

std::vector<mel_filter> mel_filters_of(const log_mel_options& options) {
  const double f_max = options.f_max > 0 ? options.f_max : options.sample_rate / 2.0;
  const double low = mel_of(options.f_min, options.scale);
  const double step = (mel_of(f_max, options.scale) - low) / (options.n_mels + 1);
  const auto edge = [&](int i) { return hertz_of(low + i * step, options.scale); };
  std::vector<mel_filter> filters;
  for (int i = 0; i < options.n_mels; ++i)
    filters.push_back(triangle(options, edge(i), edge(i + 1), edge(i + 2)));
  return filters;
}

}  // namespace lade::media
