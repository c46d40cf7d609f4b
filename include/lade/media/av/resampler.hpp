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
  int sample_rate = 0;  // samples per second of each channel, up to 768,000; 0: as the first frame

  // Number of channels of the result, 1 to 64; 0: as the first frame. Channels are mixed by
  // FFmpeg's matrix: mono is the mean of stereo. `channel_layout`: FFmpeg's name of the speakers,
  // "5.1", if they are not the default for that number of channels.
  int channels = 0;
  std::string_view channel_layout = {};

  audio_layout layout = audio_layout::planar;
  element_type type = element_type::f32;  // or f64, u8, i16, i32
};

// Converts the frames of streams, one stream after another. The samples are those of the ffmpeg
// program with `-ar`, `-ac` and `-c:a pcm_f32le`, `pcm_f64le`, `pcm_u8`, `pcm_s16le` or
// `pcm_s32le`, bit for bit.
//
// If the format of frames changes within a stream, the conversion of the previous frames ends and
// delivers their last samples. A new conversion to the same result begins.
//
// One thread at a time. Contexts of libswresample are reused: a resampler takes an idle context for
// equal formats, and returns it when done. Tensors are in memory of the calling stage.
//
// Throws error(invalid_argument) for invalid options, error(unsupported) for channels that FFmpeg
// cannot mix, and error(limit_exceeded) if one rate is more than 256 times the other. Throws
// error(stopped) if the calling stage is cancelled.
class resampler {
 public:
  explicit resampler(const resample_options& options = {});
  resampler(resampler&&) noexcept;
  resampler& operator=(resampler&&) noexcept;
  ~resampler();

  // Returns the samples that the frame completes, possibly none.
  tensor convert(const frame& next);

  // Returns the last samples of the stream. The next convert() begins a new stream.
  tensor finish();

  // How many times the format of frames changed within a stream.
  std::uint64_t format_changes() const noexcept;

 private:
  class state;
  std::unique_ptr<state> state_;
};

// Converts all frames of a stream at once.
tensor resample(std::span<const frame> frames, const resample_options& options = {});

}  // namespace lade::media
