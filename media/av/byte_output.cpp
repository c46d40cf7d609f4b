#include "byte_output.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lade::media {

void file_output::fail(int reason) const { raise(reason, "write " + path_); }

std::string behind_links(const std::string& path) {
  std::filesystem::path at(path);
  std::error_code failed;
  constexpr int most = 40;  // the kernel's limit
  for (int i = 0; i < most && std::filesystem::is_symlink(at, failed); ++i)
    at = at.parent_path() / std::filesystem::read_symlink(at, failed);
  return at.string();
}

// Whether the name still refers to the open file.
static bool has_name(int fd, const std::string& name) noexcept {
  struct ::stat open_file;
  struct ::stat named;
  return fstat(fd, &open_file) == 0 && stat(name.c_str(), &named) == 0 &&
         open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

// Before the part is locked, the muxer that owned it may rename it to its final name.
void file_output::open_part() {
  do {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
    fd_ = open(part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) fail(errno);
    if (flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      throw error(errc::invalid_argument, "write " + path_, "another muxer writes " + part_);
  } while (!has_name(fd_, part_));
  if (ftruncate(fd_, 0) != 0) fail(errno);
  if (mode_) set_mode(*mode_ | S_IRUSR | S_IWUSR);  // grants others no more than the old file
}

void file_output::set_mode(unsigned mode) {
  struct ::stat found;
  if (fstat(fd_, &found) != 0) fail(errno);
  if ((found.st_mode & 0777) != mode && fchmod(fd_, mode) != 0) fail(errno);
}

file_output::file_output(std::string path, std::string part) : path_(std::move(path)) {
  if (path_.empty()) throw error(errc::invalid_argument, "write a file", "its path is empty");
  struct ::stat found;
  const bool exists = stat(path_.c_str(), &found) == 0;
  if (exists && S_ISDIR(found.st_mode)) fail(EISDIR);
  try {
    if (exists && !S_ISREG(found.st_mode)) {
      fd_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
      if (fd_ < 0) fail(errno);
    } else {
      if (exists) mode_ = found.st_mode & 0777;
      part_ = std::move(part);
      open_part();
    }
  } catch (...) {
    if (fd_ >= 0) close(fd_);
    throw;
  }
}

file_output::~file_output() {
  if (fd_ >= 0) close(fd_);
}

// Writes to a file or pipe without SIGPIPE. Writing to a pipe without a reader fails with EPIPE and
// raises the signal, which would end the process. So the signal is blocked, and consumed if it was
// not pending before. A partial write may raise it, too.
static ssize_t write_unsignalled(int fd, std::span<const std::byte> bytes) noexcept {
  ::sigset_t pipe;
  ::sigset_t before;
  ::sigset_t waiting;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&waiting);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const auto written = ::write(fd, bytes.data(), bytes.size());
  const int reason = errno;
  const bool all = written == static_cast<ssize_t>(bytes.size());
  if (!all && sigismember(&waiting, SIGPIPE) == 0) {
    constexpr ::timespec now{};
    while (sigtimedwait(&pipe, nullptr, &now) < 0 && errno == EINTR) {}
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = reason;
  return written;
}

void file_output::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const auto written = can_seek()
                             ? pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset))
                             : write_unsignalled(fd_, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
    size_ = std::max(size_, offset);
  }
}

std::size_t file_output::read(std::span<std::byte> into, std::uint64_t offset) {
  std::size_t count = 0;
  while (count < into.size()) {
    const auto part = into.subspan(count);
    const auto found = pread(fd_, part.data(), part.size(), static_cast<off_t>(offset + count));
    if (found < 0 && errno == EINTR) continue;
    if (found < 0) fail(errno);
    if (found == 0) break;
    count += static_cast<std::size_t>(found);
  }
  return count;
}

// A second descriptor holds the lock until the file has its final name, so that no other muxer
// takes the part. Closing the first descriptor reports write errors.
void file_output::finish() {
  if (part_.empty()) {
    if (close(std::exchange(fd_, -1)) != 0) fail(errno);
    return;
  }
  if (mode_) set_mode(*mode_);
  if (fsync(fd_) != 0) fail(errno);
  const int lock = fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (lock < 0) fail(errno);
  int failure = close(std::exchange(fd_, lock)) != 0 ? errno : 0;
  if (failure == 0 && !has_name(lock, part_)) failure = ESTALE;
  if (failure == 0 && std::rename(part_.c_str(), behind_links(path_).c_str()) != 0) failure = errno;
  if (failure != 0) fail(failure);
  close(std::exchange(fd_, -1));
}

void memory_output::reserve(std::size_t bytes) {
  if (bytes <= memory_.size()) return;
  constexpr std::size_t least = 64 << 10;
  auto larger = allocate_now(std::max({bytes, 2 * memory_.size(), least}));
  std::copy_n(memory_.data(), size_, larger.data());
  memory_ = std::move(larger);
}

void memory_output::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  const auto first = static_cast<std::size_t>(offset);
  reserve(first + bytes.size());
  if (first > size_) std::fill(memory_.data() + size_, memory_.data() + first, std::byte{0});
  std::copy(bytes.begin(), bytes.end(), memory_.data() + first);
  size_ = std::max(size_, first + bytes.size());
}

std::size_t memory_output::read(std::span<std::byte> into, std::uint64_t offset) {
  if (offset >= size_) return 0;
  const auto first = static_cast<std::size_t>(offset);
  const auto count = std::min(into.size(), size_ - first);
  std::copy_n(memory_.data() + first, count, into.data());
  return count;
}

}  // namespace lade::media
