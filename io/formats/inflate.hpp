// Inflating data whose size is known (RFC 1951) by libdeflate, and their checksum.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lade::io {

// Inflates all of `from`, without a header, into all of `into`. Returns whether it is valid and
// makes exactly so many bytes. Throws std::bad_alloc.
bool inflate_exactly(std::span<const std::byte> from, std::span<std::byte> into);

// The CRC-32 of ZIP, gzip and PNG. `before`: that of the bytes before these.
std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

// Copies bytes, and returns their CRC-32: they are read from memory once.
std::uint32_t copy_with_crc32(std::span<const std::byte> from, std::byte* to,
                              std::uint32_t before) noexcept;

}  // namespace lade::io
