// Streams in the files that the module writes.
//
// A stream is: the file's name; index (i32); the codec's name, which stands for its number, as
// the names of formats and channel layouts do; the other codec parameters; the time base; start
// time, duration and frame rate (fractions, each behind a byte that says whether there is one); the
// sample aspect; the number of frames (i64, -1 if unknown); degrees (i32) and mirroring (u8) of the
// orientation; the pairs of the metadata, behind their number (u64).
//
// Texts and extradata are behind their length (u64). A fraction is two i64.

#pragma once

#include "stored_values.hpp"

#include <lade/media/av/stream_info.hpp>

namespace lade::media {

void store_stream(stored_writer& to, const stream_info& stream);

// Throws error(invalid_data) for parameters that no stream has, error(unsupported) for a codec or a
// format that this FFmpeg does not know.
stream_info load_stream(stored_reader& from);

}  // namespace lade::media
