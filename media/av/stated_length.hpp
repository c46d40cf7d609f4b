// Detects truncated and joined media files by their own headers.

#pragma once

#include "byte_input.hpp"

#include <string>

namespace lade::media {

// Describes the missing end of a file. Empty if the file is complete, and for files of other
// containers or of unknown length.
// - MP4, QuickTime, Matroska, WebM, AVI, WAV and CAF files are shorter than their headers state.
// - Ogg and FLAC files do not end as their formats require.
// If a file of boxes is not in memory, only its first 16 boxes are examined: each may cost a
// request. Up to 7 bytes after the last box are ignored: they are too few for another box.
std::string missing_end_of(byte_input& file);

// Whether the samples of a CAF file extend to its end, so that their number is not stated.
bool has_unknown_size(byte_input& file);

// Whether a stream of an Ogg file starts after the beginning: parts have been joined, or bytes are
// not a page. If the file is not in memory, only the stream of the last page is examined.
bool is_chained_ogg(byte_input& file);

}  // namespace lade::media
