// Selects the samples of audio to decode.

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

// Whether the options crop audio to a fixed length.
bool crops(const audio_options& options) noexcept;

// Samples [first, end) of a file. Without `end`, up to the end of the file.
struct sample_range {
  std::int64_t first = 0;
  std::optional<std::int64_t> end = {};
};

// Returns the samples of a file to decode. `rate`: of the file. `total`: the number of samples that
// the file states. If the result is cropped, the range is slightly longer, so that the resampler's
// look-ahead stays inside. Throws error(unsupported) if a random window needs `total` and it is
// unknown, with `doing` as the operation.
sample_range range_of(const audio_options& options, int rate, std::optional<std::int64_t> total,
                      random draw, std::string_view doing);

// The sample rate of a stream. Throws error(unsupported) if the stream does not state it.
int require_rate(const stream_info& stream, std::string_view doing);

// Converts a range to a window, in seconds from the first sample.
time_window window_of(const sample_range& range, int rate);

// The window of a stream to decode, in seconds from its first sample.
time_window audio_window_of(const audio_options& options, const stream_info& stream, random draw,
                            std::string_view doing);

// Throws error(invalid_argument) for a stream of another kind.
void require_audio(const stream_info& stream, std::string_view doing);

}  // namespace lade::media
