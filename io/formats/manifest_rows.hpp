// The rows of a manifest's file, read with blocking calls.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lade::io {

class manifest_rows {
 public:
  // `csv`: rows end at an end of line outside of quotes. Throws error if the file cannot be opened.
  manifest_rows(std::string path, bool csv, std::size_t max_row_bytes);
  manifest_rows(const manifest_rows&) = delete;
  ~manifest_rows();

  // The next row that is not empty, without the end of its line; nothing at the end. Valid until
  // the next call.
  std::optional<std::string_view> next();

  // Where the row that next() returned last begins, from 1 on.
  std::uint64_t line() const noexcept { return line_; }

 private:
  std::optional<std::string_view> next_line();
  bool fill();
  std::string_view take(std::size_t bytes) noexcept;

  std::string path_;
  bool csv_;
  std::size_t max_row_bytes_;
  int fd_;
  std::string text_;  // read, from begin_ on not yet returned
  std::size_t begin_ = 0;
  std::uint64_t line_ = 0;
  std::uint64_t next_line_ = 1;
};

}  // namespace lade::io
