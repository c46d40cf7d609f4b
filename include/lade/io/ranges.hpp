// Several ranges of one object: neighbours are merged into one read, and reads run in parallel.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace lade::io {

struct object_range {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct ranges_options {
  std::uint64_t gap_bytes = std::uint64_t{64} << 10;  // the most that is read in vain between two
  std::uint64_t most_bytes = std::uint64_t{8} << 20;  // of a merged read
  unsigned concurrency = 8;                           // reads in flight; 1 or more
};

// The bytes of the ranges, in their order, which may be any. Ranges that overlap or have at most
// `gap_bytes` between them are read at once, as long as that is not more than `most_bytes`; their
// buffers are views of the same memory, which is the caller's pool's. A range of more than
// `most_bytes` is a read of its own.
//
// Throws error(invalid_data) for a range that is not inside of the object, before anything is
// allocated, and error(invalid_argument) for a concurrency of 0.
task<std::vector<buffer>> read_ranges(std::shared_ptr<const byte_reader> from,
                                      std::vector<object_range> ranges,
                                      ranges_options options = {});

struct parts_options {
  std::size_t part_bytes = std::size_t{8} << 20;  // of each read but the last; 1 or more
  unsigned concurrency = 8;                       // reads in flight; 1 or more
};

// Fills `into`, which must outlive the task, with the bytes from `offset` on, by several reads at a
// time. Throws error(invalid_data) if the object ends before.
task<> read_in_parts(std::shared_ptr<const byte_reader> from, std::span<std::byte> into,
                     std::uint64_t offset, parts_options options = {});

// The bytes of an object from `offset` on, in buffers in memory of the caller's pool that end at
// multiples of `part_bytes` of the object. Reads one part, then two at a time, and so on up to
// `concurrency`: while the last parts are consumed none are read, so that no more than
// `concurrency` of them need memory.
async_generator<buffer> stream_in_parts(std::shared_ptr<const byte_reader> from,
                                        std::uint64_t offset = 0, parts_options options = {});

}  // namespace lade::io

namespace lade::detail {

// A read that covers several ranges.
struct merged_range {
  io::object_range all;
  std::vector<std::size_t> parts;  // numbers of the ranges in it
};

// The reads that cover ranges, ordered by offset.
std::vector<merged_range> merge_ranges(std::span<const io::object_range> ranges,
                                       const io::ranges_options& options);

}  // namespace lade::detail
