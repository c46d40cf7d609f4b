// Reads the records of a TFRecord file (tensorflow/core/lib/io/record_writer.h).

#pragma once

#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/io/formats/tfrecord.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lade::io {

inline constexpr std::size_t tfrecord_header_bytes = 12;   // the length and its checksum
inline constexpr std::size_t tfrecord_checksum_bytes = 4;  // after the data

// The length of the data after a header of 12 bytes at `offset` of a file. Throws
// error(invalid_data) for a wrong checksum, and error(limit_exceeded) for more than `most`.
std::uint64_t parse_tfrecord_header(std::span<const std::byte> header, std::string_view name,
                                    std::uint64_t offset, std::uint64_t most);

// Whether data match the checksum in their last 4 bytes.
bool is_tfrecord_data(std::span<const std::byte> data_and_checksum) noexcept;

class tfrecord_reader {
 public:
  tfrecord_reader(stream_reader from, tfrecord_options options);

  // Returns the next record, or nothing at the end.
  task<std::optional<buffer>> next();

  // The same if it is in the stream's buffer. Otherwise returns nothing, and next() must be called.
  std::optional<buffer> try_next();

  // The number of the last record returned, from 0 on.
  std::uint64_t number() const noexcept { return read_ - 1; }

 private:
  void begin(const buffer& header);
  std::optional<buffer> finish(const buffer& data_and_checksum);

  stream_reader from_;
  tfrecord_options options_;
  std::uint64_t read_ = 0;  // includes skipped records

  // The record whose header was read, but not its data.
  bool has_started_ = false;
  std::uint64_t offset_ = 0;
  std::uint64_t length_ = 0;
};

}  // namespace lade::io
