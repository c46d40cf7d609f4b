// Parallel reads of several ranges of one object. Neighbouring ranges are merged into one read.

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
  std::uint64_t gap_bytes = std::uint64_t{64} << 10;  // largest unused gap in a merged read
  std::uint64_t most_bytes = std::uint64_t{8} << 20;  // largest merged read
  unsigned concurrency = 8;                           // reads in flight; 1 or more
};

// Returns the bytes of the ranges, in the order of `ranges`, which may be any. Ranges that overlap,
// or are at most `gap_bytes` apart, are merged into one read of at most `most_bytes`. Their buffers
// are views of the same memory. A range of more than `most_bytes` is a separate read. The memory is
// from the caller's pool.
//
// Throws error(invalid_data) for a range that exceeds the object, before anything is allocated, and
// error(invalid_argument) for a concurrency of 0.
task<std::vector<buffer>> read_ranges(std::shared_ptr<const byte_reader> from,
                                      std::vector<object_range> ranges,
                                      ranges_options options = {});

struct parts_options {
  std::size_t part_bytes = std::size_t{8} << 20;  // size of all reads but the last; 1 to 2^30
  unsigned concurrency = 8;                       // reads in flight; 1 or more
};

// Fills `into` with the bytes from `offset` on, by parallel reads. `into` must outlive the task.
// Throws error(invalid_data) if the object ends before, and error(invalid_argument) naming the
// option for a value out of range.
task<> read_in_parts(std::shared_ptr<const byte_reader> from, std::span<std::byte> into,
                     std::uint64_t offset, parts_options options = {});

// Yields the bytes of an object from `offset` on. The buffers end at multiples of `part_bytes` of
// the object; their memory is from the caller's pool.
//
// Parts are read in groups: first one part, then two in parallel, then four, up to `concurrency`. A
// group is read only when the last part of the group before has been consumed. So at most
// `concurrency` parts need memory. Throws as read_in_parts does, and error(invalid_data) for an
// offset beyond the end.
async_generator<buffer> stream_in_parts(std::shared_ptr<const byte_reader> from,
                                        std::uint64_t offset = 0, parts_options options = {});

}  // namespace lade::io

namespace lade::detail {

// A read that covers several ranges.
struct merged_range {
  io::object_range all;
  std::vector<std::size_t> parts;  // indices of the ranges in it
};

// Returns the reads that cover the ranges, ordered by offset.
std::vector<merged_range> merge_ranges(std::span<const io::object_range> ranges,
                                       const io::ranges_options& options);

}  // namespace lade::detail
