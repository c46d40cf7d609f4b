// Texts of which parts are escaped: as strings of JSON are (RFC 8259, 7), text of XML and HTML (XML
// 1.0, 4.1 and 4.6), and URLs (RFC 3986, 2.1).

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lade::io::http {

inline constexpr std::string_view redaction_mark = "...";

// What a text says, and where.
struct unescaped_text {
  std::string plain;
  std::vector<std::size_t> offsets;  // in the text, of each byte of `plain` and of its end

  // Replaces what says a part of `plain` by three points. `text`: what has been read.
  void replace(std::string& text, std::size_t at, std::size_t bytes) const;
};

using reading = unescaped_text(std::string_view text);

unescaped_text verbatim(std::string_view text);

// What the text says if all that looks like an escape of one byte is one; bytes above 127 are left
// as they are.
unescaped_text unescape(std::string_view text);

// How long an escape is which the end of the text cuts off; 0 if there is none.
std::size_t cut_escape_bytes(std::string_view text) noexcept;

}  // namespace lade::io::http
