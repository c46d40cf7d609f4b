// Distinguishes objects whose URLs differ only in their queries.

#pragma once

#include <string>
#include <string_view>

namespace lade::detail {

// A digest of the query in 16 hexadecimal digits, independent of its signature. The digest does not
// reveal the query. Empty for a path, and for a URL without a query.
std::string query_digest(std::string_view name);

}  // namespace lade::detail
