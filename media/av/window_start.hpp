// Where decoding a window of audio begins.

#pragma once

#include <lade/media/av/stream_info.hpp>

#include <cstdint>
#include <string_view>

namespace lade::media {

// Whether timestamps are not in units of a sample, or of a part of it.
bool has_rounded_times(const stream_info& stream);

// Whether the frames of a codec depend on no more than the lead-in before them, bit for bit, but
// for Opus and for noise of AAC.
bool forgets(const AVCodecParameters& parameters) noexcept;

// Whether windows of a stream are found only by decoding from its first packet on. True for streams
// with several edits, in which FFmpeg's seeks end elsewhere; for others of audio, false for the
// pairs of codec and container of which tests show that decoding from a seek has the same samples.
// `format`: FFmpeg's name of the container.
bool needs_beginning(const stream_info& stream, std::string_view format);

// How long before a window of audio decoding must begin, in units of the stream's time base; 0 for
// other streams.
std::int64_t lead_in_of(const stream_info& stream);

}  // namespace lade::media
