#include "manifest_rows.hpp"

#include "csv.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace lade::io {

manifest_rows::manifest_rows(std::string path, bool csv, std::size_t max_row_bytes)
    : path_(std::move(path)),
      csv_(csv),
      max_row_bytes_(max_row_bytes),
      fd_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0) raise(errno, "open " + path_);
}

manifest_rows::~manifest_rows() { ::close(fd_); }

// Reads at least as much again as is there, so that a long row is not searched often. Returns
// whether there was more.
bool manifest_rows::fill() {
  text_.erase(0, std::exchange(begin_, 0));
  auto had = text_.size();
  text_.resize(had + std::max<std::size_t>(had, 1 << 16));
  ssize_t got = 0;
  do {
    got = ::read(fd_, text_.data() + had, text_.size() - had);
  } while (got < 0 && errno == EINTR);
  text_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) raise(errno, "read " + path_);
  return got > 0;
}

std::string_view manifest_rows::take(std::size_t bytes) noexcept {
  auto row = std::string_view(text_).substr(begin_, bytes);
  begin_ += bytes;
  line_ = next_line_;
  next_line_ += static_cast<std::uint64_t>(std::count(row.begin(), row.end(), '\n'));
  if (row.ends_with('\n')) row.remove_suffix(1);
  if (row.ends_with('\r')) row.remove_suffix(1);
  return row;
}

std::optional<std::string_view> manifest_rows::next_line() {
  for (;;) {
    auto rest = std::string_view(text_).substr(begin_);
    auto end = csv_ ? csv_record_end(rest) : rest.find('\n') + 1;
    bool whole = csv_ ? end != rest.npos : end != 0;
    if ((whole ? end : rest.size()) > max_row_bytes_)
      throw error(errc::limit_exceeded, "read " + path_,
                  "the row at line " + std::to_string(next_line_) +
                      " is longer than max_row_bytes, " + std::to_string(max_row_bytes_));
    if (whole) return take(end);
    if (fill()) continue;
    if (begin_ == text_.size()) return std::nullopt;
    return take(text_.size() - begin_);
  }
}

std::optional<std::string_view> manifest_rows::next() {
  auto row = next_line();
  while (row && row->empty()) row = next_line();
  return row;
}

}  // namespace lade::io
