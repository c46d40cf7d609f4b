#include "cache_directory.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lade::detail {

// The meaning of the lock file's bytes.
static constexpr std::uint64_t used_byte = 0;
static constexpr std::uint64_t evicting_byte = 1;
static std::uint64_t byte_of_block(const block_key& key) noexcept {
  return 2 + (key.high & ((std::uint64_t{1} << 62) - 1));
}

static void make_cache_directory(const std::string& path) {
  auto doing = "open the cache " + path;
  std::error_code failure;
  auto parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, failure);
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) raise(errno, doing);
  struct ::stat found;
  if (::stat(path.c_str(), &found) != 0) raise(errno, doing);
  if (!S_ISDIR(found.st_mode)) raise(ENOTDIR, doing);
  if (found.st_uid != geteuid())
    throw error(errc::invalid_argument, doing, "it belongs to another user");
  if ((found.st_mode & 022) != 0)
    throw error(errc::invalid_argument, doing, "others may write to it");
  if (access(path.c_str(), R_OK | X_OK) != 0) raise(errno, doing);
}

static bool make_inner_directory(const std::string& path) {
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

bool cache_directory::lock_byte(std::uint64_t byte, int type, bool waits) const noexcept {
  if (lock_ < 0) return true;
  struct flock range{};
  range.l_type = static_cast<short>(type);
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(byte);
  range.l_len = 1;
  int result = 0;
  do result = fcntl(lock_, waits ? F_OFD_SETLKW : F_OFD_SETLK, &range);
  while (result != 0 && errno == EINTR && waits);
  return result == 0 || (errno != EAGAIN && errno != EACCES);  // the file system has no locks
}

cache_directory::cache_directory(std::string path, std::uint64_t limit_bytes)
    : path_(std::move(path)), limit_bytes_(limit_bytes) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  make_cache_directory(path_);
  lock_ = open((path_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  make_inner_directory(path_ + "/new");
  open_inner();
  try {
    bool is_alone = begin_use();
    tidy_up(is_alone);
    if (is_alone) lock_byte(used_byte, F_RDLCK, true);
  } catch (...) {
    close_all();
    throw;
  }
}

// Registers this process as a user. The first process creates the shared state, and is alone
// meanwhile: others wait. If it is killed, another process becomes the first.
bool cache_directory::begin_use() {
  constexpr int most_attempts = 3;
  for (int attempt = 1;; ++attempt) {
    bool is_alone = lock_ >= 0 && lock_byte(used_byte, F_WRLCK, false);
    if (!is_alone) lock_byte(used_byte, F_RDLCK, true);
    use_.emplace(path_ + "/use", is_alone);
    if (is_alone || use_->is_shared() || attempt == most_attempts) return is_alone;
    lock_byte(used_byte, F_UNLCK, false);
  }
}

// Removes temporary files. If no other process uses the directory, earlier reservations are stale:
// counts the blocks again.
void cache_directory::tidy_up(bool is_alone) {
  remove_temporaries(is_alone);
  if (is_alone) {
    use_->forget_runs();
    use_->begin_next_epoch();
  }
  if (is_alone || !use_->is_shared()) use_->set_used_bytes(count_blocks(nullptr));
  if (is_alone) evict(2);
}

cache_directory::~cache_directory() { close_all(); }

std::string cache_directory::path_of(const block_key& key) const {
  return fmt::format("{}/{}/{}", path_, key.digits()[0], name_of(key));
}

std::string cache_directory::name_of(const block_key& key) {
  auto digits = key.digits();
  return {digits.data() + 1, digits.size() - 1};
}

void cache_directory::open_inner() noexcept {
  for (std::size_t i = 0; i < inner_.size(); ++i) {
    auto path = fmt::format("{}/{:x}", path_, i);
    make_inner_directory(path);
    inner_[i] = open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  }
}

void cache_directory::close_all() noexcept {
  for (int fd : inner_)
    if (fd >= 0) close(fd);
  if (lock_ >= 0) close(lock_);
}

bool cache_directory::try_lock(const block_key& key) noexcept {
  return lock_byte(byte_of_block(key), F_WRLCK, false);
}

void cache_directory::unlock(const block_key& key) noexcept {
  lock_byte(byte_of_block(key), F_UNLCK, false);
}

// A file with a temporary name. It is locked while it is written, which distinguishes it from an
// abandoned one.
struct temporary_block {
  explicit temporary_block(const std::string& directory) {
    static std::atomic<unsigned> count = 0;
    path = fmt::format("{}/new/{}-{}-{}", directory, getpid(), ++count, std::random_device()());
    fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) flock(fd, LOCK_EX | LOCK_NB);
  }
  temporary_block(const temporary_block&) = delete;
  ~temporary_block() {
    if (fd < 0) return;
    if (!published) unlink(path.c_str());
    close(fd);
  }

  bool write(std::span<const std::byte> bytes) const noexcept {
    while (!bytes.empty()) {
      auto written = ::write(fd, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return true;
  }

  bool publish(int directory, const std::string& as) {
    return published = renameat(AT_FDCWD, path.c_str(), directory, as.c_str()) == 0;
  }

  std::string path;
  int fd;
  bool published = false;
};

static std::uint64_t bytes_of_file(int directory, const std::string& name) noexcept {
  struct ::stat found;
  bool is_there = fstatat(directory, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
  return is_there ? static_cast<std::uint64_t>(found.st_size) : 0;
}

cache_directory::outcome cache_directory::fail(int error_number) {
  failed_at_ = std::chrono::steady_clock::now().time_since_epoch().count();
  std::lock_guard lock(mutex_);
  failure_ = fmt::format("write to the cache {}: {}", path_,
                         std::generic_category().message(error_number));
  return outcome::failed;
}

cache_directory::outcome cache_directory::publish(const block_label& label,
                                                  std::span<const std::byte> content) {
  auto end = encode_label(label);
  auto bytes = content.size() + end.size();
  if (!use_->reserve(bytes, limit_bytes_)) {
    auto least = least_refused_.load();
    if (least == 0 || bytes < least) least_refused_ = bytes;
    refuse(bytes);
    return outcome::full;
  }
  auto name = name_of(label.key);
  int directory = directory_of(label.key);
  temporary_block block(path_);
  bool written =
      block.fd >= 0 && block.write(content) && block.write(std::as_bytes(std::span(end)));
  auto replaced = written ? bytes_of_file(directory, name) : 0;
  if (!written || !block.publish(directory, name)) {
    int reason = errno;
    use_->release(bytes);
    return fail(reason);
  }
  use_->release(replaced);
  use_->record_use(label.key);
  return outcome::published;
}

void cache_directory::remove(const block_key& key) {
  auto name = name_of(key);
  int directory = directory_of(key);
  auto bytes = bytes_of_file(directory, name);
  if (unlinkat(directory, name.c_str(), 0) == 0) use_->release(bytes);
}

bool cache_directory::has_room() const noexcept {
  auto least = least_refused_.load(std::memory_order_relaxed);
  auto used = std::min(use_->used_bytes(), limit_bytes_);
  return least == 0 || limit_bytes_ - used >= least;
}

void cache_directory::refuse(std::uint64_t bytes) noexcept { use_->refuse(bytes); }

bool cache_directory::may_write() const noexcept {
  constexpr std::chrono::steady_clock::duration pause = std::chrono::seconds(5);
  auto failed_at = failed_at_.load();
  return failed_at == 0 ||
         std::chrono::steady_clock::now().time_since_epoch().count() - failed_at > pause.count();
}

std::string cache_directory::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

// If other processes may write, removes only old files: a process locks its file shortly after
// creating it.
void cache_directory::remove_temporaries(bool is_alone) const {
  constexpr auto young = std::chrono::minutes(1);
  auto now = std::filesystem::file_time_type::clock::now();
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(path_ + "/new", ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    std::error_code failure;
    if (!is_alone && (now - at->last_write_time(failure) < young || failure)) continue;
    int fd = open(at->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlink(at->path().c_str());
    close(fd);
  }
}

struct cache_directory::found_block {
  std::string path;
  std::uint64_t bytes;
  unsigned age;
  std::filesystem::file_time_type written;
};

static std::optional<block_key> key_in_path(const std::string& directory, const std::string& name) {
  auto digits = directory + name;
  if (digits.size() != 32 || digits.find_first_not_of("0123456789abcdef") != digits.npos)
    return std::nullopt;
  return block_key{std::strtoull(digits.substr(0, 16).c_str(), nullptr, 16),
                   std::strtoull(digits.substr(16).c_str(), nullptr, 16)};
}

std::uint64_t cache_directory::count_blocks(std::vector<found_block>* into) const {
  std::uint64_t sum = 0;
  std::error_code ignored;
  for (char c : std::string_view("0123456789abcdef")) {
    std::string digits(1, c);
    auto directory = path_ + "/" + digits;
    for (std::filesystem::directory_iterator at(directory, ignored), end; !ignored && at != end;
         at.increment(ignored)) {
      auto key = key_in_path(digits, at->path().filename().string());
      auto bytes = key ? at->file_size(ignored) : 0;
      if (!key || ignored) continue;
      sum += bytes;
      if (into)
        into->push_back(
            {at->path().string(), bytes, use_->age(*key), at->last_write_time(ignored)});
    }
  }
  return sum;
}

std::uint64_t cache_directory::evict(unsigned past_epochs) {
  if (!lock_byte(evicting_byte, F_WRLCK, false)) return 0;
  remove_temporaries(false);
  least_refused_ = 0;
  auto refused = std::min(use_->take_refused(), limit_bytes_);
  std::vector<found_block> blocks;
  auto used = use_->used_bytes();
  auto excess = used - std::min(used, limit_bytes_);  // the limit may have been reduced
  auto available = limit_bytes_ - std::min(used, limit_bytes_);
  if (refused + excess > 0) count_blocks(&blocks);
  std::ranges::sort(blocks, [](auto& a, auto& b) {
    return a.age != b.age ? a.age > b.age : a.written < b.written;
  });
  std::uint64_t removed = 0;
  for (auto& each : blocks) {
    bool is_excess = excess > 0;
    if (!is_excess && (each.age <= past_epochs || available >= refused)) break;
    if (unlink(each.path.c_str()) != 0) continue;
    use_->release(each.bytes);
    if (is_excess)
      excess -= std::min(excess, each.bytes);
    else
      available += each.bytes;
    ++removed;
  }
  lock_byte(evicting_byte, F_UNLCK, false);
  return removed;
}

}  // namespace lade::detail
