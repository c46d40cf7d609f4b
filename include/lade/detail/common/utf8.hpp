// UTF-8 (RFC 3629).

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lade::detail {

// The bytes of the character that a text begins with; 0 if it begins with none.
std::size_t utf8_length(std::string_view text) noexcept;

// How many characters a text has. Each byte that belongs to none counts as one.
std::size_t utf8_characters(std::string_view text) noexcept;

// Appends a character: up to U+10FFFF, and no surrogate.
void append_utf8(std::string& into, char32_t code);

}  // namespace lade::detail
