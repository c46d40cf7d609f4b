// Parses the directory and the headers of ZIP archives (PKWARE APPNOTE.TXT, 4.3).

#pragma once

#include <lade/io/formats/zip.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lade::io {

// The position of an archive's directory.
struct zip_end {
  std::uint64_t members = 0;
  std::uint64_t directory_offset = 0;  // from the start of the file
  std::uint64_t directory_bytes = 0;
  std::uint64_t prefix_bytes = 0;  // before the archive; its offsets do not count them
};

// The size of the tail that find_zip_end needs: the longest comment and the records before it.
inline constexpr std::size_t zip_tail_bytes = 0xffff + 22 + 20 + 56;

inline constexpr std::size_t zip_local_bytes = 30;  // of a local header, without name and extra

// The following functions throw error(invalid_data) or error(unsupported) naming the archive.
//
// Finds the end records of an archive of `size` bytes in its last bytes, `tail`.
zip_end find_zip_end(std::span<const std::byte> tail, std::uint64_t size, std::string_view name);

// Parses the members of a directory. Members must not overlap.
std::vector<zip_member> parse_zip_directory(std::span<const std::byte> directory,
                                            const zip_end& end, std::string_view name);

// The following functions throw errors naming the member. `name`: of the archive and the member.
//
// Throws for members that cannot be read, by their entry in the directory.
void require_readable(const zip_member& member, const zip_options& options, std::string_view name);

// The size of the local header at the start of `bytes`, with its name and extra fields. Needs its
// first zip_local_bytes.
std::size_t zip_header_bytes(std::span<const std::byte> bytes, std::string_view name);

// The stored data of a member, in an archive in memory.
buffer stored_zip_data(const buffer& all, const zip_member& member, std::string_view name);

// Inflates the data of a member into all of `into`.
void inflate_zip_data(std::span<const std::byte> from, std::span<std::byte> into,
                      std::string_view name);

// Throws if the CRC-32 of a member's content is not that of its directory entry.
void require_crc32(std::uint32_t found, const zip_member& member, std::string_view name);

// Throws if a local header contradicts the directory. `bytes`: zip_header_bytes() of them.
void require_same_header(std::span<const std::byte> bytes, const zip_member& member,
                         std::string_view name);

}  // namespace lade::io
