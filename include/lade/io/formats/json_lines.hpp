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
  // Maximum length of a line in bytes. Longer lines are refused with error(limit_exceeded).
  std::size_t max_line_bytes = std::size_t{64} << 20;
};

// Yields the lines of an uncompressed file in order, without the "\n" or "\r\n" at their end. The
// last line may lack its end. `name`: the name of the file in errors.
//
// A line is a view of the file's buffer if it lies in one buffer; otherwise it is a copy in memory
// of the caller's pool. The caller may keep it.
async_generator<buffer> read_lines(async_generator<buffer> file, std::string name,
                                   line_options options = {});

struct json_line_options {
  std::size_t max_line_bytes = std::size_t{64} << 20;  // as of line_options

  // Maximum size of a decompressed file in bytes. Larger files are refused with
  // error(limit_exceeded).
  std::uint64_t max_file_bytes = std::uint64_t{1} << 40;

  std::size_t max_fields = 4096;  // per object; more throw error(limit_exceeded)
};

}  // namespace io

// The type of io::read_json_line.
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

// Yields the objects in the lines of a file as samples. The key of the input is the path or URL of
// the file. The key of a sample is that key and the number of the line, from 1 on:
// "train.jsonl/17". Its label is the label of the input.
//
//   lade::from(lade::io::files("train", "*.jsonl")) | lade::flat_map(lade::io::read_json_line)
//
// Members become fields:
// - string: text
// - number without fraction and exponent: integer; other number: double
// - true and false: the integers 1 and 0
// - object and array: their JSON, as text
// - null: no field
//
// Empty lines are skipped. Files compressed with gzip or Zstandard are recognised by their first
// bytes and decompressed.
//
// Throws error(invalid_data) naming the file, the line and the byte in the line for
//
// - a line that is not JSON or not an object,
// - a name that occurs twice, or text that is not UTF-8,
// - an integer of more than 64 bits, or a number that no double can hold.
inline constexpr detail::read_json_line read_json_line;

}  // namespace io
}  // namespace lade
