#include "mapped_file.hpp"

#include <lade/error.hpp>

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lade::io {

// Maps an open file; empty if it is.
static std::span<std::byte> map_descriptor(int fd, const std::string& path) {
  struct stat found{};
  if (::fstat(fd, &found) != 0) raise(errno, "map " + path);
  if (!S_ISREG(found.st_mode)) raise(S_ISDIR(found.st_mode) ? EISDIR : ENODEV, "map " + path);
  auto bytes = static_cast<std::size_t>(found.st_size);
  if (bytes == 0) return {};
  auto* begin = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (begin == MAP_FAILED) raise(errno, "map " + path);
  return {static_cast<std::byte*>(begin), bytes};
}

mapped_file::mapped_file(std::string path) : path_(std::move(path)) {
  int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) raise(errno, "open " + path_);
  try {
    bytes_ = map_descriptor(fd, path_);
  } catch (...) {
    ::close(fd);
    throw;
  }
  ::close(fd);
}

mapped_file::~mapped_file() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace lade::io
