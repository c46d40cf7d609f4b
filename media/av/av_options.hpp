// Options of FFmpeg's objects, given as text.

#pragma once

#include <lade/media/av.hpp>

#include <string_view>

namespace lade::media {

// The options in "key=value:key=value". Throws error(invalid_argument) for other text; `doing` is
// the text of the error.
av_dictionary parse_av_options(std::string_view text, std::string_view doing);

// Throws error(invalid_argument) naming the first option in `left`: what FFmpeg leaves in a
// dictionary is what it does not know.
void refuse_unknown_options(const AVDictionary* left, std::string_view doing);

}  // namespace lade::media
