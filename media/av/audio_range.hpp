// Which samples of audio are decoded.

#pragma once

#include <lade/media/av/audio.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/rational.hpp>
#include <lade/media/av/stream_info.hpp>
#include <lade/random.hpp>

#include <cstdint>
#include <optional>
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

// Throws error(unsupported) for a stream that does not state its sample rate.
int require_rate(const stream_info& stream, std::string_view doing);

// The same as a window, in seconds from the first sample on.
time_window window_of(const sample_range& range, int rate);

// What of a stream is to be decoded, in seconds from its first sample on.
time_window audio_window_of(const audio_options& options, const stream_info& stream, random draw,
                            std::string_view doing);

// Throws error(invalid_argument) for a stream of another kind.
void require_audio(const stream_info& stream, std::string_view doing);

}  // namespace lade::media
