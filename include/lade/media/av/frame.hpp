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

// How the colours of a video frame are coded, by FFmpeg's names: "bt709", "smpte170m", "unknown".
struct frame_colour {
  std::string_view matrix = {};
  std::string_view primaries = {};
  std::string_view transfer = {};
  std::string_view range = {};  // "tv" (limited), "pc" (full), "unknown"
};

// One picture of a video, or some samples of each audio channel.
//
// Immutable. Copies share the memory, which may be a decoder's: a program that keeps frames for
// long should clone() them. Any thread.
class frame {
 public:
  // Takes over FFmpeg's frame, which `stream` describes.
  frame(av_frame from, stream_info stream);

  stream_kind kind() const noexcept;  // video or audio
  const stream_info& stream() const noexcept { return stream_; }

  // When the frame is shown, and for how long. Empty if the stream states no timestamp; 0 if it
  // states no duration. Throws error(limit_exceeded), naming the stream, if they do not fit into a
  // rational.
  std::optional<rational> time() const;
  rational duration() const;

  // The same in units of time_base().
  std::optional<std::int64_t> pts() const noexcept;
  rational time_base() const noexcept { return stream_.time_base(); }

  // Video.
  int width() const noexcept;  // in pixels, of the stored picture
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

  // The memory of a frame: planes that share it.
  //
  // - Planes of video are [height, width], or [height, width, n] where n components are stored side
  //   by side, as the chroma of nv12 and the pixels of rgb24. u8, or u16 for components of more
  //   than 8 bits, f32 for those of floats.
  // - Planes of audio are [samples] if each channel has its own, else one [samples, channels]: u8,
  //   i16, i32, i64, f32 or f64.
  //
  // Throws error(invalid_argument) for a plane that the frame does not have, error(unsupported) if
  // components do not lie at whole bytes.
  int planes() const noexcept;
  tensor plane(int i) const;

  // Samples [first, first + count) of audio, sharing the memory, with the time of the first. Throws
  // error(invalid_argument) if they are not all there, or the frame is video, error(limit_exceeded)
  // as time() does.
  frame slice(int first, int count) const;

  frame clone() const;  // a frame with its own copy of the memory

  // FFmpeg's frame, owned by this object and its copies.
  const AVFrame& get() const noexcept { return *frame_; }

 private:
  std::shared_ptr<const AVFrame> frame_;
  stream_info stream_;
};

}  // namespace lade::media
