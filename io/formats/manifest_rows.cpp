#include "manifest_rows.hpp"

#include "csv.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace lade::io {

manifest_rows::manifest_rows(std::string name, bool csv, std::size_t max_row_bytes)
    : name_(std::move(name)), csv_(csv), max_row_bytes_(max_row_bytes) {}

void manifest_rows::append(std::string_view text) {
  text_.erase(0, std::exchange(begin_, 0));
  text_ += text;
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
  auto rest = std::string_view(text_).substr(begin_);
  auto end = csv_ ? csv_record_end(rest) : rest.find('\n') + 1;
  bool whole = csv_ ? end != rest.npos : end != 0;
  if ((whole ? end : rest.size()) > max_row_bytes_)
    throw error(errc::limit_exceeded, "read " + name_,
                fmt::format("the row at line {} is longer than max_row_bytes, {}", next_line_,
                            max_row_bytes_));
  if (whole) return take(end);
  if (!ended_ || rest.empty()) return std::nullopt;
  return take(rest.size());
}

std::optional<std::string_view> manifest_rows::next() {
  auto row = next_line();
  while (row && row->empty()) row = next_line();
  return row;
}

manifest_file::manifest_file(std::string path)
    : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0) raise(errno, "open " + path_);
}

manifest_file::~manifest_file() { ::close(fd_); }

void manifest_file::read_into(manifest_rows& rows) {
  text_.resize(std::max<std::size_t>(rows.rest_bytes(), 1 << 16));
  ssize_t got = 0;
  do {
    got = ::read(fd_, text_.data(), text_.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) raise(errno, "read " + path_);
  if (got == 0) return rows.end();
  rows.append(std::string_view(text_).substr(0, static_cast<std::size_t>(got)));
}

}  // namespace lade::io
