// Cuts decoded frames to a window of time.

#pragma once

#include "stream_fields.hpp"
#include "timestamps.hpp"

#include <lade/media/av/frame.hpp>
#include <lade/media/av/rational.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace lade::media {

// For the frames of one stream, in presentation order.
class window_cutter {
 public:
  explicit window_cutter(const time_window& window) : window_(window), inside_(!window.begin) {}

  // Appends what of the frame is in the window: all of a picture, some samples of audio. A picture
  // without a time is where the one before it is.
  void append(frame&& next, std::vector<frame>& to) {
    const auto time = next.time();
    if (!window_.begin && !window_.end) return to.push_back(std::move(next));
    const bool is_audio = next.kind() == stream_kind::audio;
    if (is_audio && time) return append_samples(std::move(next), *time, to);
    if (time) inside_ = window_.contains(*time);
    if (inside_ && !is_audio) to.push_back(std::move(next));
  }

 private:
  void append_samples(frame&& next, const rational& time, std::vector<frame>& to) {
    const rational rate(next.sample_rate());
    const auto start = position_of(next, time, rate);
    next_position_ = start + next.samples();
    const auto inside = [&](const std::optional<rational>& edge, int otherwise) {
      if (!edge) return otherwise;
      const auto at = std::clamp(ceil_timestamp(*edge, rate), start, next_position_.value());
      return static_cast<int>(at - start);
    };
    const int first = inside(window_.begin, 0);
    const int last = inside(window_.end, next.samples());
    if (first >= last) return;
    const bool whole = first == 0 && last == next.samples();
    to.push_back(whole ? std::move(next) : next.slice(first, last - first));
  }

  // The number of a frame's first sample, counted from time 0. Timestamps are rounded, in Matroska
  // to a millisecond: a frame that begins where the one before ended, but for that, follows it.
  std::int64_t position_of(const frame& next, const rational& time, const rational& rate) const {
    const auto stated = (time * rate).round();
    const auto tolerance = (next.time_base() * rate).ceil();
    const auto expected = next_position_ ? *next_position_ : nearest_boundary(next, stated);
    std::int64_t difference = 0;
    if (__builtin_sub_overflow(stated, expected, &difference)) return stated;
    return -tolerance <= difference && difference <= tolerance ? expected : stated;
  }

  // Frames of equal length end at multiples of it, from the encoder's padding on; those of Opus at
  // multiples of 2.5 ms. A decoder of Opus drops the beginning of the first one that it decodes.
  static std::int64_t nearest_boundary(const frame& next, std::int64_t position) {
    const auto& parameters = next.stream().parameters();
    const std::int64_t padding = parameters.initial_padding;
    const int length = parameters.codec_id == AV_CODEC_ID_OPUS ? next.sample_rate() / 400
                                                               : std::max(1, next.samples());
    const auto end = position + next.samples();
    return rational(end + padding, length).round() * length - padding - next.samples();
  }

  time_window window_;
  bool inside_;  // the last picture with a time
  std::optional<std::int64_t> next_position_;  // behind the last sample of audio
};

}  // namespace lade::media
