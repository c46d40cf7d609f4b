// Writing JSON (RFC 8259).

#pragma once

#include <lade/lineage.hpp>

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lade::support {

// A quoted and escaped string. Bytes that are not UTF-8, as in some file names, become U+FFFD.
std::string json_of(std::string_view text);

// The same without loss: a byte that is not UTF-8 becomes a lone surrogate, \udc80 to \udcff, as
// with Python's surrogateescape. json_reader refuses such text.
std::string json_of_bytes(std::string_view text);

// A finite number with `digits` decimal places, from 0 on, independent of the locale.
std::string json_of(double number, int digits);

// An array or object whose values are JSON already.
std::string json_array(std::span<const std::string> values);
std::string json_object(std::span<const std::pair<const char*, std::string>> members);

// The ranges of a lineage: [[3,7],[9,9]].
std::string json_of(const lineage& positions);

}  // namespace lade::support
