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
  // Longer records are refused with error(limit_exceeded).
  std::uint64_t max_record_bytes = std::uint64_t{1} << 30;

  // How much a compressed file may decompress to. More is refused with error(limit_exceeded).
  std::uint64_t max_file_bytes = std::uint64_t{1} << 40;

  // Skip records whose data does not match its checksum, and count them in `damaged`. If false,
  // such a record is an error. A damaged length is always an error: nothing after it can be found.
  bool skip_damaged = false;

  // Incremented by each skipped record, if not null. Must outlive the reading.
  std::atomic<std::uint64_t>* damaged = nullptr;
};

// The records of a file in order, given its bytes uncompressed. `name`: what errors call the file.
//
// A record is a view of the file's buffer if it is in one, else a copy in memory of the caller's
// pool. It may be kept. Both checksums of each record are compared. Throws error(invalid_data)
// that names the file and the offset of the record for a wrong checksum or an early end.
async_generator<buffer> read_tfrecords(async_generator<buffer> file, std::string name,
                                       tfrecord_options options = {});

// The same for a reader, which must not be null. Errors contain the reader's name. Large records
// are read directly into their own memory. The file must not be compressed.
async_generator<buffer> read_tfrecords(std::shared_ptr<const byte_reader> file,
                                       tfrecord_options options = {});

struct example_options {
  // Lists of one number become integer and number fields. If false, all lists of numbers become
  // tensors: for data whose lists have any length, also 1.
  bool scalars = true;

  std::size_t max_fields = 4096;  // of one example; more are refused with error(limit_exceeded)
};

}  // namespace lade::io

namespace lade {

namespace detail {
class read_tfrecord;
class parse_example;
}  // namespace detail

// What io::read_tfrecord is.
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

// What io::parse_example is.
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

// The records of the file that is a sample's key, as samples with data whose keys are the file's
// and the number of the record, "train-0.tfrecord/17", and whose labels are the file's:
//
//   lade::from(lade::io::files("train", "*.tfrecord"))
//       | lade::flat_map(lade::io::read_tfrecord)
//       | lade::map(lade::io::parse_example)
//
// Files compressed with gzip or Zstandard are recognized by their first bytes and decompressed.
// Damaged records that are skipped keep their number.
inline constexpr detail::read_tfrecord read_tfrecord;

// The sample with the features of the tf.train.Example in its data as fields, in the order of the
// file, and without data:
//
//   bytes_list   bytes, which share the sample's data; of several values "name/0", "name/1", ...
//   int64_list   an integer; a tensor of i64 with one dimension unless it has one value
//   float_list   a number; a tensor of f32 with one dimension unless it has one value
//
// A feature without a list, or with an empty list of bytes, becomes no field. Throws
// error(invalid_data) that names the sample and the byte for anything but an Example, such as a
// SequenceExample, and for a feature that occurs twice.
inline constexpr detail::parse_example parse_example;

}  // namespace io
}  // namespace lade
