// Cuts decoded frames to a window of time.

#pragma once

#include "stream_fields.hpp"

#include <lade/error.hpp>
#include <lade/media/av/frame.hpp>
#include <lade/media/av/rational.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace lade::media {

// From where a window of audio counts.
struct audio_origin {
  rational time = 0;  // of the first sample of the stream
  // The number of a sample with which a frame begins, where frames are of equal length. If empty,
  // the first sample of all is the encoder's padding before it.
  std::optional<std::int64_t> boundary = std::nullopt;
};

// For the frames of one stream, in presentation order.
class window_cutter {
 public:
  // If `origin` is empty, decoding begins with the first sample of the stream, and samples are
  // counted, whatever their times are.
  explicit window_cutter(const time_window& window,
                         std::optional<audio_origin> origin = audio_origin{})
      : window_(window), inside_(!window.begin), origin_(origin) {}

  // Whether audio has been cut up to the end of the window.
  bool is_past_end() const noexcept { return past_end_; }

  // Appends what of the frame is in the window: all of a picture, some samples of audio. A picture
  // without a time is where the one before it is, audio is behind that.
  void append(frame&& next, std::vector<frame>& to) {
    if (!window_.begin && !window_.end) return to.push_back(std::move(next));
    if (next.kind() == stream_kind::audio) return append_named(std::move(next), to);
    if (const auto time = next.time()) inside_ = window_.contains(*time);
    if (inside_) to.push_back(std::move(next));
  }

 private:
  // Times of a file may be so large that sums of them do not fit: the error names the stream.
  void append_named(frame&& next, std::vector<frame>& to) {
    const auto stream = next.stream();
    try {
      const auto start = find_position(next);
      if (start) append_samples(std::move(next), *start, to);
    } catch (const error& failed) {
      if (failed.code() != errc::limit_exceeded) throw;
      throw error(failed.code(), "cut a frame of " + stream.name() + " to its window",
                  failed.what());
    }
  }

  void append_samples(frame&& next, std::int64_t start, std::vector<frame>& to) {
    const rational rate(next.sample_rate());
    next_position_ = start + next.samples();
    if (is_rounded_twice(next, start)) next_position_.reset();
    past_end_ =
        window_.end && ceil_units(*window_.end, rational(1) / rate) <= start + next.samples();
    const auto inside = [&](const std::optional<rational>& edge, int otherwise) {
      if (!edge) return otherwise;
      const auto at =
          std::clamp(ceil_units(*edge, rational(1) / rate), start, start + next.samples());
      return static_cast<int>(at - start);
    };
    const int first = inside(window_.begin, 0);
    const int last = inside(window_.end, next.samples());
    if (first >= last) return;
    const bool whole = first == 0 && last == next.samples();
    to.push_back(whole ? std::move(next) : next.slice(first, last - first));
  }

  // The number of a frame's first sample, counted from the origin; empty if it is unknown.
  // Decoders return several frames of a packet, of which only the first has a time.
  std::optional<std::int64_t> find_position(const frame& next) {
    if (!origin_) return next_position_.value_or(0);
    const auto time = next.time();
    if (!time) return next_position_;
    return position_of(next, *time - origin_->time, rational(next.sample_rate()));
  }

  // The same of a frame with a time. Timestamps are rounded, in
  // Matroska to a millisecond: a frame that begins where the one before ended, but for that,
  // follows it. Not those in units of a sample or of a part of it.
  std::int64_t position_of(const frame& next, const rational& time, const rational& rate) {
    const auto stated = (time * rate).round();
    const auto unit = next.time_base() * rate;
    const bool is_exact = unit.numerator() == 1;
    if (is_exact && next.stream().parameters().codec_id == AV_CODEC_ID_VORBIS)
      return steady_position(stated);
    if (is_exact || (!next_position_ && stated == 0)) return stated;
    const auto tolerance = unit < 1 ? 1 : (unit * 2).ceil();
    const auto expected = next_position_ ? *next_position_ : nearest_boundary(next, stated);
    std::int64_t difference = 0;
    if (__builtin_sub_overflow(stated, expected, &difference)) return stated;
    return -tolerance <= difference && difference <= tolerance ? expected : stated;
  }

  // FFmpeg's times of Vorbis in Ogg are wrong for single frames, by less than a block of 8,192. The
  // frame behind one that is wrong ends the deviation, or has the same one: then both are right.
  std::int64_t steady_position(std::int64_t stated) {
    constexpr std::int64_t block = 8192;
    const auto expected = next_position_.value_or(stated);
    std::int64_t deviation = 0;
    const bool jumps = __builtin_sub_overflow(stated, expected, &deviation) || deviation > block ||
                       deviation < -block;
    if (jumps || deviation == std::exchange(deviation_, deviation)) {
      deviation_ = 0;
      return stated;
    }
    return expected;
  }

  // A decoder of Opus drops the beginning of the first frame that it decodes, and FFmpeg rounds how
  // long that is. Such a frame is not in the window.
  bool is_rounded_twice(const frame& next, std::int64_t start) noexcept {
    const bool is_first = !std::exchange(has_begun_, true);
    return is_first && start != 0 && next.stream().parameters().codec_id == AV_CODEC_ID_OPUS;
  }

  // Frames of equal length end at multiples of it, from a boundary on; those of Opus at multiples
  // of 2.5 ms. A decoder of Opus drops the beginning of the first one that it decodes.
  std::int64_t nearest_boundary(const frame& next, std::int64_t position) const {
    const auto& parameters = next.stream().parameters();
    const auto boundary = origin_->boundary.value_or(-std::int64_t{parameters.initial_padding});
    const int length = parameters.codec_id == AV_CODEC_ID_OPUS ? next.sample_rate() / 400
                                                               : std::max(1, next.samples());
    const auto end = position + next.samples();
    return rational(end - boundary, length).round() * length + boundary - next.samples();
  }

  time_window window_;
  bool inside_;  // the last picture with a time
  std::optional<audio_origin> origin_;
  bool past_end_ = false;
  std::int64_t deviation_ = 0;  // of the last time from the frames before
  bool has_begun_ = false;
  std::optional<std::int64_t> next_position_;  // behind the last sample of audio
};

}  // namespace lade::media
