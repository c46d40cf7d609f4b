// TFRecord files (https://www.tensorflow.org/tutorials/load_data/tfrecord), and the protocol buffer
// tf.train.Example that their records usually hold.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/sample.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace lade::io {

struct tfrecord_options {
  // Maximum size of a record in bytes. Longer records are refused with error(limit_exceeded).
  std::uint64_t max_record_bytes = std::uint64_t{1} << 30;

  // Maximum size of a decompressed file in bytes. Larger files are refused with
  // error(limit_exceeded).
  std::uint64_t max_file_bytes = std::uint64_t{1} << 40;

  // Whether records whose data does not match the checksum are skipped and counted in `damaged`. If
  // false, such a record is an error. A damaged length is always an error, because the next record
  // cannot be found.
  bool skip_damaged = false;

  // Number of skipped records, incremented if not null. Must outlive the generators.
  std::atomic<std::uint64_t>* damaged = nullptr;
};

// Yields the records of an uncompressed file in order. `name`: the name of the file in errors.
//
// A record is a view of the file's buffer if it lies in one buffer; otherwise it is a copy in
// memory of the caller's pool. The caller may keep it. Both checksums of each record are verified.
// Throws error(invalid_data) naming the file and the offset of the record for a wrong checksum or a
// truncated file.
async_generator<buffer> read_tfrecords(async_generator<buffer> file, std::string name,
                                       tfrecord_options options = {});

// The same for a reader, which must not be null. Errors contain the reader's name. Large records
// are read directly into their memory. The file must not be compressed.
async_generator<buffer> read_tfrecords(std::shared_ptr<const byte_reader> file,
                                       tfrecord_options options = {});

struct example_options {
  // Whether lists of one number become integer and number fields. If false, all lists of numbers
  // become tensors, for data with lists of any length, also 1.
  bool scalars = true;

  std::size_t max_fields = 4096;  // per example; more throw error(limit_exceeded)
};

}  // namespace lade::io

namespace lade {

namespace detail {
class read_tfrecord;
class parse_example;
}  // namespace detail

// The type of io::read_tfrecord.
class detail::read_tfrecord {
 public:
  constexpr explicit read_tfrecord(io::tfrecord_options options = {}) noexcept
      : options_(options) {}

  async_generator<sample> operator()(sample file) const;

  constexpr read_tfrecord with(io::tfrecord_options options) const noexcept {
    return read_tfrecord(options);
  }

 private:
  static async_generator<sample> read(sample file, io::tfrecord_options options);

  io::tfrecord_options options_;
};

// The type of io::parse_example.
class detail::parse_example {
 public:
  constexpr explicit parse_example(io::example_options options = {}) noexcept : options_(options) {}

  sample operator()(sample record) const;

  constexpr parse_example with(io::example_options options) const noexcept {
    return parse_example(options);
  }

 private:
  io::example_options options_;
};

namespace io {

// Yields the records of a file as samples with data. The key of the input is the path or URL of the
// file. The key of a sample is that key and the number of the record: "train-0.tfrecord/17". Its
// label is the label of the input.
//
//   lade::from(lade::io::files("train", "*.tfrecord"))
//       | lade::flat_map(lade::io::read_tfrecord)
//       | lade::map(lade::io::parse_example)
//
// Files compressed with gzip or Zstandard are recognised by their first bytes and decompressed.
// Skipped records count in the numbers of records.
inline constexpr detail::read_tfrecord read_tfrecord;

// Parses the tf.train.Example in the data of a sample. Returns the sample without data; its fields
// are the features, in the order of the file:
//
//   bytes_list   bytes, views of the data; if there are several values "name/0", "name/1", ...
//   int64_list   an integer for one value, otherwise a tensor of i64 with one dimension
//   float_list   a number for one value, otherwise a tensor of f32 with one dimension
//
// A feature without a list, or with an empty list of bytes, becomes no field. Throws
// error(invalid_data) naming the sample and the byte for data that is not an Example, such as a
// SequenceExample, and for a feature that occurs twice.
inline constexpr detail::parse_example parse_example;

}  // namespace io
}  // namespace lade
