// Writing JSON (RFC 8259).

#pragma once

#include <lade/lineage.hpp>

#include <string>
#include <string_view>

namespace lade::detail {

// A string in quotes, with escapes for what may not stand in one. Bytes that are not ASCII are
// left as they are: JSON is UTF-8, and so are names.
std::string json_of(std::string_view text);

// The ranges of a lineage: [[3,7],[9,9]].
std::string json_of(const lineage& positions);

}  // namespace lade::detail
