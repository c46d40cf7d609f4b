// Audio for an encoder, from frames and tensors, in pieces of the length that it takes.

#pragma once

#include "sample_converter.hpp"

#include <lade/tensor.hpp>

#include <memory>
#include <string_view>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

// The largest magnitude of floats that an encoder takes. libmp3lame ends the process for larger
// ones (16,384 at 32 kbit/s), and for those that are not finite.
float largest_sample(AVCodecID codec) noexcept;

// Throws error(invalid_argument) naming the first sample of floats that is beyond `most` or not
// finite; `doing` is the text of the error.
void check_samples(const tensor& samples, float most, std::string_view doing);
void check_samples(const AVFrame& samples, float most, std::string_view doing);

// Converted samples that wait for an encoder. One thread at a time.
class sample_source {
 public:
  // For an open encoder, which must outlive it.
  explicit sample_source(AVCodecContext& encoder);

  // Appends samples [first, first + count) of a frame, which has the encoder's rate and channels.
  void append(const AVFrame& from, std::int64_t first, int count);

  // Appends samples of f32 or i16 [samples, channels].
  void append(const tensor& from, std::int64_t first, int count);

  // The most samples to append before the next take().
  int piece() const noexcept { return piece_; }

  // The next samples for the encoder: as many as it takes at once, or if `last`, those that are
  // left; null if there are not so many. The frame has no time.
  av_frame take(bool last);

 private:
  template <class Sample>
  void append_samples(const tensor& from, std::int64_t first, int count, AVSampleFormat format);
  void append_rows(const std::uint8_t** planes, AVSampleFormat format, int count);

  AVCodecContext& encoder_;
  int piece_;
  sample_converter converter_;
  av_frame converted_;    // `piece_` samples
  av_frame interleaved_;  // of tensors whose samples are not
  std::unique_ptr<AVAudioFifo, swr_deleter> waiting_;
};

}  // namespace lade::media
