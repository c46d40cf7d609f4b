// What stream_info holds.

#pragma once

#include <lade/media/av/stream_info.hpp>

#include <cstdint>

extern "C" {
#include <libavformat/avformat.h>
}

namespace lade::media {

struct stream_info::fields {
  std::string file;  // what errors call it
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

  // Whether an edit list shows several parts of the stream: in any order, perhaps repeatedly.
  bool edited = false;

  // As encoders are told to have them; see has_headers_apart.
  bool separate_headers = false;

  std::string encoder;  // whose packets they are, by FFmpeg's name; empty if a file's
};

// Colours as files state them may be numbers that have no enumerator, which may not even be read as
// such. They become "unspecified".
void drop_unknown_colours(AVFrame& frame) noexcept;
void drop_unknown_colours(AVCodecParameters& parameters) noexcept;

// FFmpeg's fraction; 0 if its denominator is 0.
rational rational_of(AVRational from);

// The time of a timestamp; empty for AV_NOPTS_VALUE.
std::optional<rational> time_of(std::int64_t timestamp, const rational& time_base);

metadata metadata_of(const AVDictionary* from);

// Whether headers of the stream are only in its parameters, and not in its packets.
bool has_headers_apart(const stream_info& stream) noexcept;

// `states_duration`: whether the duration is the file's own statement. `edited`: as in fields.
stream_info info_of(const AVStream& stream, std::string_view file, bool states_duration,
                    bool edited = false);

// FFmpeg's fraction of a time base, whose terms FFmpeg states in 32 bits.
AVRational av_rational_of(const rational& from);

// What a packet takes of memory; see packets::memory_bytes().
std::size_t memory_of(const AVPacket& packet) noexcept;

// Makes a display matrix mirror the picture from left to right before it does what it did; a second
// call undoes that. The first two numbers are the factors of the picture's x (libavutil/display.h).
void mirror_before_turning(std::int32_t* matrix) noexcept;

// A copy of parameters.
av_codec_parameters copy_parameters(const AVCodecParameters& from);

}  // namespace lade::media
