// What tells objects apart that only the queries of their URLs do.

#pragma once

#include <string>
#include <string_view>

namespace lade::detail {

// 16 hexadecimal digits, the same for the same query without its signature; they do not show it.
// Empty for a URL without one, and for a path.
std::string query_digest(std::string_view name);

}  // namespace lade::detail
