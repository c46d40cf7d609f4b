// Checks the tables and edit lists of MP4 and QuickTime files, from which FFmpeg allocates memory.

#pragma once

#include "byte_input.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lade::media {

// Caches bytes of a file that were read to check its headers, since FFmpeg reads them again.
class held_bytes {
 public:
  // Reads `bytes` bytes from `offset` on, or fewer at the end, unless they are cached.
  void read(byte_input& from, std::uint64_t offset, std::uint64_t bytes);

  // Caches a copy of bytes that were read from `offset` on.
  void add(std::uint64_t offset, std::span<const std::byte> bytes);

  // The cached bytes from `offset` on; empty if there are none.
  std::span<const std::byte> at(std::uint64_t offset) const noexcept;

 private:
  struct part {
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes;
  };

  std::vector<part> parts_;
};

// Finds the movie box (moov), which has all tables (ISO/IEC 14496-12, 8.2.1), and returns its
// content. Reads the file up to its end, except cached bytes. Empty if there is none.
std::span<const std::byte> find_movie(byte_input& file, held_bytes& held);

// A summary of the tables of a movie box. Compressed movies (cmov) are not examined.
struct movie_tables {
  std::vector<std::uint32_t> edited;  // tracks whose edit lists have several edits with media
  bool has_fragments = false;         // further samples may be in other boxes (moof)
};

// Throws error(limit_exceeded) if FFmpeg would create more than 65,536 entries and more than one
// per 8 bytes of the file, or if an edit list has more than 4,096 edits.
movie_tables read_movie_tables(std::span<const std::byte> movie, std::uint64_t file_bytes,
                               const std::string& doing);

// The same for the samples of fragments (moof; ISO/IEC 14496-12, 8.8). Examines files in memory,
// and others of up to 1 MiB: through a reader, each fragment may cost a request.
void check_fragments(byte_input& file, const held_bytes& held, const std::string& doing);

}  // namespace lade::media
