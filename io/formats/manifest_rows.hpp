// The rows of a manifest, from text that comes in pieces.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lade::io {

class manifest_rows {
 public:
  // `name`: what errors call the manifest. `csv`: rows end at an end of line outside of quotes.
  manifest_rows(std::string name, bool csv, std::size_t max_row_bytes);

  // The next row that is not empty, without the end of its line. Nothing if there is no whole one:
  // more text is needed, or, once it has ended, there are no more. Valid until the next call.
  std::optional<std::string_view> next();

  void append(std::string_view text);
  void end() noexcept { ended_ = true; }
  bool ended() const noexcept { return ended_; }

  // How much text has not been returned yet.
  std::size_t rest_bytes() const noexcept { return text_.size() - begin_; }

  // Where the row that next() returned last begins, from 1 on.
  std::uint64_t line() const noexcept { return line_; }

 private:
  std::optional<std::string_view> next_line();
  std::string_view take(std::size_t bytes) noexcept;

  std::string name_;
  bool csv_;
  std::size_t max_row_bytes_;
  std::string text_;  // from begin_ on not yet returned
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

  // Gives the rows more text, at least as much again as they have, so that a long row is not
  // searched often; or ends them.
  void read_into(manifest_rows& rows);

 private:
  std::string path_;
  int fd_;
  std::string text_;  // that was read last
};

}  // namespace lade::io
