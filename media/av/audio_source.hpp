// Decodes audio files in memory, and packets of other files, into a sink.

#pragma once

#include "sample_sink.hpp"
#include "window_cutter.hpp"

#include <lade/buffer.hpp>
#include <lade/media/av/audio.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/stream_info.hpp>
#include <lade/random.hpp>

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string_view>

namespace lade::media {

// Whether files of a container state their exact number of samples. Ogg and MP3 do not: their
// number includes the encoder's padding.
bool states_samples(std::string_view format) noexcept;

// The time of the first sample that the file states; empty if it states none. Always empty for
// Vorbis and Opus: their first packet's samples may not be part of the audio.
std::optional<audio_origin> stated_first_sample(const stream_info& stream);

// Finds the time of the first sample by decoding the first packets. If timestamps are rounded, it
// uses the second frame: FFmpeg rounds the first one's time twice. Some versions of FFmpeg drop the
// encoder's padding, others include it in the first frame.
class first_sample_finder {
 public:
  first_sample_finder(const stream_info& stream, damage_policy damage)
      : by_(stream, {.damage = damage}) {}

  // Decodes a packet. Returns whether the first sample is known.
  bool send(const packet& next);

  // Empty if no samples have been decoded.
  const std::optional<audio_origin>& found() const noexcept { return found_; }

 private:
  decoder by_;
  std::optional<audio_origin> found_;
  std::int64_t samples_ = 0;
};

// Decode a file, or the packets of a window, into `to`.
// - `window`: in seconds from `origin`. If `origin` is empty, from the first sample; then packets
//   must start with it.
// - `stop`: checked between frames
// Return the number of damaged packets and frames.
std::uint64_t decode_samples(const buffer& file, std::string_view name,
                             const audio_options& options, random draw, sample_sink& to,
                             const std::stop_token& stop);
std::uint64_t decode_samples(const packets& from, const time_window& window,
                             std::optional<audio_origin> origin, const audio_options& options,
                             sample_sink& to, const std::stop_token& stop);

}  // namespace lade::media
