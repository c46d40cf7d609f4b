// Conversion of decoded audio: sample rate, channels, sample format and layout (libswresample).

#pragma once

#include <lade/media/av/frame.hpp>
#include <lade/tensor.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace lade::media {

// The dimensions of audio in a tensor.
enum class audio_layout : std::uint8_t {
  planar,       // [channels, samples]
  interleaved,  // [samples, channels]
};

struct resample_options {
  int sample_rate = 0;  // samples per second of each channel, up to 768,000; 0: the first frame's

  // The channels of the result, 1 to 64; 0: the first frame's. Fewer or more are mixed by FFmpeg's
  // matrix: mono is the mean of stereo. `channel_layout`: FFmpeg's name of the speakers, "5.1", if
  // they are not the usual ones for so many channels.
  int channels = 0;
  std::string_view channel_layout = {};

  audio_layout layout = audio_layout::planar;
  element_type type = element_type::f32;  // or f64, u8, i16, i32
};

// Converts the frames of one stream after another. The samples are those of the ffmpeg program with
// `-ar`, `-ac` and `-c:a pcm_f32le`, `pcm_f64le`, `pcm_u8`, `pcm_s16le` or `pcm_s32le`, bit for
// bit.
//
// Frames of another format in mid-stream end the conversion of those before, whose last samples
// are delivered, and begin a new one to the same result.
//
// One thread at a time. Contexts of libswresample are reused: a resampler takes an idle one for
// equal formats, and leaves it for the next. Memory of tensors is that of the calling stage.
//
// Throws error(invalid_argument) for options that cannot work, error(unsupported) for channels that
// FFmpeg cannot mix, error(limit_exceeded) if one rate is more than 256 times the other, and
// error(stopped) if the stage that calls is being stopped.
class resampler {
 public:
  explicit resampler(const resample_options& options = {});
  resampler(resampler&&) noexcept;
  resampler& operator=(resampler&&) noexcept;
  ~resampler();

  // The samples that the frame completes; there may be none of them.
  tensor convert(const frame& next);

  // The last samples of the stream. The next convert() begins a new one.
  tensor finish();

  // How many times the format of frames changed in mid-stream.
  std::uint64_t format_changes() const noexcept;

 private:
  class state;
  std::unique_ptr<state> state_;
};

// Converts all frames of a stream at once.
tensor resample(std::span<const frame> frames, const resample_options& options = {});

}  // namespace lade::media
