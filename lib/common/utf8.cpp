#include <lade/support/utf8.hpp>

#include <algorithm>

namespace lade::support {

// RFC 3629, section 4.
std::size_t utf8_length(std::string_view text) noexcept {
  auto byte = [&](std::size_t i) { return i < text.size() ? text[i] & 0xff : 0; };
  auto follows = [&](std::size_t i, int least = 0x80, int most = 0xbf) {
    return byte(i) >= least && byte(i) <= most;
  };
  if (text.empty()) return 0;
  auto first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  if (first < 0xe0) return follows(1) ? 2 : 0;
  if (first < 0xf0) {
    bool whole = follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf) && follows(2);
    return whole ? 3 : 0;
  }
  bool whole = follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf) && follows(2) &&
               follows(3);
  return whole ? 4 : 0;
}

std::size_t utf8_characters(std::string_view text) noexcept {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(std::max<std::size_t>(utf8_length(text), 1));
  return count;
}

// RFC 3629, section 3.
void append_utf8(std::string& into, char32_t code) {
  auto add = [&](char32_t byte) { into += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      add(0xe0 | code >> 12);
    } else {
      add(0xf0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3f));
    }
    add(0x80 | (code >> 6 & 0x3f));
  }
  add(0x80 | (code & 0x3f));
}

}  // namespace lade::support
