// Conversion of audio between sample formats.

#pragma once

#include <lade/media/av.hpp>

#include <cstdint>
#include <memory>

extern "C" {
#include <libavutil/channel_layout.h>
#include <libavutil/samplefmt.h>
}

struct AVAudioFifo;
struct SwrContext;

namespace lade::media {

struct swr_deleter {
  void operator()(SwrContext* freed) const noexcept;
  void operator()(AVAudioFifo* freed) const noexcept;
};

// Converts samples to one format, without resampling or remixing. Keeps swresample's context while
// the source format does not change. One thread at a time.
class sample_converter {
 public:
  // `layout` must outlive the converter.
  sample_converter(AVChannelLayout& layout, AVSampleFormat to, int sample_rate) noexcept
      : layout_(layout), to_(to), sample_rate_(sample_rate) {}

  // Converts `samples` samples per channel. The planes of `into` must have capacity for them.
  void convert(const std::uint8_t** planes, AVSampleFormat from, int samples, std::uint8_t** into);

 private:
  void make_context(AVSampleFormat from);

  AVChannelLayout& layout_;
  AVSampleFormat to_;
  int sample_rate_;
  AVSampleFormat from_ = AV_SAMPLE_FMT_NONE;  // the context's source
  std::unique_ptr<SwrContext, swr_deleter> context_;
};

}  // namespace lade::media
