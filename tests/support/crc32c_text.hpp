// Checksums in the format of object stores.

#pragma once

#include <lade/checksum.hpp>

#include <span>
#include <string>
#include <string_view>

namespace lade::test {

// The CRC-32C of a content in base64: the value of x-amz-checksum-crc32c.
inline std::string crc32c_text(std::string_view content) {
  auto value = crc32c(std::as_bytes(std::span(content))).value();
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (int shift = 26; shift >= 2; shift -= 6) text += digits[value >> shift & 63];
  return text + digits[value << 4 & 63] + "==";
}

}  // namespace lade::test
