#include "container_codecs.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

template <class Range, class Value>
static bool is_among(const Range& range, const Value& value) noexcept {
  return std::find(std::begin(range), std::end(range), value) != std::end(range);
}

bool holds_packets(const AVOutputFormat& format) noexcept {
  constexpr std::array<std::string_view, 13> others{
      "crc",      "framecrc",   "uncodedframecrc", "hash",      "framehash", "streamhash", "md5",
      "framemd5", "ffmetadata", "mkvtimestamp_v2", "fifo_test", "null",      "chromaprint"};
  return !is_among(others, std::string_view(format.name));
}

// The codecs of a container.
struct codecs_of_container {
  std::string_view container;
  std::span<const AVCodecID> codecs;
};

static bool lists(std::span<const codecs_of_container> table, std::string_view container,
                  AVCodecID codec) noexcept {
  return std::any_of(table.begin(), table.end(), [&](const auto& each) {
    return each.container == container && is_among(each.codecs, codec);
  });
}

// Other codecs that a container can hold, which neither FFmpeg's list nor its muxer shows.
static bool is_held_beside(std::string_view container, AVCodecID codec) noexcept {
  constexpr static std::array program_stream{
      AV_CODEC_ID_MPEG1VIDEO,  AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MPEG4,     AV_CODEC_ID_H264,
      AV_CODEC_ID_HEVC,        AV_CODEC_ID_MP1,        AV_CODEC_ID_MP2,       AV_CODEC_ID_MP3,
      AV_CODEC_ID_AC3,         AV_CODEC_ID_DTS,        AV_CODEC_ID_PCM_S16BE, AV_CODEC_ID_PCM_DVD,
      AV_CODEC_ID_DVD_SUBTITLE};
  constexpr static std::array flash{AV_CODEC_ID_MJPEG, AV_CODEC_ID_VP6F, AV_CODEC_ID_VP6A,
                                    AV_CODEC_ID_FLASHSV};
  constexpr static std::array frames_of_iec_61937{AV_CODEC_ID_MP1, AV_CODEC_ID_MP2, AV_CODEC_ID_MP3,
                                                  AV_CODEC_ID_DTS};
  constexpr static std::array<codecs_of_container, 8> table{{{"mpeg", program_stream},
                                                             {"vcd", program_stream},
                                                             {"svcd", program_stream},
                                                             {"vob", program_stream},
                                                             {"dvd", program_stream},
                                                             {"swf", flash},
                                                             {"avm2", flash},
                                                             {"spdif", frames_of_iec_61937}}};
  return lists(table, container, codec);
}

// Codecs that FFmpeg lists for a container but cannot read back: packets are stored without their
// bounds, or without parameters of decoders.
static bool is_lost(std::string_view container, AVCodecID codec) noexcept {
  constexpr static std::array without_bounds{AV_CODEC_ID_AAC, AV_CODEC_ID_VORBIS};
  constexpr static std::array without_blocks{AV_CODEC_ID_AAC, AV_CODEC_ID_VORBIS, AV_CODEC_ID_WMAV1,
                                             AV_CODEC_ID_WMAV2};
  constexpr static std::array of_nut{AV_CODEC_ID_WMAV1, AV_CODEC_ID_WMAV2};
  constexpr static std::array of_wtv{AV_CODEC_ID_MJPEG,   AV_CODEC_ID_THEORA,  AV_CODEC_ID_WMV2,
                                     AV_CODEC_ID_UTVIDEO, AV_CODEC_ID_FFVHUFF, AV_CODEC_ID_CINEPAK,
                                     AV_CODEC_ID_AAC};
  constexpr static std::array of_caf{AV_CODEC_ID_FLAC};
  constexpr static std::array of_images{AV_CODEC_ID_RAWVIDEO};
  constexpr static std::array<codecs_of_container, 6> table{{{"wav", without_bounds},
                                                             {"w64", without_blocks},
                                                             {"nut", of_nut},
                                                             {"caf", of_caf},
                                                             {"wtv", of_wtv},
                                                             {"image2pipe", of_images}}};
  return lists(table, container, codec);
}

// Formats whose muxer has no list of codecs, but refuses unsupported ones.
static bool refuses_by_itself(std::string_view container) noexcept {
  constexpr std::array<std::string_view, 14> names{
      "mpegts", "mxf", "mxf_d10", "mxf_opatom", "gxf", "ogg", "oga",
      "ogv",    "spx", "opus",    "latm",       "amr", "sox", "yuv4mpegpipe"};
  return is_among(names, container);
}

static bool is_usual(const AVOutputFormat& format, AVCodecID codec) noexcept {
  return codec == format.video_codec || codec == format.audio_codec ||
         codec == format.subtitle_codec;
}

bool holds_codec(const AVOutputFormat& format, AVCodecID codec) noexcept {
  if (codec == AV_CODEC_ID_NONE) return false;
  const int listed = avformat_query_codec(&format, codec, FF_COMPLIANCE_NORMAL);
  if (listed == 0) return false;
  if (listed > 0 || is_usual(format, codec)) return !is_lost(format.name, codec);
  return refuses_by_itself(format.name) || is_held_beside(format.name, codec);
}

std::string_view says_unreadable(const av_messages& messages) noexcept {
  const auto is_refusal = [](std::string_view message) {
    return message.find("private data stream") != message.npos ||
           message.find("will be unreadable") != message.npos;
  };
  if (is_refusal(messages.first_error())) return messages.first_error();
  const auto& all = messages.warnings();
  const auto found = std::find_if(all.begin(), all.end(), is_refusal);
  return found == all.end() ? std::string_view() : *found;
}

}  // namespace lade::media
