#include "sample_source.hpp"

#include <lade/error.hpp>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

extern "C" {
#include <libavutil/audio_fifo.h>
}

namespace lade::media {

float largest_sample(AVCodecID codec) noexcept {
  constexpr float of_mp3 = 256;
  constexpr float of_others = 1 << 20;
  return codec == AV_CODEC_ID_MP3 ? of_mp3 : of_others;
}

// NaN and infinities fail the comparison.
template <class Float>
static bool all_within(const Float* samples, std::int64_t count, std::int64_t stride,
                       Float most) noexcept {
  bool beyond = false;
  for (std::int64_t i = 0; i < count; ++i) beyond |= !(std::abs(samples[i * stride]) <= most);
  return !beyond;
}

template <class Float>
static void check_channel(const Float* samples, std::int64_t count, std::int64_t stride, Float most,
                          std::int64_t channel, std::string_view doing) {
  const bool good =
      stride == 1 ? all_within(samples, count, 1, most) : all_within(samples, count, stride, most);
  for (std::int64_t i = 0; !good && i < count; ++i)
    if (const auto value = samples[i * stride]; !(std::abs(value) <= most))
      throw error(errc::invalid_argument, doing,
                  fmt::format("sample {} of channel {} is {:f}, beyond {}", i, channel, value,
                              static_cast<int>(most)));
}

void check_samples(const tensor& samples, float most, std::string_view doing) {
  if (samples.type() != element_type::f32) return;
  for (std::int64_t c = 0; c < samples.shape()[1]; ++c)
    check_channel(samples.data<float>() + c * samples.strides()[1], samples.shape()[0],
                  samples.strides()[0], most, c, doing);
}

template <class Float>
static void check_floats(const AVFrame& frame, Float most, std::string_view doing) {
  const int channels = frame.ch_layout.nb_channels;
  const bool planar = av_sample_fmt_is_planar(static_cast<AVSampleFormat>(frame.format)) != 0;
  for (int c = 0; c < channels; ++c) {
    const auto* first = reinterpret_cast<const Float*>(frame.extended_data[planar ? c : 0]);
    check_channel(first + (planar ? 0 : c), frame.nb_samples, planar ? 1 : channels, most, c,
                  doing);
  }
}

void check_samples(const AVFrame& samples, float most, std::string_view doing) {
  const auto packed = av_get_packed_sample_fmt(static_cast<AVSampleFormat>(samples.format));
  if (packed == AV_SAMPLE_FMT_FLT) check_floats<float>(samples, most, doing);
  if (packed == AV_SAMPLE_FMT_DBL) check_floats<double>(samples, most, doing);
}

// For encoders that accept any number of samples at once, such as PCM.
static constexpr int usual_piece = 4096;

static av_frame new_samples(const AVCodecContext& codec, AVSampleFormat format, int count) {
  av_frame next(check_av(av_frame_alloc()));
  next->format = format;
  next->sample_rate = codec.sample_rate;
  next->nb_samples = count;
  check_av(av_channel_layout_copy(&next->ch_layout, &codec.ch_layout), "copy a channel layout");
  check_av(av_frame_get_buffer(next.get(), 0), "allocate samples");
  return next;
}

sample_source::sample_source(AVCodecContext& encoder)
    : encoder_(encoder),
      piece_(encoder.frame_size > 0 ? encoder.frame_size : usual_piece),
      converter_(encoder.ch_layout, encoder.sample_fmt, encoder.sample_rate),
      converted_(new_samples(encoder, encoder.sample_fmt, piece_)),
      interleaved_(new_samples(encoder, AV_SAMPLE_FMT_FLT, piece_)),
      waiting_(check_av(
          av_audio_fifo_alloc(encoder.sample_fmt, encoder.ch_layout.nb_channels, 2 * piece_))) {}

void sample_source::append_rows(const std::uint8_t** planes, AVSampleFormat format, int count) {
  converter_.convert(planes, format, count, converted_->extended_data);
  check_av(av_audio_fifo_write(waiting_.get(), reinterpret_cast<void**>(converted_->extended_data),
                               count),
           "keep samples");
}

void sample_source::append(const AVFrame& from, std::int64_t first, int count) {
  const auto format = static_cast<AVSampleFormat>(from.format);
  const bool planar = av_sample_fmt_is_planar(format) != 0;
  const int channels = from.ch_layout.nb_channels;
  const int step = av_get_bytes_per_sample(format) * (planar ? 1 : channels);
  std::vector<const std::uint8_t*> planes(static_cast<std::size_t>(planar ? channels : 1));
  for (std::size_t i = 0; i < planes.size(); ++i) planes[i] = from.extended_data[i] + first * step;
  append_rows(planes.data(), format, count);
}

template <class Sample>
void sample_source::append_samples(const tensor& from, std::int64_t first, int count,
                                   AVSampleFormat format) {
  const auto channels = from.shape()[1];
  const auto* in = from.data<Sample>() + first * from.strides()[0];
  auto* out = reinterpret_cast<Sample*>(interleaved_->data[0]);
  for (int i = 0; i < count; ++i, in += from.strides()[0])
    for (std::int64_t c = 0; c < channels; ++c) *out++ = in[c * from.strides()[1]];
  std::array<const std::uint8_t*, 1> rows{interleaved_->data[0]};
  append_rows(rows.data(), format, count);
}

void sample_source::append(const tensor& from, std::int64_t first, int count) {
  if (from.type() == element_type::f32)
    append_samples<float>(from, first, count, AV_SAMPLE_FMT_FLT);
  else
    append_samples<std::int16_t>(from, first, count, AV_SAMPLE_FMT_S16);
}

av_frame sample_source::take(bool last) {
  const int there = av_audio_fifo_size(waiting_.get());
  const int count = there < piece_ && last ? there : piece_;
  if (there < count || count == 0) return nullptr;
  auto next = new_samples(encoder_, encoder_.sample_fmt, count);
  check_av(av_audio_fifo_read(waiting_.get(), reinterpret_cast<void**>(next->extended_data), count),
           "take samples");
  return next;
}

}  // namespace lade::media
