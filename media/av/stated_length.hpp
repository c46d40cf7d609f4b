// Whether a media file has its end, by its own headers, and whether it has several.

#pragma once

#include "byte_input.hpp"

#include <string>

namespace lade::media {

// What is missing of a file: that it is shorter than the headers of an MP4, QuickTime, Matroska,
// WebM, AVI, WAV or CAF file state, or does not end as an Ogg or FLAC file must. Empty if nothing
// is, and for files of other containers, and those that were written without knowing their length.
// Of a file of boxes, the first 16 boxes are looked at if it is not in memory, for each may cost a
// request. Up to 7 bytes behind the last box, which are too few for another, are ignored.
std::string missing_end_of(byte_input& file);

// Whether a CAF file says that its samples go on to its end, wherever that is.
bool has_unknown_size(byte_input& file);

// Whether a stream of an Ogg file does not begin at its start: parts have been joined, or bytes are
// no page. If the file is not in memory, only the stream of the last page is looked at.
bool is_chained_ogg(byte_input& file);

}  // namespace lade::media
