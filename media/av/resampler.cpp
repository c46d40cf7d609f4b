#include <lade/error.hpp>
#include <lade/media/av/resampler.hpp>

#include "audio_converter.hpp"

#include <limits>
#include <string>

namespace lade::media {

static void check_resampling(const resample_options& options, std::string_view doing) {
  if (options.sample_rate < 0 || options.sample_rate > most_sample_rate)
    throw error(errc::invalid_argument, doing, "sample_rate must be 1 to 768000, or 0");
  if (!is_sample_type(options.type))
    throw error(errc::invalid_argument, doing, "type must be f32, f64, u8, i16 or i32");
  if (options.layout > audio_layout::interleaved)
    throw error(errc::invalid_argument, doing, "layout is no value of audio_layout");
}

class resampler::state {
 public:
  explicit state(const resample_options& options)
      : type(options.type),
        layout(options.layout),
        converter(options.sample_rate, requested_channels(options.channels, options.channel_layout,
                                                          "make a resampler")) {
    check_resampling(options, "make a resampler");
  }

  sample_sink new_sink(std::int64_t expected) const {
    constexpr auto any = std::numeric_limits<std::int64_t>::max() / 2;
    sample_sink sink(type, layout, any, "resample " + name);
    sink.expect(expected);
    if (channels > 0) sink.set_channels(channels);
    return sink;
  }

  tensor take(sample_sink&& sink) {
    channels = sink.channels();
    return std::move(sink).take();
  }

  element_type type;
  audio_layout layout;
  audio_converter converter;
  std::string name = "audio";  // of the stream
  int channels = 0;            // of the result; 0 until they are known
};

resampler::resampler(const resample_options& options) : state_(std::make_unique<state>(options)) {}
resampler::resampler(resampler&&) noexcept = default;
resampler& resampler::operator=(resampler&&) noexcept = default;
resampler::~resampler() = default;

std::uint64_t resampler::format_changes() const noexcept {
  return state_->converter.format_changes();
}

static const AVFrame& audio_of(const frame& from) {
  if (from.kind() != stream_kind::audio)
    throw error(errc::invalid_argument, "resample " + from.stream().name(),
                "the frame is a picture");
  return from.get();
}

tensor resampler::convert(const frame& next) {
  const auto& samples = audio_of(next);
  state_->name = next.stream().name();
  auto sink = state_->new_sink(next.samples());
  state_->converter.convert(samples, sink);
  return state_->take(std::move(sink));
}

tensor resampler::finish() {
  auto sink = state_->new_sink(0);
  state_->converter.finish(sink);
  auto rest = state_->take(std::move(sink));
  state_->channels = 0;
  return rest;
}

tensor resample(std::span<const frame> frames, const resample_options& options) {
  check_resampling(options, "resample audio");
  std::int64_t samples = 0;
  for (const auto& each : frames) samples += each.samples();
  if (!frames.empty() && options.sample_rate > 0 && frames[0].sample_rate() > 0)
    samples = (rational(samples) * options.sample_rate / frames[0].sample_rate()).ceil();
  constexpr auto any = std::numeric_limits<std::int64_t>::max() / 2;
  sample_sink sink(options.type, options.layout, any, "resample audio");
  sink.expect(samples);
  audio_converter converter(
      options.sample_rate,
      requested_channels(options.channels, options.channel_layout, "resample audio"));
  for (const auto& each : frames) converter.convert(audio_of(each), sink);
  converter.finish(sink);
  return std::move(sink).take();
}

}  // namespace lade::media
