// Converts frames and tensors to audio frames for an encoder.

#pragma once

#include "sample_converter.hpp"

#include <lade/tensor.hpp>

#include <memory>
#include <string_view>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

// The largest magnitude of floats that an encoder accepts. libmp3lame ends the process for larger
// ones (16,384 at 32 kbit/s), and for values that are not finite.
float largest_sample(AVCodecID codec) noexcept;

// Throw error(invalid_argument) naming the first float sample that is above `most` or not finite,
// with `doing` as the operation.
void check_samples(const tensor& samples, float most, std::string_view doing);
void check_samples(const AVFrame& samples, float most, std::string_view doing);

// A queue of converted samples for an encoder. One thread at a time.
class sample_source {
 public:
  // `encoder`: open; it must outlive the source.
  explicit sample_source(AVCodecContext& encoder);

  // Appends samples [first, first + count) of a frame, which has the encoder's rate and channels.
  void append(const AVFrame& from, std::int64_t first, int count);

  // Appends samples of a tensor f32 or i16 [samples, channels].
  void append(const tensor& from, std::int64_t first, int count);

  // The most samples to append before the next take().
  int piece() const noexcept { return piece_; }

  // Returns the next samples: as many as the encoder takes at once, or if `last`, the remaining
  // ones; null if there are too few. The frame has no time.
  av_frame take(bool last);

 private:
  template <class Sample>
  void append_samples(const tensor& from, std::int64_t first, int count, AVSampleFormat format);
  void append_rows(const std::uint8_t** planes, AVSampleFormat format, int count);

  AVCodecContext& encoder_;
  int piece_;
  sample_converter converter_;
  av_frame converted_;    // `piece_` samples
  av_frame interleaved_;  // for tensors whose samples are not interleaved
  std::unique_ptr<AVAudioFifo, swr_deleter> waiting_;
};

}  // namespace lade::media
