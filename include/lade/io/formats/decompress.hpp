// Compressed streams of bytes: gzip (RFC 1952) and Zstandard (RFC 8878).

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace lade::io {

struct decompress_options {
  // How much a stream may decompress to, against small files that expand to huge ones.
  std::uint64_t max_bytes = std::uint64_t{1} << 40;

  // How far back a Zstandard frame may refer: its header says how far, and it takes that much
  // memory, before anything is decompressed. A power of two from 1 KiB to 2 GiB. Where max_bytes is
  // less, that is the limit, but not below 8 MiB: levels up to 19 refer back so far at most, and
  // the header of a short stream may say that of the level.
  std::size_t max_window_bytes = std::size_t{128} << 20;

  std::size_t chunk_bytes = std::size_t{1} << 20;  // size of each buffer, at least 1
};

// The decompressed bytes of a stream, as buffers in memory of the caller's pool, none of them
// empty. The format is recognized by its first bytes; a stream that is neither gzip nor Zstandard
// passes through as it is. One layer is taken off: the content is not decompressed again.
//
//   lade::io::decompress(lade::io::stream("a.tar.gz"), "a.tar.gz")
//
// Several gzip members or Zstandard frames are read as one stream. Zero bytes may follow a gzip
// member. Checksums are verified. Zlib's and Zstandard's working memory is not counted to a budget:
// about 45 KB, or the window and half a megabyte.
//
// `name`: what errors call the stream. Throws error(invalid_data) for a damaged stream and one that
// ends early, error(limit_exceeded) for one that exceeds an option, and error(invalid_argument) for
// options that cannot work.
async_generator<buffer> decompress(async_generator<buffer> compressed, std::string name,
                                   decompress_options options = {});

}  // namespace lade::io
