// Reads the lines of a stream, and counts them.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>
#include <lade/task.hpp>
#include <lade/url.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lade::io {

class line_reader {
 public:
  line_reader(async_generator<buffer> from, std::string name, std::size_t max_line_bytes)
      : from_(std::move(from)), name_(without_secrets(name)), max_line_bytes_(max_line_bytes) {}

  // Returns the next line, or nothing at the end.
  task<std::optional<buffer>> next();

  // The same if the whole line is in the stream's buffer. Otherwise returns nothing, and next()
  // must be called.
  std::optional<buffer> try_next();

  // The number of the last line returned, from 1 on.
  std::uint64_t number() const noexcept { return number_; }

 private:
  task<buffer> join();
  void keep(buffer part);
  buffer take_line(std::size_t bytes);

  async_generator<buffer> from_;
  std::string name_;
  std::size_t max_line_bytes_;
  std::uint64_t number_ = 0;
  buffer ready_;               // not consumed yet
  std::vector<buffer> parts_;  // of the current line
  std::size_t bytes_ = 0;      // in parts_
};

}  // namespace lade::io
