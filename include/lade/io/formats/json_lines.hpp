// Lines of text files, and files with one JSON object (RFC 8259) in each line.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>
#include <lade/sample.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace lade {

namespace detail {
class read_json_line;
}

namespace io {

struct line_options {
  // Longer lines are refused with error(limit_exceeded).
  std::size_t max_line_bytes = std::size_t{64} << 20;
};

// The lines of a file in order, without the "\n" or "\r\n" that ends them, given its bytes
// uncompressed. The last one may lack its end. `name`: what errors call the file.
//
// A line is a view of the file's buffer if it is in one, else a copy in memory of the caller's
// pool. It may be kept.
async_generator<buffer> read_lines(async_generator<buffer> file, std::string name,
                                   line_options options = {});

struct json_line_options {
  std::size_t max_line_bytes = std::size_t{64} << 20;  // as of line_options

  // How much a compressed file may decompress to. More is refused with error(limit_exceeded).
  std::uint64_t max_file_bytes = std::uint64_t{1} << 40;

  std::size_t max_fields = 4096;  // of one object; more are refused with error(limit_exceeded)
};

}  // namespace io

// What io::read_json_line is.
class detail::read_json_line {
 public:
  constexpr explicit read_json_line(io::json_line_options options = {}) noexcept
      : options_(options) {}

  async_generator<sample> operator()(sample file) const;

  constexpr read_json_line with(io::json_line_options options) const noexcept {
    return read_json_line(options);
  }

 private:
  static async_generator<sample> read(sample file, io::json_line_options options);

  io::json_line_options options_;
};

namespace io {

// The objects in the lines of the file that is a sample's key, as samples whose keys are the file's
// and the number of the line, from 1 on, "train.jsonl/17", and whose labels are the file's:
//
//   lade::from(lade::io::files("train", "*.jsonl")) | lade::flat_map(lade::io::read_json_line)
//
// Members become fields: strings text, numbers without fraction and exponent integers, other
// numbers numbers, true and false the integers 1 and 0, objects and arrays text that is their JSON.
// A null becomes no field. Empty lines are skipped.
// Files compressed with gzip or Zstandard are recognized by their first bytes and decompressed.
//
// Throws error(invalid_data) that names the file, the line and the byte in it for anything else:
// what is not JSON or not an object, a name that occurs twice, text that is not UTF-8, an integer
// of more than 64 bits, a number that no double can hold.
inline constexpr detail::read_json_line read_json_line;

}  // namespace io
}  // namespace lade
