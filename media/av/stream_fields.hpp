// The contents of stream_info.

#pragma once

#include <lade/media/av/stream_info.hpp>

#include <cstdint>

extern "C" {
#include <libavformat/avformat.h>
}

namespace lade::media {

struct stream_info::fields {
  std::string file;  // the file's name in errors
  int index = 0;
  av_codec_parameters parameters;
  rational time_base{1};
  std::optional<rational> start_time;
  std::optional<rational> duration;
  std::optional<std::int64_t> stated_frames;
  std::optional<rational> frame_rate;
  rational sample_aspect{1};
  display_orientation orientation;
  media::metadata metadata;

  // Whether an edit list has several parts of the stream, in any order, perhaps repeatedly.
  bool edited = false;

  // Whether headers are only in the parameters, as encoders are configured; see has_headers_apart.
  bool separate_headers = false;

  std::string encoder;  // FFmpeg's name of the encoder; empty for streams of files
};

// Replaces colours without an enumerator by "unspecified". Files may state any number, and reading
// an invalid enumerator is undefined.
void drop_unknown_colours(AVFrame& frame) noexcept;
void drop_unknown_colours(AVCodecParameters& parameters) noexcept;

// FFmpeg's fraction; 0 if its denominator is 0.
rational rational_of(AVRational from);

// The time of a timestamp; empty for AV_NOPTS_VALUE.
std::optional<rational> time_of(std::int64_t timestamp, const rational& time_base);

metadata metadata_of(const AVDictionary* from);

// Whether the stream's headers are only in its parameters, not in its packets.
bool has_headers_apart(const stream_info& stream) noexcept;

// `states_duration`: whether the file states the duration, instead of an estimate. `edited`: see
// fields.
stream_info info_of(const AVStream& stream, std::string_view file, bool states_duration,
                    bool edited = false);

// A time base as FFmpeg's fraction, which has 32-bit terms.
AVRational av_rational_of(const rational& from);

// The memory of a packet; see packets::memory_bytes().
std::size_t memory_of(const AVPacket& packet) noexcept;

// Makes a display matrix mirror the picture left to right first; a second call undoes that. Negates
// the first two numbers, the factors of the picture's x (libavutil/display.h).
void mirror_before_turning(std::int32_t* matrix) noexcept;

// A copy of parameters.
av_codec_parameters copy_parameters(const AVCodecParameters& from);

}  // namespace lade::media
