// Inflates data of known size (RFC 1951) with libdeflate, and computes their checksums.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lade::io {

// Inflates all of `from`, which has no header, into all of `into`. Returns whether the data are
// valid and have exactly this size. Throws std::bad_alloc.
bool inflate_exactly(std::span<const std::byte> from, std::span<std::byte> into);

// The CRC-32 of ZIP, gzip and PNG. `before`: the CRC-32 of the preceding bytes.
std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

// Copies bytes and returns their CRC-32 in one pass over memory.
std::uint32_t copy_with_crc32(std::span<const std::byte> from, std::byte* to,
                              std::uint32_t before) noexcept;

}  // namespace lade::io
