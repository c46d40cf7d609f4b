#include "cached_calls.hpp"

#include <lade/continue_on.hpp>
#include <lade/trace.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace lade::detail {

// The most bytes to copy between checks of the stop token: a fraction of a millisecond.
static constexpr std::size_t most_copied_bytes = std::size_t{1} << 20;

static bool may_call(const context& current) noexcept {
  return current.runtime && !current.stop.stop_requested() && !on_reactor_thread();
}

// Without memory for it, the trace lacks the event.
static void record_call(const context& current, const char* operation, const std::string& path,
                        std::chrono::steady_clock::time_point start, std::int64_t result) noexcept {
  if (!current.trace) return;
  try {
    current.trace->add_io(operation, path, start, std::chrono::steady_clock::now(), result);
  } catch (const std::exception&) {}
}

// Returns a descriptor that only names a file (O_PATH), if its path is cached.
static int find_cached(int directory, const std::string& path) noexcept {
  open_how arguments{};
  arguments.flags = O_PATH | O_CLOEXEC;
  if (directory != AT_FDCWD) arguments.flags |= O_NOFOLLOW;  // in a directory of lade
  arguments.resolve = RESOLVE_CACHED;
  return static_cast<int>(
      syscall(SYS_openat2, directory, path.c_str(), &arguments, sizeof arguments));
}

static bool is_regular_on_disk(int fd) noexcept {
  struct statx found{};
  bool known = statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &found) == 0;
  return known && S_ISREG(found.stx_mode) && found.stx_dev_major != 0;
}

// Opens the file that a descriptor names, unless a process has a lease on it: the kernel would wait
// for its end (fcntl(2), F_SETLEASE).
static int open_named(int fd) noexcept {
  std::array<char, 32> path{};
  (void)std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", fd);
  int opened = ::open(path.data(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (opened >= 0) (void)fcntl(opened, F_SETFL, 0);
  return opened;
}

// This function and the next are weak symbols: a test may replace them.
[[gnu::weak]] int open_cached(const context& current, int directory,
                              const std::string& path) noexcept {
  if (!may_call(current)) return -1;
  auto start =
      current.trace ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
  int named = find_cached(directory, path);
  if (named < 0) return -1;
  int opened = is_regular_on_disk(named) ? open_named(named) : -1;
  close(named);
  if (opened >= 0) record_call(current, "open", path, start, opened);
  return opened;
}

[[gnu::weak]] std::size_t read_cached(const context& current, int fd, std::span<std::byte> into,
                                      std::uint64_t offset, const std::string& path) noexcept {
  if (!may_call(current)) return 0;
  auto start =
      current.trace ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
  iovec piece{into.data(), std::min(into.size(), most_copied_bytes)};
  auto copied = preadv2(fd, &piece, 1, static_cast<off_t>(offset), RWF_NOWAIT);
  if (copied <= 0) return 0;
  record_call(current, "read", path, start, copied);
  return static_cast<std::size_t>(copied);
}

}  // namespace lade::detail
