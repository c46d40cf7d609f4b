// Parses the header of a safetensors file (https://huggingface.co/docs/safetensors).

#pragma once

#include <lade/io/formats/safetensors.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::io {

struct safetensors_header {
  std::vector<safetensors_entry> tensors;  // in the order of their elements
  std::vector<std::pair<std::string, std::string>> metadata;
};

inline constexpr std::size_t safetensors_length_bytes = 8;  // of the length of the header

// These throw error(invalid_data), error(unsupported) or error(limit_exceeded) naming the file.
//
// The length of the header of a file of `size` bytes, from its first safetensors_length_bytes.
std::size_t safetensors_header_bytes(std::span<const std::byte> begin, std::uint64_t size,
                                     std::string_view name);

// Parses the header of a file of `size` bytes.
safetensors_header parse_safetensors_header(std::string_view text, std::uint64_t size,
                                            std::string_view name);

}  // namespace lade::io
