// The format of a stream in the module's files.
//
// A stream is:
// - the file's name; index (i32)
// - the codec's name instead of its number, likewise the names of formats and channel layouts; the
//   other codec parameters
// - the time base; start time, duration and frame rate (optional fractions); the sample aspect
// - the number of frames (i64, -1 if unknown)
// - degrees (i32) and mirroring (u8) of the orientation
// - the number of metadata entries (u64) and their pairs
//
// Strings and extradata follow their length (u64). A fraction is two i64. An optional fraction
// follows a byte, which is 1 if it is present.

#pragma once

#include "stored_values.hpp"

#include <lade/media/av/stream_info.hpp>

namespace lade::media {

void store_stream(stored_writer& to, const stream_info& stream);

// Throws error(invalid_data) for invalid parameters, error(unsupported) for a codec or a format
// that this FFmpeg lacks.
stream_info load_stream(stored_reader& from);

}  // namespace lade::media
