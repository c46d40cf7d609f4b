// What the tables of an MP4 or QuickTime file make FFmpeg allocate, and its edit lists.

#pragma once

#include "byte_input.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lade::media {

// Bytes of a file that were read to look at its headers, for those who read them again.
class held_bytes {
 public:
  // Reads that many bytes from `offset` on, or fewer at the end, unless they are held.
  void read(byte_input& from, std::uint64_t offset, std::uint64_t bytes);

  // Holds a copy of bytes that were read from `offset` on.
  void add(std::uint64_t offset, std::span<const std::byte> bytes);

  // What is held from `offset` on; empty if nothing is.
  std::span<const std::byte> at(std::uint64_t offset) const noexcept;

 private:
  struct part {
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes;
  };

  std::vector<part> parts_;
};

// The content of the movie box (moov), which has all tables (ISO/IEC 14496-12, 8.2.1). Reads the
// file up to it, but for what is held. Empty if there is none.
std::span<const std::byte> find_movie(byte_input& file, held_bytes& held);

// The tables of a movie box. Those of compressed movies (cmov) are not looked into.
struct movie_tables {
  std::vector<std::uint32_t> edited;  // tracks whose edit lists have several edits with media
  bool has_fragments = false;         // the movie may go on in other boxes (moof)
};

// Throws error(limit_exceeded) for tables of which FFmpeg would make more than 65,536 entries and
// one for 8 bytes of the file, and for edit lists of more than 4,096 edits.
movie_tables read_movie_tables(std::span<const std::byte> movie, std::uint64_t file_bytes,
                               const std::string& doing);

// The same for the samples that fragments list (moof; ISO/IEC 14496-12, 8.8). Looks at those of a
// file in memory, and of one of up to 1 MiB: behind a reader, each may cost a request.
// Reads what is not held.
void check_fragments(byte_input& file, const held_bytes& held, const std::string& doing);

}  // namespace lade::media
