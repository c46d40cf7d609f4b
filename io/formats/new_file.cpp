#include <lade/error.hpp>
#include <lade/url.hpp>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <random>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "new_file.hpp"

namespace lade::detail {

// Another on each machine that shares the directory; processes in containers have equal numbers.
static std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> count = 0;
  return path + ".tmp-" + std::to_string(std::random_device()()) + "-" + std::to_string(getpid()) +
         "-" + std::to_string(++count);
}

new_file::new_file(std::string path)
    : path_(std::move(path)),
      temporary_(temporary_name(path_)),
      fd_(open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (fd_ < 0) raise(errno, "write " + without_secrets(path_));
}

new_file::new_file(new_file&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)) {}

new_file::~new_file() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void new_file::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    auto written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) raise(errno, "write " + without_secrets(path_));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void new_file::publish() {
  if (close(std::exchange(fd_, -1)) != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0)
    raise(errno, "write " + without_secrets(path_));
  temporary_.clear();
}

}  // namespace lade::detail
