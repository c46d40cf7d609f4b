// The places where FFmpeg 5.1 to 9 differ.

#pragma once

#include <cstdint>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/frame.h>
}

namespace lade::media {

// From FFmpeg 6.1 on, key frames and interlacing are flags of a frame.
inline bool is_key_frame(const AVFrame& frame) noexcept {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 29, 100)
  return (frame.flags & AV_FRAME_FLAG_KEY) != 0;
#else
  return frame.key_frame != 0;
#endif
}

inline bool is_interlaced_frame(const AVFrame& frame) noexcept {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 29, 100)
  return (frame.flags & AV_FRAME_FLAG_INTERLACED) != 0;
#else
  return frame.interlaced_frame != 0;
#endif
}

// From FFmpeg 6.0 on, the duration is a field of its own.
inline std::int64_t duration_of(const AVFrame& frame) noexcept {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 2, 100)
  return frame.duration;
#else
  return frame.pkt_duration;
#endif
}

inline void set_duration(AVFrame& frame, std::int64_t duration) noexcept {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 2, 100)
  frame.duration = duration;
#else
  frame.pkt_duration = duration;
#endif
}

// The display matrix of a stream: nine numbers of 32 bits; null if there is none. From FFmpeg 6.1
// on, side data of a stream belong to its parameters.
inline const std::int32_t* display_matrix_of(const AVStream& stream) noexcept {
  constexpr std::size_t matrix_bytes = 9 * sizeof(std::int32_t);
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 100)
  const auto* found =
      av_packet_side_data_get(stream.codecpar->coded_side_data, stream.codecpar->nb_coded_side_data,
                              AV_PKT_DATA_DISPLAYMATRIX);
  const bool good = found != nullptr && found->size >= matrix_bytes;
  return good ? reinterpret_cast<const std::int32_t*>(found->data) : nullptr;
#else
  std::size_t bytes = 0;
  const auto* found = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, &bytes);
  return bytes >= matrix_bytes ? reinterpret_cast<const std::int32_t*>(found) : nullptr;
#endif
}

}  // namespace lade::media
