// Which filters a text has, before FFmpeg makes any of them.

#pragma once

#include <string_view>

namespace lade::media {

// Throws error(unsupported) for a filter that could open files, libraries or sockets: one with an
// option that takes a text whose meaning is not known to be harmless; and
// error(invalid_argument) for a filter that FFmpeg does not have, or whose options it refuses.
void check_filters(std::string_view text);

}  // namespace lade::media
