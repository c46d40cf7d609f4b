// How long a media file is by its own headers.

#pragma once

#include "byte_input.hpp"

#include <cstdint>
#include <optional>

namespace lade::media {

// The length that the headers of an MP4, QuickTime, Matroska, WebM, AVI or WAV file state; empty
// for files of other containers, and those that were written without knowing it.
std::optional<std::uint64_t> stated_file_bytes(byte_input& file);

}  // namespace lade::media
