#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/media/av/log_mel.hpp>

#include "lane_fft.hpp"
#include "mel_filters.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace lade::media {

struct log_mel::plan {
  explicit plan(const log_mel_options& options)
      : fft(static_cast<std::size_t>(options.n_fft)), filters(mel_filters_of(options)) {
    for (int i = 0; i < options.n_fft; ++i)
      window.push_back(
          static_cast<float>(0.5 - 0.5 * std::cos(2 * std::numbers::pi * i / options.n_fft)));
  }

  lane_fft fft;
  std::vector<mel_filter> filters;
  std::vector<float> window;
};

static void require_mel(bool condition, std::string_view reason) {
  if (!condition) throw error(errc::invalid_argument, "make log_mel", reason);
}

static void check_mel_options(const log_mel_options& options) {
  const double half_rate = options.sample_rate / 2.0;
  require_mel(options.sample_rate > 0, "sample_rate must be above 0");
  require_mel(options.n_fft >= 2 && options.n_fft <= 32'768 && options.n_fft % 2 == 0,
              "n_fft must be even, 2 to 32768");
  require_mel(options.hop > 0, "hop must be above 0");
  require_mel(options.n_mels >= 1 && options.n_mels <= 1024, "n_mels must be 1 to 1024");
  require_mel(options.f_min >= 0 && options.f_max >= 0 && options.f_max <= half_rate &&
                  options.f_min < (options.f_max > 0 ? options.f_max : half_rate),
              "f_min and f_max must be in order, up to half of sample_rate");
  require_mel(options.power == 1 || options.power == 2, "power must be 1 or 2");
  require_mel(options.log == mel_log::none || (options.floor > 0 && std::isfinite(options.floor)),
              "floor must be above 0 and finite");
  require_mel(options.scale <= mel_scale::htk, "scale is no value of mel_scale");
  require_mel(options.log <= mel_log::whisper, "log is no value of mel_log");
}

log_mel_options whisper_options(int n_mels) {
  return {.n_mels = n_mels,
          .scale = mel_scale::slaney,
          .equal_area = true,
          .log = mel_log::whisper,
          .drop_last_frame = true};
}

log_mel::log_mel(const log_mel_options& options) : options_(options) {
  check_mel_options(options);
  plan_ = std::make_shared<const plan>(options);
}

std::int64_t log_mel::frames(std::int64_t samples) const noexcept {
  return samples / options_.hop + (options_.drop_last_frame ? 0 : 1);
}

static std::span<const float> mono_samples(const tensor& waveform, const log_mel_options& options) {
  constexpr std::string_view doing = "compute a log-mel spectrogram";
  const auto& shape = waveform.shape();
  const bool mono = shape.size() == 1 || (shape.size() == 2 && std::min(shape[0], shape[1]) == 1);
  if (waveform.type() != element_type::f32 || !mono || !waveform.contiguous())
    throw error(errc::invalid_argument, doing,
                fmt::format("the waveform is {}{} instead of contiguous f32 of one channel",
                            name(waveform.type()), to_string(shape)));
  const std::span samples(waveform.data<float>(), waveform.spec().elements());
  if (samples.size() <= static_cast<std::size_t>(options.n_fft) / 2)
    throw error(errc::invalid_argument, doing,
                fmt::format("it has {} samples; more than n_fft / 2 = {} are needed",
                            samples.size(), options.n_fft / 2));
  return samples;
}

// The sample at an index that may be outside of the waveform, which is reflected at its ends.
static float reflected(std::span<const float> samples, std::int64_t at) noexcept {
  const auto last = static_cast<std::int64_t>(samples.size()) - 1;
  if (at < 0) at = -at;
  if (at > last) at = 2 * last - at;
  return samples[static_cast<std::size_t>(std::clamp<std::int64_t>(at, 0, last))];
}

// Writes a windowed frame into one lane. `begin`: the index of its first sample.
static void load_frame(std::span<const float> samples, std::int64_t begin,
                       std::span<const float> window, std::size_t lane,
                       std::vector<lane_fft::value>& into) {
  const bool inside =
      begin >= 0 && static_cast<std::size_t>(begin) + window.size() <= samples.size();
  for (std::size_t i = 0; i < window.size(); i += 2) {
    const auto at = begin + static_cast<std::int64_t>(i);
    const float even = inside ? samples[static_cast<std::size_t>(at)] : reflected(samples, at);
    const float odd =
        inside ? samples[static_cast<std::size_t>(at) + 1] : reflected(samples, at + 1);
    into[i / 2].re[lane] = even * window[i];
    into[i / 2].im[lane] = odd * window[i + 1];
  }
}

// Stores magnitudes raised to the power in `re`.
static void raise_magnitudes(std::vector<lane_fft::value>& spectrum, double power) {
  for (auto& each : spectrum) {
    for (std::size_t l = 0; l < lane_fft::lanes; ++l)
      each.re[l] = each.re[l] * each.re[l] + each.im[l] * each.im[l];
    if (power == 1)
      for (auto& magnitude : each.re) magnitude = std::sqrt(magnitude);
  }
}

static lane_fft::lane filtered(const std::vector<lane_fft::value>& powers,
                               const mel_filter& filter) {
  lane_fft::lane sum{};
  for (std::size_t i = 0; i < filter.weights.size(); ++i)
    for (std::size_t l = 0; l < lane_fft::lanes; ++l)
      sum[l] += powers[filter.first + i].re[l] * filter.weights[i];
  return sum;
}

static void take_logarithms(std::span<float> values, mel_log kind, float floor) {
  if (kind == mel_log::none) return;
  float loudest = -std::numeric_limits<float>::infinity();
  for (auto& each : values) {
    const float kept = std::max(each, floor);
    each = kind == mel_log::natural ? std::log(kept) : std::log10(kept);
    loudest = std::max(loudest, each);
  }
  if (kind != mel_log::whisper) return;
  for (auto& each : values) each = (std::max(each, loudest - 8) + 4) / 4;
}

// Frames [first, first + used) of `count` frames.
struct mel_block {
  std::size_t first;
  std::size_t used;
  std::size_t count;
  bool frames_first;
};

static void write_mels(const std::vector<lane_fft::value>& powers,
                       const std::vector<mel_filter>& filters, const mel_block& block,
                       std::span<float> values) {
  for (std::size_t m = 0; m < filters.size(); ++m) {
    const auto lane = filtered(powers, filters[m]);
    for (std::size_t l = 0; l < block.used; ++l) {
      const auto frame = block.first + l;
      values[block.frames_first ? frame * filters.size() + m : m * block.count + frame] = lane[l];
    }
  }
}

tensor log_mel::operator()(const tensor& waveform) const {
  const auto samples = mono_samples(waveform, options_);
  const auto n = frames(static_cast<std::int64_t>(samples.size()));
  const auto count = static_cast<std::size_t>(n);
  const dimensions shape =
      options_.frames_first ? dimensions{n, options_.n_mels} : dimensions{options_.n_mels, n};
  const tensor_spec spec{element_type::f32, shape};
  const tensor result(spec, allocate_now(spec.bytes()));
  const std::span values(result.data<float>(), spec.elements());
  std::vector<lane_fft::value> signals(plan_->fft.bins());
  std::vector<lane_fft::value> spectrum(plan_->fft.bins());
  for (std::size_t first = 0; first < count; first += lane_fft::lanes) {
    const auto used = std::min(lane_fft::lanes, count - first);
    for (std::size_t l = 0; l < used; ++l) {
      const auto centre = static_cast<std::int64_t>(first + l) * options_.hop;
      load_frame(samples, centre - options_.n_fft / 2, plan_->window, l, signals);
    }
    plan_->fft.transform(signals, spectrum);
    raise_magnitudes(spectrum, options_.power);
    write_mels(spectrum, plan_->filters, {first, used, count, options_.frames_first}, values);
  }
  take_logarithms(values, options_.log, options_.floor);
  return result;
}

}  // namespace lade::media
