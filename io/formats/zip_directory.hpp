// The directory and the headers of ZIP archives.

#pragma once

#include <lade/io/formats/zip.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lade::io {

// Where the directory of an archive is.
struct zip_end {
  std::uint64_t members = 0;
  std::uint64_t directory_offset = 0;  // from the begin of the file
  std::uint64_t directory_bytes = 0;
  std::uint64_t prefix_bytes = 0;  // in front of the archive: its offsets do not count them
};

// How many bytes at the end of an archive find_zip_end must see: the longest comment and the
// records before it.
inline constexpr std::size_t zip_tail_bytes = 0xffff + 22 + 20 + 56;

inline constexpr std::size_t zip_local_bytes = 30;  // of a local header, without name and extra

// These throw error(invalid_data) or error(unsupported) naming the archive.
//
// Finds the end of an archive of `size` bytes in its last bytes, `tail`.
zip_end find_zip_end(std::span<const std::byte> tail, std::uint64_t size, std::string_view name);

// The members that a directory lists, none of which shares bytes with another.
std::vector<zip_member> parse_zip_directory(std::span<const std::byte> directory,
                                            const zip_end& end, std::string_view name);

// These throw errors naming the member: `name` is the archive's and the member's.
//
// Refuses members that cannot be read, by what the directory says of them.
void require_readable(const zip_member& member, const zip_options& options, std::string_view name);

// How long the local header at the begin of `bytes` is with its name and extra fields, from its
// first zip_local_bytes.
std::size_t zip_header_bytes(std::span<const std::byte> bytes, std::string_view name);

// The data of a member as they are stored, in an archive in memory.
buffer stored_zip_data(const buffer& all, const zip_member& member, std::string_view name);

// Inflates the data of a member into all of `into`.
void inflate_zip_data(std::span<const std::byte> from, std::span<std::byte> into,
                      std::string_view name);

// Throws if the CRC-32 of a member's content is not that of the directory.
void require_crc32(std::uint32_t found, const zip_member& member, std::string_view name);

// Compares a whole local header with the directory. `bytes` are as many as zip_header_bytes says.
void require_same_header(std::span<const std::byte> bytes, const zip_member& member,
                         std::string_view name);

}  // namespace lade::io
