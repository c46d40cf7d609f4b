// Determines where decoding of a window of audio must start.

#pragma once

#include <lade/media/av/stream_info.hpp>

#include <cstdint>
#include <string_view>

namespace lade::media {

// Whether timestamps are rounded: their unit is not a sample or a fraction 1/n of one.
bool has_rounded_times(const stream_info& stream);

// Whether decoding after the lead-in produces the same samples as decoding from the beginning, bit
// for bit. Opus, and noise in AAC, are only close.
bool forgets(const AVCodecParameters& parameters) noexcept;

// Whether windows can only be decoded from the stream's first packet.
// - True for streams with several edits, in which FFmpeg's seeks end elsewhere.
// - For other audio, false only for pairs of codec and container that decode to the same samples
//   after a seek, as tests show.
// - False for other streams.
// `format`: FFmpeg's name of the container.
bool needs_beginning(const stream_info& stream, std::string_view format);

// The lead-in: how long before a window of audio decoding must start, in units of the stream's time
// base. 0 for other streams.
std::int64_t lead_in_of(const stream_info& stream);

}  // namespace lade::media
