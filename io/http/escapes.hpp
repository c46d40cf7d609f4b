// Decodes texts with escapes of JSON strings (RFC 8259, 7), of XML and HTML (XML 1.0, 4.1 and 4.6),
// and of URLs (RFC 3986, 2.1).

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lade::io::http {

inline constexpr std::string_view redaction_mark = "...";

// A decoded text, and the position of each of its bytes in the encoded text.
struct unescaped_text {
  std::string plain;
  std::vector<std::size_t> offsets;  // in the encoded text: of each byte of `plain`, and its end

  // Replaces the part of `text`, the encoded text, that encodes `bytes` bytes of `plain` from `at`
  // on, by "...".
  void replace(std::string& text, std::size_t at, std::size_t bytes) const;
};

using reading = unescaped_text(std::string_view text);

unescaped_text verbatim(std::string_view text);

// Decodes everything that looks like an escape of one byte. Bytes above 127 stay as they are.
unescaped_text unescape(std::string_view text);

// The bytes of an escape that the end of the text cuts off; 0 if there is none.
std::size_t cut_escape_bytes(std::string_view text) noexcept;

}  // namespace lade::io::http
