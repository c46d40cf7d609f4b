// Compressed streams of bytes: gzip (RFC 1952) and Zstandard (RFC 8878).

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace lade::io {

struct decompress_options {
  // Maximum decompressed size of a stream in bytes, a protection against small files that expand to
  // huge ones.
  std::uint64_t max_bytes = std::uint64_t{1} << 40;

  // Maximum window of a Zstandard frame in bytes: a power of two from 1 KiB to 2 GiB. The header of
  // a frame states its window; this memory is allocated before anything is decompressed. A smaller
  // max_bytes lowers the limit, but not below 8 MiB. Levels up to 19 use windows up to 8 MiB, also
  // for short streams.
  std::size_t max_window_bytes = std::size_t{128} << 20;

  std::size_t chunk_bytes = std::size_t{1} << 20;  // size of each buffer, at least 1
};

// Yields the decompressed bytes of a stream, in non-empty buffers of the caller's pool.
// The format is recognised by the first bytes. A stream that is neither gzip nor Zstandard is
// returned unchanged. Only one layer is removed: compressed content is not decompressed again.
//
//   lade::io::decompress(lade::io::stream("a.tar.gz"), "a.tar.gz")
//
// Several gzip members or Zstandard frames are one stream. Zero bytes may follow a gzip member.
// Checksums are verified. The working memory of the decoder does not count to a budget: about 45 KB
// for gzip; the window and half a megabyte for Zstandard.
//
// `name`: the name of the stream in errors. Throws error(invalid_data) for a damaged or truncated
// stream, error(limit_exceeded) for a stream that exceeds an option, and error(invalid_argument)
// for options out of range.
async_generator<buffer> decompress(async_generator<buffer> compressed, std::string name,
                                   decompress_options options = {});

}  // namespace lade::io
