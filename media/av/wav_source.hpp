// Decodes WAV files into a sink, without FFmpeg's demuxer.

#pragma once

#include "sample_sink.hpp"

#include <lade/io/wav_header.hpp>
#include <lade/media/av/audio.hpp>
#include <lade/random.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>

namespace lade::media {

struct wav_file {
  io::wav_info info;    // without missing frames
  bool is_cut = false;  // the file ends before its header states
};

// The header of a WAV file that lade decodes itself; empty for other files. Throws
// error(invalid_data) for a damaged file, unless only its end is missing and that is tolerated.
std::optional<wav_file> find_wav(std::span<const std::byte> file, std::string_view name,
                                 damage_policy damage);

// Decodes into `to`. Checks `stop` between blocks. Returns the damage count: 1 if the file is cut.
std::uint64_t decode_wav(const wav_file& wav, std::span<const std::byte> file,
                         const audio_options& options, random draw, sample_sink& to,
                         const std::stop_token& stop);

}  // namespace lade::media
