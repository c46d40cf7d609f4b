// Text chunks of PNG files: tEXt, zTXt and iTXt (PNG specification, third edition, 11.3.3).

#pragma once

#include <lade/support/byte_view.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace lade::media {

// The keyword of a tEXt, zTXt or iTXt chunk.
std::string_view png_keyword(support::byte_view body) noexcept;

// The text of a chunk. Inflates at most `room` bytes and subtracts the inflated bytes from `room`.
// Empty if the chunk is damaged or its text is longer.
std::string read_png_text(std::string_view chunk, support::byte_view body, std::size_t& room);

// The bytes of a "Raw profile type ..." text, as ImageMagick writes it: a name, a length, and
// hexadecimal digits. Empty for other texts.
std::string raw_profile(std::string_view text);

}  // namespace lade::media
