// divide_list(): the words of an option that is a list.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lade::support {

// The words of a comma-separated list, without surrounding blanks: "x, y" has "x" and "y". Empty
// words are left out.
std::vector<std::string> divide_list(std::string_view text);

}  // namespace lade::support
