// Frames: decoded pictures and pieces of audio.

#pragma once

#include <lade/media/av.hpp>
#include <lade/media/av/rational.hpp>
#include <lade/media/av/stream_info.hpp>
#include <lade/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace lade::media {

// The coding of the colours of a video frame, by FFmpeg's names: "bt709", "smpte170m", "unknown".
struct frame_colour {
  std::string_view matrix = {};
  std::string_view primaries = {};
  std::string_view transfer = {};
  std::string_view range = {};  // "tv" (limited), "pc" (full), "unknown"
};

// One picture of a video, or some samples of each audio channel.
//
// Immutable. Copies share the memory, which may belong to a decoder's pool: clone() frames that are
// kept for long. Any thread.
class frame {
 public:
  // Owns FFmpeg's frame. `stream` describes it.
  frame(av_frame from, stream_info stream);

  stream_kind kind() const noexcept;  // video or audio
  const stream_info& stream() const noexcept { return stream_; }

  // Presentation time and duration. `time` is empty if the stream states no timestamp; `duration`
  // is 0 if it states none. Throws error(limit_exceeded), naming the stream, if they do not fit
  // into a rational.
  std::optional<rational> time() const;
  rational duration() const;

  // The same in units of time_base().
  std::optional<std::int64_t> pts() const noexcept;
  rational time_base() const noexcept { return stream_.time_base(); }

  // Video.
  int width() const noexcept;  // of the stored picture, in pixels
  int height() const noexcept;
  std::string_view pixel_format() const noexcept;  // FFmpeg's name: "yuv420p", "nv12"
  bool is_key() const noexcept;
  char picture_type() const noexcept;  // 'I', 'P', 'B', '?'
  bool is_interlaced() const noexcept;
  frame_colour colour() const noexcept;
  rational sample_aspect() const;  // width / height of a pixel; 1 if unknown

  // Audio.
  int sample_rate() const noexcept;  // samples per second of each channel
  int channels() const noexcept;
  int samples() const noexcept;                     // of each channel
  std::string_view sample_format() const noexcept;  // FFmpeg's name: "fltp", "s16"

  // The memory of a frame: planes, which share it.
  //
  // - Planes of video are [height, width], or [height, width, n] if n components are interleaved,
  //   as the chroma of nv12 and the pixels of rgb24. u8; u16 for components of more than 8 bits;
  //   f32 for floats.
  // - Planes of audio are [samples] if each channel has its own plane, otherwise one [samples,
  //   channels]: u8, i16, i32, i64, f32 or f64.
  //
  // Throws error(invalid_argument) for a plane that the frame does not have, and error(unsupported)
  // if components are not at whole bytes.
  int planes() const noexcept;
  tensor plane(int i) const;

  // Returns the samples [first, first + count) of audio, with the time of the first. The result
  // shares the memory. Throws error(invalid_argument) if the range exceeds the frame or the frame
  // is video, and error(limit_exceeded) as time() does.
  frame slice(int first, int count) const;

  frame clone() const;  // copies the memory

  // FFmpeg's frame, owned by this object and its copies.
  const AVFrame& get() const noexcept { return *frame_; }

 private:
  std::shared_ptr<const AVFrame> frame_;
  stream_info stream_;
};

}  // namespace lade::media
