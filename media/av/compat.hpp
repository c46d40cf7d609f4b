// Differences between FFmpeg 5.1 to 9.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

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

// Allows the decoder's threads to call get_buffer2, which is the only mode from FFmpeg 6.0 on.
inline void allow_calls_of_threads([[maybe_unused]] AVCodecContext& decoder) noexcept {
#if LIBAVCODEC_VERSION_MAJOR < 60
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  decoder.thread_safe_callbacks = 1;
#pragma GCC diagnostic pop
#endif
}

// FFmpeg 6.0 renamed the duration of a frame.
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

// Appends parameters that only newer decoders use: from FFmpeg 6.1 on, the frame rate, and side
// data, which frames inherit; from 8.1 on, the alpha mode.
inline void append_newer_parameters([[maybe_unused]] std::string& key,
                                    [[maybe_unused]] const AVCodecParameters& parameters) {
  [[maybe_unused]] const auto append = [&](const auto* values, std::size_t count) {
    key.append(reinterpret_cast<const char*>(values), count * sizeof *values);
  };
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 100)
  append(&parameters.framerate, 1);
  append(&parameters.nb_coded_side_data, 1);
  for (int i = 0; i < parameters.nb_coded_side_data; ++i) {
    const auto& each = parameters.coded_side_data[i];
    append(&each.type, 1);
    append(&each.size, 1);
    append(each.data, each.size);
  }
#endif
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(62, 15, 100)
  append(&parameters.alpha_mode, 1);
#endif
}

// The display matrix of a stream, nine 32-bit numbers; null if there is none. From FFmpeg 6.1 on, a
// stream's side data are part of its parameters.
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

// Sets the display matrix of an output stream.
inline int set_display_matrix(AVStream& stream, const std::int32_t* matrix) noexcept {
  constexpr std::size_t matrix_bytes = 9 * sizeof(std::int32_t);
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 100)
  auto& parameters = *stream.codecpar;
  const auto* made =
      av_packet_side_data_new(&parameters.coded_side_data, &parameters.nb_coded_side_data,
                              AV_PKT_DATA_DISPLAYMATRIX, matrix_bytes, 0);
  auto* into = made == nullptr ? nullptr : made->data;
#else
  auto* into = av_stream_new_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, matrix_bytes);
#endif
  if (into == nullptr) return AVERROR(ENOMEM);
  std::memcpy(into, matrix, matrix_bytes);
  return 0;
}

inline bool is_of_mov_family(const AVOutputFormat& format) noexcept {
  for (const std::string_view each : {"mp4", "mov", "3gp", "3g2", "ipod", "psp", "ismv", "f4v"})
    if (format.name == each) return true;
  return false;
}

// Whether a muxer writes display matrices. Matroska's does from FFmpeg 7.0 on.
inline bool states_orientation(const AVOutputFormat& format) noexcept {
  if (is_of_mov_family(format)) return true;
#if LIBAVFORMAT_VERSION_MAJOR >= 61
  const std::string_view name = format.name;
  return name == "matroska" || name == "webm";
#else
  return false;
#endif
}

// From FFmpeg 7.0 on, write callbacks receive const bytes.
#if LIBAVFORMAT_VERSION_MAJOR >= 61
using written_byte = const std::uint8_t;
#else
using written_byte = std::uint8_t;
#endif

// The formats and rates that an encoder supports; null if FFmpeg does not list them. FFmpeg 7.1
// replaced the fields by a function.
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(61, 13, 100)
template <class T>
const T* supported_by(const AVCodec& encoder, AVCodecConfig what) noexcept {
  const void* list = nullptr;
  avcodec_get_supported_config(nullptr, &encoder, what, 0, &list, nullptr);
  return static_cast<const T*>(list);
}
inline const AVPixelFormat* pixel_formats_of(const AVCodec& encoder) noexcept {
  return supported_by<AVPixelFormat>(encoder, AV_CODEC_CONFIG_PIX_FORMAT);
}
inline const AVSampleFormat* sample_formats_of(const AVCodec& encoder) noexcept {
  return supported_by<AVSampleFormat>(encoder, AV_CODEC_CONFIG_SAMPLE_FORMAT);
}
inline const int* sample_rates_of(const AVCodec& encoder) noexcept {
  return supported_by<int>(encoder, AV_CODEC_CONFIG_SAMPLE_RATE);
}
#else
inline const AVPixelFormat* pixel_formats_of(const AVCodec& encoder) noexcept {
  return encoder.pix_fmts;
}
inline const AVSampleFormat* sample_formats_of(const AVCodec& encoder) noexcept {
  return encoder.sample_fmts;
}
inline const int* sample_rates_of(const AVCodec& encoder) noexcept {
  return encoder.supported_samplerates;
}
#endif

}  // namespace lade::media
