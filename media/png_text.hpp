// Text chunks of PNG files.

#pragma once

#include <lade/detail/common/byte_view.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace lade::media {

// The keyword of a tEXt, zTXt or iTXt chunk.
std::string_view png_keyword(detail::byte_view body) noexcept;

// The text of a tEXt, zTXt or iTXt chunk. Inflates at most `room` bytes, and subtracts from it what
// was inflated. Empty if the chunk is damaged or has more.
std::string read_png_text(std::string_view chunk, detail::byte_view body, std::size_t& room);

// The bytes of a "Raw profile type ..." text, as ImageMagick writes them: a name, a length, and
// hexadecimal digits. Empty if it is none.
std::string raw_profile(std::string_view text);

}  // namespace lade::media
