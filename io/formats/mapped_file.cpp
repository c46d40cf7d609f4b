#include "mapped_file.hpp"

#include <lade/error.hpp>

#include <cerrno>
#include <memory>
#include <span>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lade::io {

// Maps an open file; empty if the file is empty.
static buffer map_descriptor(int fd, const std::string& path) {
  struct stat found{};
  if (::fstat(fd, &found) != 0) raise(errno, "map " + path);
  if (!S_ISREG(found.st_mode)) raise(S_ISDIR(found.st_mode) ? EISDIR : ENODEV, "map " + path);
  auto bytes = static_cast<std::size_t>(found.st_size);
  if (bytes == 0) return {};
  auto* begin = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (begin == MAP_FAILED) raise(errno, "map " + path);
  const std::shared_ptr<const void> owner(begin, [begin, bytes](auto*) { ::munmap(begin, bytes); });
  return {owner, {static_cast<std::byte*>(begin), bytes}};
}

buffer map_file(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) raise(errno, "open " + path);
  buffer mapped;
  try {
    mapped = map_descriptor(fd, path);
  } catch (...) {
    ::close(fd);
    throw;
  }
  ::close(fd);
  return mapped;
}

}  // namespace lade::io
