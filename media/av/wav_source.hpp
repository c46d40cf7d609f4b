// WAV files that lade converts itself: their samples in a sink.

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
  io::wav_info info;    // without the frames that are missing
  bool is_cut = false;  // whether it ends before its header says
};

// The header of a WAV file that lade converts itself; empty for all other files. Throws
// error(invalid_data) for a damaged one, but for a missing end that is tolerated.
std::optional<wav_file> find_wav(std::span<const std::byte> file, std::string_view name,
                                 damage_policy damage);

// Decodes into `to`. Checks `stop` between blocks. Returns how much damage was tolerated: 1 if the
// file is cut.
std::uint64_t decode_wav(const wav_file& wav, std::span<const std::byte> file,
                         const audio_options& options, random draw, sample_sink& to,
                         const std::stop_token& stop);

}  // namespace lade::media
