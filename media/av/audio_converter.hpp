// Converts audio samples of any format into a sink.

#pragma once

#include "sample_sink.hpp"
#include "swr_pool.hpp"

#include <lade/media/av/frame.hpp>
#include <lade/media/av/resampler.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace lade::media {

inline constexpr int most_sample_rate = 768'000;  // the limit of options

// The channel layout of options; without channels if they have none. Throws error(invalid_argument)
// for invalid options.
channel_layout requested_channels(int channels, std::string_view layout, std::string_view doing);

// Whether the converter writes elements of this type: u8, i16, i32, f32, f64.
bool is_sample_type(element_type type) noexcept;

// Converts one stream after another. One thread at a time.
class audio_converter {
 public:
  // `rate`: of the result; 0 for that of the first samples. `channels`: the result of
  // requested_channels().
  audio_converter(int rate, channel_layout channels) noexcept
      : rate_(rate), channels_(std::move(channels)) {}

  // Converts as many of `count` samples as fit into the sink. `planes`: one address per channel, or
  // one for interleaved samples.
  void convert(const sample_layout& from, const std::uint8_t* const* planes, int count,
               sample_sink& to);
  void convert(const AVFrame& from, sample_sink& to);

  // Converts the samples that the resampler holds back, and ends the stream.
  void finish(sample_sink& to);

  std::uint64_t format_changes() const noexcept { return format_changes_; }

 private:
  void begin(const sample_layout& from, sample_sink& to);
  void drain(sample_sink& to);

  int rate_;
  channel_layout channels_;
  sample_layout from_;
  sample_layout to_;  // of the current stream
  std::optional<pooled_swr> swr_;
  std::uint64_t format_changes_ = 0;
};

}  // namespace lade::media
