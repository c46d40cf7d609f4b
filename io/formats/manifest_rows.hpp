// Splits a manifest, whose text arrives in pieces, into rows.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lade::io {

class manifest_rows {
 public:
  // `name`: of the manifest, for errors. `csv`: a row ends at a line break outside of quotes.
  manifest_rows(std::string name, bool csv, std::size_t max_row_bytes);

  // Returns the next row that is not empty, without its line break. The view is valid until the
  // next call. Returns nothing if there is no complete row: more text is needed, or all rows were
  // returned if the text has ended.
  std::optional<std::string_view> next();

  void append(std::string_view text);
  void end() noexcept { ended_ = true; }
  bool ended() const noexcept { return ended_; }

  // The size of the text that has not been returned yet.
  std::size_t rest_bytes() const noexcept { return text_.size() - begin_; }

  // The first line of the last row returned, from 1 on.
  std::uint64_t line() const noexcept { return line_; }

 private:
  std::optional<std::string_view> next_line();
  std::string_view take(std::size_t bytes) noexcept;

  std::string name_;
  bool csv_;
  std::size_t max_row_bytes_;
  std::string text_;  // text from begin_ on was not returned yet
  std::size_t begin_ = 0;
  bool ended_ = false;
  std::uint64_t line_ = 0;
  std::uint64_t next_line_ = 1;
};

// A file that is read with blocking calls.
class manifest_file {
 public:
  // Throws error if it cannot be opened.
  explicit manifest_file(std::string path);
  manifest_file(const manifest_file&) = delete;
  ~manifest_file();

  // Appends at least as much text as the rows hold, so that a long row is not searched often; or
  // ends them.
  void read_into(manifest_rows& rows);

 private:
  std::string path_;
  int fd_;
  std::string text_;  // the last text read
};

}  // namespace lade::io
