#include "cache_use.hpp"

#include "caches.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lade::detail {

static constexpr std::uint64_t use_magic = 0x316573756564616c;  // "ladeuse1"

// Whether the file has this format, or is new and empty of values.
static bool is_use_file(int fd, std::size_t bytes) {
  struct ::stat found;
  std::uint64_t magic = 0;
  if (fstat(fd, &found) != 0 || static_cast<std::size_t>(found.st_size) != bytes) return false;
  return pread(fd, &magic, sizeof magic, 0) == sizeof magic && (magic == use_magic || magic == 0);
}

// Returns whether the file has the right size and format, with disk space allocated for all of it:
// a write to a mapped page without space would raise SIGBUS.
static bool make_use_file(int fd, std::size_t bytes, bool may_write) {
  if (is_use_file(fd, bytes)) return true;
  return may_write && ftruncate(fd, 0) == 0 &&
         posix_fallocate(fd, 0, static_cast<off_t>(bytes)) == 0;
}

static void* map_use(int fd, std::size_t bytes) {
  int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
}

cache_use::cache_use(const std::string& path, bool is_alone) {
  constexpr auto bytes = header_bytes + table_bytes;
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  memory_ = fd >= 0 && make_use_file(fd, bytes, is_alone) ? map_use(fd, bytes) : MAP_FAILED;
  is_shared_ = memory_ != MAP_FAILED;
  if (fd >= 0) close(fd);
  if (memory_ == MAP_FAILED) memory_ = map_use(-1, bytes);
  if (memory_ == MAP_FAILED) raise(errno, "map " + path);
  header().magic.store(use_magic);
}

cache_use::~cache_use() { munmap(memory_, header_bytes + table_bytes); }

bool cache_use::reserve(std::uint64_t bytes, std::uint64_t limit) noexcept {
  auto& used = header().used_bytes;
  auto before = used.load();
  do
    if (bytes > limit || before > limit - bytes) return false;
  while (!used.compare_exchange_weak(before, before + bytes));
  return true;
}

void cache_use::release(std::uint64_t bytes) noexcept {
  auto& used = header().used_bytes;
  auto before = used.load();
  while (!used.compare_exchange_weak(before, before - std::min(before, bytes))) {}
}

std::atomic<std::uint8_t>& cache_use::byte_of(const block_key& key) const noexcept {
  auto* table = static_cast<std::byte*>(memory_) + header_bytes;
  return *reinterpret_cast<std::atomic<std::uint8_t>*>(table + key.low % table_bytes);
}

// Writes only a changed byte, so that the page stays clean otherwise.
void cache_use::record_use(const block_key& key) noexcept {
  auto& byte = byte_of(key);
  auto now = stamp_of(header().sequence.load(std::memory_order_relaxed));
  if (byte.load(std::memory_order_relaxed) != now) byte.store(now, std::memory_order_relaxed);
}

unsigned cache_use::age(const block_key& key) const noexcept {
  unsigned stamp = byte_of(key).load();
  if (stamp == 0) return 254;
  return (stamp_of(header().sequence.load()) + 255u - stamp) % 255;
}

bool cache_use::begin_epoch(std::uint64_t of_run) noexcept {
  of_run = counted_epoch(of_run);
  auto& latest = header().run_epoch;
  auto before = latest.load();
  do
    if (before > of_run) return false;
  while (!latest.compare_exchange_weak(before, of_run + 1));
  if (before == 0) return false;  // the first of all
  begin_next_epoch();
  return true;
}

}  // namespace lade::detail
