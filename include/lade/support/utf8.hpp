// Decoding and encoding of UTF-8 (RFC 3629).

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lade::support {

// The number of bytes of the first character of a text; 0 if the text is empty or begins with bytes
// that are not UTF-8.
std::size_t utf8_length(std::string_view text) noexcept;

// The number of characters of a text. A byte that is not part of a character counts as one.
std::size_t utf8_characters(std::string_view text) noexcept;

// Appends a character. `code`: up to U+10FFFF, not a surrogate.
void append_utf8(std::string& into, char32_t code);

}  // namespace lade::support
