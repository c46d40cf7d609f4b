#include "audio_converter.hpp"

#include <lade/error.hpp>
#include <lade/stop_requested.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

extern "C" {
#include <libavutil/frame.h>
}

namespace lade::media {

channel_layout requested_channels(int channels, std::string_view layout, std::string_view doing) {
  if (channels < 0 || channels > sample_sink::most_channels)
    throw error(errc::invalid_argument, doing, "channels must be 1 to 64, or 0");
  if (layout.empty()) return channels > 0 ? channel_layout::usual(channels) : channel_layout();
  channel_layout named;
  if (av_channel_layout_from_string(&named.get(), std::string(layout).c_str()) < 0)
    throw error(errc::invalid_argument, doing,
                fmt::format("FFmpeg has no channel layout \"{}\"", layout));
  if (channels > 0 && channels != named.channels())
    throw error(
        errc::invalid_argument, doing,
        fmt::format("channels is {}, and channel_layout has {}", channels, named.channels()));
  return named;
}

static AVSampleFormat packed_format_of(element_type type) noexcept {
  switch (type) {
    case element_type::u8: return AV_SAMPLE_FMT_U8;
    case element_type::i16: return AV_SAMPLE_FMT_S16;
    case element_type::i32: return AV_SAMPLE_FMT_S32;
    case element_type::f32: return AV_SAMPLE_FMT_FLT;
    case element_type::f64: return AV_SAMPLE_FMT_DBL;
    default: return AV_SAMPLE_FMT_NONE;
  }
}

bool is_sample_type(element_type type) noexcept {
  return packed_format_of(type) != AV_SAMPLE_FMT_NONE;
}

static AVSampleFormat format_of_sink(const sample_sink& sink) noexcept {
  const auto packed = packed_format_of(sink.type());
  return sink.layout() == audio_layout::planar ? av_get_planar_sample_fmt(packed) : packed;
}

void audio_converter::begin(const sample_layout& from, sample_sink& to) {
  if (swr_) {
    drain(to);
    ++format_changes_;
  }
  from_ = from;
  if (to_.rate == 0) {
    to_ = {.rate = rate_ > 0 ? rate_ : from.rate,
           .format = format_of_sink(to),
           .channels = channels_.channels() > 0 ? channels_ : from.channels};
    if (to.channels() == 0) to.set_channels(to_.channels.channels());
    if (to.channels() != to_.channels.channels())
      throw error(
          errc::invalid_data, to.doing(),
          fmt::format("it has {} channels instead of {}", to_.channels.channels(), to.channels()));
  }
  swr_.emplace(pooled_swr::acquire(from_, to_, to.doing()));
}

void audio_converter::convert(const sample_layout& from, const std::uint8_t* const* planes,
                              int count, sample_sink& to) {
  if (stop_requested()) throw error(errc::stopped, to.doing());
  if (!swr_ || from != from_) begin(from, to);
  const int most = check_av(swr_get_out_samples(swr_->get(), count), to.doing());
  auto room = to.reserve(most);
  const auto capacity = static_cast<int>(std::min<std::int64_t>(room.capacity, most));
  // FFmpeg 5.1 requires an array of non-const addresses.
  const int written = swr_convert(swr_->get(), room.channels.data(), capacity,
                                  const_cast<const std::uint8_t**>(planes), count);
  to.commit(check_av(written, to.doing()));
}

void audio_converter::convert(const AVFrame& from, sample_sink& to) {
  const bool unknown = from.ch_layout.order == AV_CHANNEL_ORDER_UNSPEC;
  const sample_layout layout{.rate = from.sample_rate,
                             .format = static_cast<AVSampleFormat>(from.format),
                             .channels = unknown ? channel_layout::usual(from.ch_layout.nb_channels)
                                                 : channel_layout(from.ch_layout)};
  convert(layout, from.extended_data, from.nb_samples, to);
}

void audio_converter::drain(sample_sink& to) {
  while (!to.is_full()) {
    const int most = std::max(1, swr_get_out_samples(swr_->get(), 0));
    auto room = to.reserve(most);
    const auto capacity = static_cast<int>(std::min<std::int64_t>(room.capacity, most));
    const int written =
        check_av(swr_convert(swr_->get(), room.channels.data(), capacity, nullptr, 0), to.doing());
    if (written == 0) return;
    to.commit(written);
  }
}

void audio_converter::finish(sample_sink& to) {
  if (swr_) drain(to);
  swr_.reset();
  to_ = {};
}

}  // namespace lade::media
