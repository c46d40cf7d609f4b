// Files of the module's own formats, made of any bytes.

#pragma once

#include <lade/buffer.hpp>
#include <lade/checksum.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace lade::test {

// The bytes with a signature, a version and a checksum that are right.
inline buffer sealed(const std::uint8_t* data, std::size_t size, std::string_view signature,
                     std::uint8_t version = 1) {
  constexpr std::size_t least = 16;
  buffer file(std::max(size, least));
  std::fill_n(file.data(), file.size(), std::byte{});
  if (size > 0) std::memcpy(file.data(), data, size);
  std::memcpy(file.data(), signature.data(), 8);
  std::memcpy(file.data() + 8, "\0\0\0\0", 4);
  file.data()[8] = std::byte{version};
  const auto body = file.bytes().first(file.size() - 4);
  const auto sum = crc32c(body).value();
  for (std::size_t i = 0; i < 4; ++i)
    file.data()[body.size() + i] = static_cast<std::byte>(sum >> (8 * i));
  return file;
}

}  // namespace lade::test
