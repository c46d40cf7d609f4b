// Whether a media file has its end, by its own headers.

#pragma once

#include "byte_input.hpp"

#include <string>

namespace lade::media {

// What is missing of a file: that it is shorter than the headers of an MP4, QuickTime, Matroska,
// WebM, AVI or WAV file state, or does not end as an Ogg or FLAC file must. Empty if nothing is,
// and for files of other containers, and those that were written without knowing their length.
std::string missing_end_of(byte_input& file);

}  // namespace lade::media
