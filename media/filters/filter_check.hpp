// Checks the filters of a graph's text before FFmpeg creates any of them.

#pragma once

#include <string_view>

namespace lade::media {

// Throws
// - error(unsupported) for a filter that could open files, libraries or sockets: it has a text
//   option that is not known to be harmless
// - error(invalid_argument) for a filter that FFmpeg does not have, or whose options it refuses
void check_filters(std::string_view text);

}  // namespace lade::media
