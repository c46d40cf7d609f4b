// Options of FFmpeg's objects in text form.

#pragma once

#include <lade/media/av.hpp>

#include <string_view>

namespace lade::media {

// Parses options "key=value:key=value". Throws error(invalid_argument) for other text, with `doing`
// as the operation.
av_dictionary parse_av_options(std::string_view text, std::string_view doing);

// Throws error(invalid_argument) naming the first option in `left`: FFmpeg leaves unknown options
// in the dictionary.
void refuse_unknown_options(const AVDictionary* left, std::string_view doing);

}  // namespace lade::media
