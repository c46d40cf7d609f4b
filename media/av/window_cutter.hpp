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

// The origin of the sample numbers of a window of audio.
struct audio_origin {
  rational time = 0;  // of the first sample of the stream
  // If frames have equal lengths: the number of a sample at which a frame starts. If empty, the
  // first frame starts at the encoder's padding before sample 0.
  std::optional<std::int64_t> boundary = std::nullopt;
};

// Cuts the frames of one stream, which must arrive in presentation order. One thread at a time.
class window_cutter {
 public:
  // `origin`: empty if decoding starts at the first sample of the stream. Then samples are counted,
  // and their times are ignored.
  explicit window_cutter(const time_window& window,
                         std::optional<audio_origin> origin = audio_origin{})
      : window_(window), inside_(!window.begin), origin_(origin) {}

  // Whether audio is complete up to the end of the window.
  bool is_past_end() const noexcept { return past_end_; }

  // Appends the part of the frame inside the window: a whole picture, or some samples of audio. A
  // picture without a time has the time of the previous one; audio without a time follows the
  // previous frame.
  void append(frame&& next, std::vector<frame>& to) {
    if (!window_.begin && !window_.end) return to.push_back(std::move(next));
    if (next.kind() == stream_kind::audio) return append_named(std::move(next), to);
    if (const auto time = next.time()) inside_ = window_.contains(*time);
    if (inside_) to.push_back(std::move(next));
  }

 private:
  // Sums of very large times may overflow: the error names the stream.
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

  // The number of a frame's first sample, relative to the origin; empty if it is unknown. Decoders
  // return several frames per packet; only the first one has a time.
  std::optional<std::int64_t> find_position(const frame& next) {
    if (!origin_) return next_position_.value_or(0);
    const auto time = next.time();
    if (!time) return next_position_;
    return position_of(next, *time - origin_->time, rational(next.sample_rate()));
  }

  // The same for a frame with a time. Timestamps may be rounded, in Matroska to a millisecond: a
  // frame that starts at the end of the previous one, within that error, follows it exactly.
  // Timestamps in units of a sample or less are exact.
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

  // FFmpeg's times of single Vorbis frames in Ogg are wrong by less than a block of 8,192 samples.
  // If the next frame has the same deviation, both times are right; otherwise the first was wrong.
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

  // Whether the frame's time is rounded twice: an Opus decoder drops the start of the first frame
  // that it decodes, and FFmpeg rounds the dropped length. Such a frame is before the window.
  bool is_rounded_twice(const frame& next, std::int64_t start) noexcept {
    const bool is_first = !std::exchange(has_begun_, true);
    return is_first && start != 0 && next.stream().parameters().codec_id == AV_CODEC_ID_OPUS;
  }

  // Frames of equal length end at multiples of that length after a boundary; frames of Opus at
  // multiples of 2.5 ms. An Opus decoder drops the start of the first frame that it decodes.
  std::int64_t nearest_boundary(const frame& next, std::int64_t position) const {
    const auto& parameters = next.stream().parameters();
    const auto boundary = origin_->boundary.value_or(-std::int64_t{parameters.initial_padding});
    const int length = parameters.codec_id == AV_CODEC_ID_OPUS ? next.sample_rate() / 400
                                                               : std::max(1, next.samples());
    const auto end = position + next.samples();
    return rational(end - boundary, length).round() * length + boundary - next.samples();
  }

  time_window window_;
  bool inside_;  // whether the last picture with a time is in the window
  std::optional<audio_origin> origin_;
  bool past_end_ = false;
  std::int64_t deviation_ = 0;  // of the last time from the end of the previous frame
  bool has_begun_ = false;
  std::optional<std::int64_t> next_position_;  // number of the next sample of audio
};

}  // namespace lade::media
