// Audio files in memory, and packets of others: their samples in a sink.

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

// Whether files of a container state how many samples they have. What Ogg and MP3 state includes
// the encoder's padding.
bool states_samples(std::string_view format) noexcept;

// The first sample, as the file states its time; empty if it does not. Of Vorbis and Opus it may be
// that of a packet whose samples are not part of the audio.
std::optional<audio_origin> stated_first_sample(const stream_info& stream);

// Finds the first sample by decoding the first packets. If timestamps are rounded, that of the
// second frame counts: FFmpeg rounds that of the first one twice. Some versions of it drop the
// encoder's padding, others have it in the first frame.
class first_sample_finder {
 public:
  first_sample_finder(const stream_info& stream, damage_policy damage)
      : by_(stream, {.damage = damage}) {}

  // Returns whether it is known.
  bool send(const packet& next);

  // Empty if no samples have been decoded.
  const std::optional<audio_origin>& found() const noexcept { return found_; }

 private:
  decoder by_;
  std::optional<audio_origin> found_;
  std::int64_t samples_ = 0;
};

// Decode into `to`: a file, and the packets that a window needs, which is in seconds from `origin`
// on; from the first sample on if `origin` is empty, where packets begin with it. Check `stop`
// between frames. Return how many packets and frames were damaged.
std::uint64_t decode_samples(const buffer& file, std::string_view name,
                             const audio_options& options, random draw, sample_sink& to,
                             const std::stop_token& stop);
std::uint64_t decode_samples(const packets& from, const time_window& window,
                             std::optional<audio_origin> origin, const audio_options& options,
                             sample_sink& to, const std::stop_token& stop);

}  // namespace lade::media
