#include <lade/printable.hpp>
#include <lade/support/utf8.hpp>

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace lade {

// C0, DEL and C1, which is U+0080 to U+009F.
static bool is_control(std::string_view character) {
  auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

static std::string shown(std::string_view character, bool is_utf8) {
  if (character == "\n") return "\\n";
  if (character == "\t") return "\\t";
  if (is_utf8 && !is_control(character)) return std::string(character);
  std::string escapes;
  for (char byte : character) escapes += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return escapes;
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    auto length = support::utf8_length(text);
    auto character = text.substr(0, std::max<std::size_t>(length, 1));
    result += shown(character, length > 0);
    text.remove_prefix(character.size());
  }
  return result;
}

}  // namespace lade
