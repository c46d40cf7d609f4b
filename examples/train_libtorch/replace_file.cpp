#include "replace_file.hpp"

#include <lade/checksum.hpp>
#include <lade/error.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

#include <fcntl.h>
#include <unistd.h>

namespace {

class descriptor {
 public:
  descriptor(const std::string& path, int flags)
      : path_(path), number_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (number_ < 0) lade::raise(errno, "open " + path);
  }
  descriptor(const descriptor&) = delete;
  ~descriptor() { ::close(number_); }

  void write(std::string_view bytes) const {
    while (!bytes.empty()) {
      auto written = ::write(number_, bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR) lade::raise(errno, "write " + path_);
      if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void sync() const {
    if (::fsync(number_) != 0) lade::raise(errno, "sync " + path_);
  }

 private:
  const std::string& path_;
  int number_;
};

// CRC-32C as eight digits.
std::string checksum_of(std::string_view contents) {
  char digits[9];
  const lade::crc32c sum(std::as_bytes(std::span(contents)));
  std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(sum.value()));
  return digits;
}

}  // namespace

void sync_file(const std::string& path) { descriptor(path, O_RDONLY).sync(); }

void replace_file(const std::string& path, std::string_view contents) {
  const auto fresh = path + ".new";
  {
    descriptor file(fresh, O_WRONLY | O_CREAT | O_TRUNC);
    file.write(contents);
    file.write(checksum_of(contents));
    file.sync();
  }
  if (std::rename(fresh.c_str(), path.c_str()) != 0) lade::raise(errno, "rename " + fresh);
  const auto folder = std::filesystem::path(path).parent_path().string();
  sync_file(folder.empty() ? "." : folder);  // the name, too
}

std::string read_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string all((std::istreambuf_iterator<char>(file)), {});
  if (!file) lade::raise(errno ? errno : EIO, "read " + path);
  const std::size_t size = all.size() < 8 ? 0 : all.size() - 8;
  if (checksum_of(std::string_view(all).substr(0, size)) != all.substr(size))
    throw lade::error(lade::errc::invalid_data, "read " + path,
                      "it is damaged: its checksum is not that of its contents");
  all.resize(size);
  return all;
}
