#include <lade/error.hpp>
#include <lade/media/av/encoder.hpp>

#include "compat.hpp"
#include "open_encoder.hpp"
#include "sample_source.hpp"
#include "stream_fields.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace lade::media {

static std::span<const AVSampleFormat> sample_formats(const AVCodec& encoder) noexcept {
  const auto* list = sample_formats_of(encoder);
  if (list == nullptr) return {};
  const auto* end = list;
  while (*end != AV_SAMPLE_FMT_NONE) ++end;
  return {list, end};
}

static AVSampleFormat choose_sample_format(const AVCodec& encoder, std::string_view name,
                                           std::string_view doing) {
  const auto all = sample_formats(encoder);
  const auto has = [&](AVSampleFormat format) {
    return all.empty() || std::find(all.begin(), all.end(), format) != all.end();
  };
  if (name.empty()) {
    constexpr std::array preferred{AV_SAMPLE_FMT_FLTP, AV_SAMPLE_FMT_FLT, AV_SAMPLE_FMT_S16P,
                                   AV_SAMPLE_FMT_S16};
    const auto found = std::find_if(preferred.begin(), preferred.end(), has);
    return found == preferred.end() ? all[0] : *found;
  }
  const auto format = av_get_sample_fmt(std::string(name).c_str());
  if (format == AV_SAMPLE_FMT_NONE || !has(format))
    throw error(errc::invalid_argument, doing,
                "the encoder does not have the sample format " + std::string(name));
  return format;
}

static void check_sample_rate(const AVCodec& encoder, int rate, std::string_view doing) {
  if (rate < 1) throw error(errc::invalid_argument, doing, "sample_rate must be above 0");
  const auto* list = sample_rates_of(encoder);
  if (list == nullptr) return;
  std::string known;
  for (; *list != 0; ++list) {
    if (*list == rate) return;
    known += fmt::format(" {}", *list);
  }
  throw error(errc::invalid_argument, doing,
              fmt::format("the encoder does not have the sample rate {}, but:{}", rate, known));
}

static void set_layout(AVCodecContext& context, const audio_encode_options& options,
                       std::string_view doing) {
  constexpr int most = 64;
  if (options.channels < 1 || options.channels > most)
    throw error(errc::invalid_argument, doing, "channels must be 1 to 64");
  if (options.layout.empty())
    return av_channel_layout_default(&context.ch_layout, options.channels);
  const auto text = std::string(options.layout);
  const int result = av_channel_layout_from_string(&context.ch_layout, text.c_str());
  if (result < 0 || context.ch_layout.nb_channels != options.channels)
    throw error(errc::invalid_argument, doing,
                fmt::format("{} is no layout of {} channels", text, options.channels));
}

static av_codec_context new_audio_context(const audio_encode_options& options,
                                          std::string_view doing) {
  if (options.tensor_layout > audio_layout::interleaved)
    throw error(errc::invalid_argument, doing, "tensor_layout is no value of audio_layout");
  const auto& encoder = find_av_encoder(options.encoder, AVMEDIA_TYPE_AUDIO);
  av_codec_context context(check_av(avcodec_alloc_context3(&encoder)));
  check_sample_rate(encoder, options.sample_rate, doing);
  context->sample_rate = options.sample_rate;
  context->sample_fmt = choose_sample_format(encoder, options.sample_format, doing);
  context->time_base = {1, options.sample_rate};
  set_layout(*context, options, doing);
  return context;
}

class audio_encoder::state {
 public:
  explicit state(const audio_encode_options& options)
      : doing(fmt::format("encode audio ({})", options.encoder)),
        encoder(new_audio_context(options, doing),
                {options.bit_rate, options.quality, options.options}, doing),
        source(encoder.context()),
        tensor_layout(options.tensor_layout) {}

  float largest() const noexcept { return largest_sample(encoder.stream().parameters().codec_id); }

  void check_shape(const frame& next) const {
    const auto& codec = encoder.stream();
    const auto& layout = codec.parameters().ch_layout;
    const auto& frame_layout = next.get().ch_layout;
    if (next.sample_rate() != codec.sample_rate() || next.channels() != codec.channels())
      throw error(errc::invalid_argument, doing,
                  fmt::format("the frame has {} channels of {} Hz, not {} of {}", next.channels(),
                              next.sample_rate(), codec.channels(), codec.sample_rate()));
    if (frame_layout.order != AV_CHANNEL_ORDER_UNSPEC &&
        av_channel_layout_compare(&frame_layout, &layout) != 0)
      throw error(errc::invalid_argument, doing, "the channels of the frame have another layout");
  }

  // Throws if a frame does not start at the end of the previous one, within the rounding of its
  // time.
  void check_time(const frame& next) {
    const auto time = next.time();
    if (!time) throw error(errc::invalid_argument, doing, "the frame has no time");
    const rational rate(next.sample_rate());
    const auto stated = (*time * rate).round();
    if (!end) end = taken = stated;
    if (std::abs(stated - *end) <= (next.time_base() * rate).ceil()) return;
    throw error(errc::invalid_argument, doing,
                fmt::format("the frame at {} s does not follow the one before, which ends at {} s",
                            to_string(*time), to_string(rational(*end) / rate)));
  }

  void send_waiting(bool last) {
    while (auto next = source.take(last)) {
      next->pts = taken;
      media::set_duration(*next, next->nb_samples);
      taken += next->nb_samples;
      encoder.send(*next);
    }
  }

  template <class Samples>
  void append(const Samples& from, std::int64_t count) {
    for (std::int64_t first = 0; first < count; first += source.piece()) {
      const auto part = static_cast<int>(std::min<std::int64_t>(source.piece(), count - first));
      source.append(from, first, part);
      *end += part;
      send_waiting(false);
    }
  }

  std::string doing;
  open_encoder encoder;
  sample_source source;
  audio_layout tensor_layout;       // planar or interleaved
  std::optional<std::int64_t> end;  // end of the last sample that was sent, in samples
  std::int64_t taken = 0;           // time of the next sample for the encoder
};

audio_encoder::audio_encoder(const audio_encode_options& options)
    : state_(std::make_unique<state>(options)) {}
audio_encoder::audio_encoder(audio_encoder&&) noexcept = default;
audio_encoder& audio_encoder::operator=(audio_encoder&&) noexcept = default;
audio_encoder::~audio_encoder() = default;

const stream_info& audio_encoder::stream() const noexcept { return state_->encoder.stream(); }

void audio_encoder::send(const frame& next) {
  state_->encoder.require_unfinished();
  if (next.kind() != stream_kind::audio)
    throw error(errc::invalid_argument, state_->doing, "the frame is a picture");
  state_->check_shape(next);
  check_samples(next.get(), state_->largest(), state_->doing);
  state_->check_time(next);
  state_->append(next.get(), next.samples());
}

// The samples as [samples, channels].
static tensor by_sample(const tensor& samples, audio_layout layout) {
  if (layout == audio_layout::interleaved) return samples;
  const tensor_spec turned{samples.type(), {samples.shape()[1], samples.shape()[0]}};
  return tensor(turned, {samples.strides()[1], samples.strides()[0]}, samples.memory(),
                samples.bytes());
}

void audio_encoder::send(const tensor& samples) {
  state_->encoder.require_unfinished();
  const bool planar = state_->tensor_layout == audio_layout::planar;
  const bool known = samples.type() == element_type::f32 || samples.type() == element_type::i16;
  const bool good = known && samples.rank() == 2 &&
                    samples.shape()[planar ? 0 : 1] == stream().channels() &&
                    samples.where().is_host_accessible();
  if (!good) {
    const auto channels = stream().channels();
    throw error(errc::invalid_argument, state_->doing,
                fmt::format("samples are f32 or i16 {} in host memory, not {} {}",
                            planar ? fmt::format("[{}, samples]", channels)
                                   : fmt::format("[samples, {}]", channels),
                            name(samples.type()), to_string(samples.shape())));
  }
  const auto turned = by_sample(samples, state_->tensor_layout);
  check_samples(turned, state_->largest(), state_->doing);
  if (!state_->end) state_->end = 0;
  state_->append(turned, turned.shape()[0]);
}

void audio_encoder::finish() {
  state_->send_waiting(true);
  state_->encoder.finish();
}

std::optional<packet> audio_encoder::receive() { return state_->encoder.receive(); }

}  // namespace lade::media
