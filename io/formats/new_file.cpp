#include <lade/error.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "new_file.hpp"

namespace lade::detail {

static constexpr std::string_view temporary_mark = ".tmp-";

// An id that is equal for processes that see each other's locks locally, including processes in
// containers: the boot id of the system.
static std::string id_of_system() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  if (!std::getline(file, id)) id = "unknown";
  std::erase(id, '-');
  return id;
}

// A unique name, also among machines that share the directory. Processes in containers may have
// equal process ids.
static std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> count = 0;
  return fmt::format("{}{}{}-{}-{}-{}", path, temporary_mark, id_of_system(),
                     std::random_device()(), getpid(), ++count);
}

// Whether temporary_name could have made this name.
static bool is_name_of_temporary(std::string_view name, std::string_view target) noexcept {
  if (name.size() <= target.size() || !name.starts_with(target)) return false;
  name.remove_prefix(target.size());
  if (!name.starts_with(temporary_mark)) return false;
  name.remove_prefix(temporary_mark.size());
  auto is_expected = [](char c) {
    return c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
  };
  return std::ranges::count(name, '-') == 3 && std::ranges::all_of(name, is_expected);
}

static bool may_be_locked_elsewhere(const struct ::stat& found) noexcept {
  constexpr std::time_t day = 24 * 60 * 60;
  return std::time(nullptr) - found.st_mtime < day;
}

static void remove_if_abandoned(const std::filesystem::path& path, bool is_of_this_system) {
  int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  struct ::stat found;
  bool is_file = fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
  if (is_file && (is_of_this_system || !may_be_locked_elsewhere(found)) &&
      flock(fd, LOCK_EX | LOCK_NB) == 0)
    unlink(path.c_str());
  close(fd);
}

static void remove_abandoned(const std::filesystem::path& target) {
  auto file_name = id_of_system() + "-";
  auto prefix = target.filename().string();
  auto directory = target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(directory, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    auto name = at->path().filename().string();
    if (!is_name_of_temporary(name, prefix)) continue;
    auto rest = std::string_view(name).substr(prefix.size() + temporary_mark.size());
    remove_if_abandoned(at->path(), rest.starts_with(file_name));
  }
}

// Creates and locks the file. Before the lock, another process may remove it as abandoned; then
// tries again.
void new_file::open_temporary() {
  bool is_there = false;
  while (!is_there) {
    temporary_ = temporary_name(path_);
    fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) raise(errno, "write " + without_secrets(path_));
    while (flock(fd_, LOCK_EX) != 0 && errno == EINTR) {}
    struct ::stat found;
    is_there = fstat(fd_, &found) != 0 || found.st_nlink > 0;
    if (!is_there) close(std::exchange(fd_, -1));
  }
}

new_file::new_file(std::string path) : path_(std::move(path)) {
  remove_abandoned(path_);
  open_temporary();
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

// The second descriptor holds the lock until the file has its final name. Closing the first one
// reports write errors.
void new_file::publish() {
  int lock = fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  int failure = lock < 0 ? errno : 0;
  if (close(std::exchange(fd_, -1)) != 0) failure = errno;
  if (failure == 0 && std::rename(temporary_.c_str(), path_.c_str()) != 0) failure = errno;
  if (failure == 0) temporary_.clear();
  if (lock >= 0) close(lock);
  if (failure != 0) raise(failure, "write " + without_secrets(path_));
}

}  // namespace lade::detail
