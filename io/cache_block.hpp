// The format of a disk cache's files: a block of an object, followed by a label that identifies it.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lade::detail {

// The key of a block: a hash of its store, the object's URL, the block size and the block's number.
struct block_key {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  std::array<char, 32> digits() const noexcept;  // hexadecimal

  friend bool operator==(const block_key&, const block_key&) = default;
};

struct block_key_hash {
  std::size_t operator()(const block_key& key) const noexcept { return key.low; }
};

// `store`: a hash of the store's identity.
block_key key_of_block(const block_key& store, std::string_view url, std::uint64_t block_bytes,
                       std::uint64_t number) noexcept;

// SipHash-2-4 with 128 bits of output, under the key of the reference's test vectors (Aumasson and
// Bernstein, "SipHash: a fast short-input PRF").
block_key siphash128(std::span<const std::byte> bytes) noexcept;

// The description of the block in a file.
struct block_label {
  block_key key = {};
  std::uint64_t object_bytes = 0;
  std::uint64_t offset = 0;  // of the block in the object
  std::uint64_t content_bytes = 0;
  std::uint32_t content_crc = 0;  // CRC-32C
  std::string_view etag = {};     // strong, without quotes; may be empty
  std::string_view name = {};     // of the object, without secrets; for readers of the files
};

// The bytes after the content in a block's file. Numbers are little-endian:
//
//   name, entity tag
//   magic "ladeblk1"              8 bytes
//   key.high, key.low             16
//   object_bytes, offset          16
//   content_bytes                 8
//   lengths of name and tag       8
//   content_crc                   4
//   CRC-32C of all of the above   4
std::string encode_label(const block_label& label);

constexpr std::size_t label_end_bytes = 64;     // of a label without name and tag
constexpr std::size_t most_label_bytes = 4096;  // names and tags are shortened, or not cached

// Decodes the label of a file of `file_bytes` bytes. `end`: the last bytes of the file, at least
// min(file_bytes, most_label_bytes); the label refers to them. Returns nothing if the label is
// damaged. Does not examine the content.
std::optional<block_label> decode_label(std::span<const std::byte> end, std::uint64_t file_bytes);

// Whether a whole file has the content described by its label.
bool has_content_of(const block_label& label, std::span<const std::byte> file) noexcept;

}  // namespace lade::detail
