// Audio files in memory, and packets of others: their samples in a sink.

#pragma once

#include "sample_sink.hpp"
#include "window_cutter.hpp"

#include <lade/buffer.hpp>
#include <lade/io/wav_header.hpp>
#include <lade/media/av/audio.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/rational.hpp>
#include <lade/media/av/stream_info.hpp>
#include <lade/random.hpp>

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string_view>

namespace lade::media {

// Whether longer audio is cropped to a fixed length.
bool crops(const audio_options& options) noexcept;

// Samples [first, end) of a file; to its end if there is no `end`.
struct sample_range {
  std::int64_t first = 0;
  std::optional<std::int64_t> end = {};
};

// What of a file of that sample rate is to be decoded. If the result is cropped, this is a little
// more than becomes part of it, so that resampling does not notice the end. `total`: how many
// samples the file states. Throws error(unsupported) if a random window needs it and it is unknown;
// `doing` is the text of the error.
sample_range range_of(const audio_options& options, int rate, std::optional<std::int64_t> total,
                      random draw, std::string_view doing);

// The same as a window of a stream, in seconds from its first sample on.
time_window audio_window_of(const audio_options& options, const stream_info& stream, random draw,
                            std::string_view doing);

// Throws error(invalid_argument) for a stream of another kind.
void require_audio(const stream_info& stream, std::string_view doing);

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

struct wav_file {
  io::wav_info info;    // without the frames that are missing
  bool is_cut = false;  // whether it ends before its header says
};

// The header of a WAV file that lade converts itself; empty for all other files. Throws
// error(invalid_data) for a damaged one, but for a missing end that is tolerated.
std::optional<wav_file> find_wav(std::span<const std::byte> file, std::string_view name,
                                 damage_policy damage);

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
