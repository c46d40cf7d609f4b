// Text chunks of PNG files.

#pragma once

#include "byte_view.hpp"

#include <string>
#include <string_view>

namespace lade::media {

struct png_text {
  std::string keyword;
  std::string value;
};

// Reads the body of a tEXt, zTXt or iTXt chunk. What is damaged or larger than 1 MiB is empty.
png_text read_png_text(std::string_view chunk, byte_view body);

// The bytes of a "Raw profile type ..." text, as ImageMagick writes them: a name, a length, and
// hexadecimal digits. Empty if it is none.
std::string raw_profile(std::string_view text);

}  // namespace lade::media
