// Archives made by hand, byte by byte.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace lade::test {

// A header of 512 bytes. Fields that the test changes need set_checksum again.
inline void set_checksum(std::string& block, std::size_t at = 0) {
  std::fill_n(block.begin() + static_cast<std::ptrdiff_t>(at) + 148, 8, ' ');
  unsigned sum = 0;
  for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(block[at + i]);
  char text[9];
  std::snprintf(text, sizeof text, "%06o", sum);
  block.replace(at + 148, 7, text, 7);
}

inline std::string octal(std::uint64_t value) {
  char text[13];
  std::snprintf(text, sizeof text, "%011llo", static_cast<unsigned long long>(value));
  return {text, 12};
}

inline std::string tar_header(std::string_view name, std::uint64_t bytes, char type = '0') {
  std::string block(512, '\0');
  block.replace(0, std::min<std::size_t>(name.size(), 100), name.substr(0, 100));
  block.replace(100, 8, "0000644\0", 8);
  block.replace(124, 12, octal(bytes));
  block.replace(136, 12, octal(1'700'000'000));
  block[156] = type;
  block.replace(257, 8, "ustar\00000", 8);
  set_checksum(block);
  return block;
}

inline std::string padded(std::string_view content) {
  std::string all(content);
  all.resize((content.size() + 511) / 512 * 512);
  return all;
}

inline std::string tar_file(std::string_view name, std::string_view content, char type = '0') {
  return tar_header(name, content.size(), type) + padded(content);
}

inline std::string pax_record(std::string_view key, std::string_view value) {
  auto rest = " " + std::string(key) + "=" + std::string(value) + "\n";
  auto bytes = rest.size() + 1;
  while (std::to_string(bytes).size() + rest.size() != bytes) ++bytes;
  return std::to_string(bytes) + rest;
}

inline std::string tar_end() { return std::string(1024, '\0'); }

// The bytes in chunks, each in a separate buffer.
inline async_generator<buffer> chunks_of(std::string bytes, std::size_t chunk_bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += chunk_bytes) {
    auto part = std::string_view(bytes).substr(at, chunk_bytes);
    buffer chunk(part.size());
    std::memcpy(chunk.data(), part.data(), part.size());
    co_yield chunk;
  }
}

}  // namespace lade::test
