// Audio files in memory, and packets of others: their samples in a sink.

#pragma once

#include "sample_sink.hpp"

#include <lade/buffer.hpp>
#include <lade/io/wav_header.hpp>
#include <lade/media/av/audio.hpp>
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

// The same as a window of a stream.
time_window audio_window_of(const audio_options& options, const stream_info& stream, random draw,
                            std::string_view doing);

// The header of a WAV file that lade converts itself; empty for all other files. Throws
// error(invalid_data) for a damaged one.
std::optional<io::wav_info> find_wav(std::span<const std::byte> file, std::string_view name);

// Decode into `to`: a file, and the packets of a window. Check `stop` between frames. Return how
// many packets and frames were damaged.
std::uint64_t decode_samples(const buffer& file, std::string_view name,
                             const audio_options& options, random draw, sample_sink& to,
                             const std::stop_token& stop);
std::uint64_t decode_samples(const packets& from, const audio_options& options, sample_sink& to,
                             const std::stop_token& stop);

}  // namespace lade::media
