#include "window_start.hpp"

#include "stream_fields.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace lade::media {

bool has_rounded_times(const stream_info& stream) {
  return (stream.time_base() * stream.sample_rate()).numerator() != 1;
}

static bool is_pcm(AVCodecID codec) noexcept {
  return codec >= AV_CODEC_ID_PCM_S16LE && codec < AV_CODEC_ID_ADPCM_IMA_QT;
}

// Whether the profile is AAC-LC. Other profiles predict from earlier frames, or have noise that
// continues over frames. The first five bits of the headers are the profile plus 1 (ISO/IEC
// 14496-3, 1.6.2.1).
static bool has_low_complexity(const AVCodecParameters& parameters) noexcept {
  constexpr int low_complexity = 1;  // FFmpeg's number, in all of its versions
  if (parameters.extradata_size > 0) return (parameters.extradata[0] >> 3) - 1 == low_complexity;
  return parameters.profile < 0 || parameters.profile == low_complexity;
}

bool forgets(const AVCodecParameters& parameters) noexcept {
  switch (parameters.codec_id) {
    case AV_CODEC_ID_AAC: return has_low_complexity(parameters);
    case AV_CODEC_ID_MP3:
    case AV_CODEC_ID_OPUS:
    case AV_CODEC_ID_VORBIS:
    case AV_CODEC_ID_FLAC:
    case AV_CODEC_ID_ALAC:
    case AV_CODEC_ID_WAVPACK:
    case AV_CODEC_ID_TTA: return true;
    default: return is_pcm(parameters.codec_id);
  }
}

// FLAC states its shortest and its longest block, of two bytes each (RFC 9639, 8.2).
static bool has_blocks_of_one_length(const AVCodecParameters& parameters) noexcept {
  return parameters.extradata_size >= 4 && parameters.extradata[0] == parameters.extradata[2] &&
         parameters.extradata[1] == parameters.extradata[3];
}

// Whether a rounded time identifies a sample: frames start at multiples of their length.
static bool has_frames_of_one_length(const AVCodecParameters& parameters) noexcept {
  switch (parameters.codec_id) {
    case AV_CODEC_ID_AAC:
    case AV_CODEC_ID_MP3:
    case AV_CODEC_ID_OPUS:
    case AV_CODEC_ID_ALAC: return true;
    case AV_CODEC_ID_FLAC: return has_blocks_of_one_length(parameters);
    default: return false;
  }
}

template <std::size_t Count>
static bool is_codec_of(AVCodecID codec, const std::array<AVCodecID, Count>& known) noexcept {
  return std::find(known.begin(), known.end(), codec) != known.end();
}

// Whether a container states the times of all packets of a codec, also after a seek.
// - Ogg: for codecs without durations, FFmpeg's demuxer counts from wrong pages. Its times of
//   single Vorbis packets are wrong.
// - MPEG-PS: seeks end inside frames.
// - WAV and AVI: seeks use the average bit rate.
static bool seeks_well(std::string_view format, AVCodecID codec) noexcept {
  if (format == "mov,mp4,m4a,3gp,3g2,mj2" || format == "matroska,webm") return true;
  if (format == "ogg") return codec == AV_CODEC_ID_OPUS;
  if (format == "flac") return codec == AV_CODEC_ID_FLAC;
  if (format == "mp3") return codec == AV_CODEC_ID_MP3;
  if (format == "aac") return codec == AV_CODEC_ID_AAC;
  if (format == "mpegts")
    return is_codec_of(codec, std::array{AV_CODEC_ID_AAC, AV_CODEC_ID_MP3, AV_CODEC_ID_OPUS});
  if (format == "flv") return is_codec_of(codec, std::array{AV_CODEC_ID_AAC, AV_CODEC_ID_MP3});
  if (format == "wv") return codec == AV_CODEC_ID_WAVPACK;
  if (format == "tta") return codec == AV_CODEC_ID_TTA;
  if (format == "caf") return codec == AV_CODEC_ID_ALAC || is_pcm(codec);
  constexpr std::array<std::string_view, 5> of_pcm{"wav", "w64", "aiff", "au", "avi"};
  return is_pcm(codec) && std::find(of_pcm.begin(), of_pcm.end(), format) != of_pcm.end();
}

bool needs_beginning(const stream_info& stream, std::string_view format) {
  const auto& parameters = stream.parameters();
  if (stream.stored().edited) return true;
  if (stream.kind() != stream_kind::audio) return false;
  if (!forgets(parameters) || !seeks_well(format, parameters.codec_id)) return true;
  return has_rounded_times(stream) && !has_frames_of_one_length(parameters);
}

// The longest time that MP3's bit reservoir spans at the lowest bit rates, plus two frames. The
// reservoir is 511 bytes at 32 kbit/s, and below 32 kHz 255 bytes at 8 kbit/s (ISO/IEC 11172-3,
// 2.4.2.7; 13818-3, 2.4.2.7). A frame at 24 kHz leaves 11 bytes for it in mono, and 3 in stereo.
static rational reservoir_seconds(const AVCodecParameters& parameters) {
  if (parameters.sample_rate >= 32'000) return rational(3, 10);
  return parameters.ch_layout.nb_channels == 1 ? rational(4, 5) : rational(23, 10);
}

// Lossy audio depends on earlier packets: the previous frame overlaps (AAC, Vorbis), the bit
// reservoir (MP3), 80 ms until the state has converged (Opus; RFC 7845, 4.2).
std::int64_t lead_in_of(const stream_info& stream) {
  if (stream.kind() != stream_kind::audio) return 0;
  const auto& parameters = stream.parameters();
  const auto seconds =
      parameters.codec_id == AV_CODEC_ID_MP3 ? reservoir_seconds(parameters) : rational(1, 4);
  return (seconds / stream.time_base()).ceil();
}

}  // namespace lade::media
