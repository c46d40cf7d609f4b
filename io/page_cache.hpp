// What the kernel keeps of files, how much more it may, and what is read past it.

#pragma once

#include <lade/wait_list.hpp>

#include <array>
#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include <sys/types.h>

namespace lade::detail {

// Decides which files that the page cache lacks are read into it. Any thread.
class page_cache_use {
 public:
  // `room`: the bytes that may be read into the page cache.
  explicit page_cache_use(std::uint64_t room) noexcept : room_(room) {}

  // For this process: half of the memory that was available when it first asked.
  static page_cache_use& of_process();

  // Whether to ask the kernel how much of the next file it has. While it had the last files whole,
  // only one of eight is looked at: the question costs a tenth of reading a cached file.
  bool should_look() noexcept;

  // Whether a file that has been looked at is to be read past the page cache. `file` identifies it;
  // `missing` bytes of it are not cached. Files that are read for the first time are, if the run is
  // `hurried`: if it waits for the disk, which fills memory itself faster than the kernel can copy.
  // The others go into the page cache, as long as there is room.
  bool should_bypass(std::uint64_t file, std::uint64_t missing, bool hurried) noexcept;

 private:
  static constexpr unsigned cached_files_for_trust = 32;
  static constexpr unsigned files_for_each_look = 8;

  bool take_room(std::uint64_t bytes) noexcept;
  bool was_read(std::uint64_t file) noexcept;  // notes that it is read

  std::atomic<std::uint64_t> room_;

  // Counted without synchronisation between threads: an estimate.
  std::atomic<unsigned> cached_in_a_row_ = 0;
  std::atomic<unsigned> asked_ = 0;

  // A bit for each hash of a file that has been read. Files that share one are taken for read, and
  // then go into the page cache a pass earlier.
  std::array<std::atomic<std::uint64_t>, std::size_t{1} << 18> read_{};
};

// The O_DIRECT reads in flight at one device. The kernel does not cancel them, so a stop waits for
// all that have begun: what they may read together is bounded. Any thread.
class direct_reads {
 public:
  static constexpr std::size_t max_bytes = std::size_t{32} << 20;

  class awaiter;

  // Bytes that a read has taken of the bound, returned by the destructor.
  class share {
   public:
    share() = default;
    share(share&& other) noexcept;
    share& operator=(share&& other) noexcept;
    ~share();

   private:
    friend class awaiter;
    share(direct_reads& from, std::size_t bytes) noexcept : from_(&from), bytes_(bytes) {}

    direct_reads* from_ = nullptr;
    std::size_t bytes_ = 0;
  };

  // Those of a device, as fstat(2) names it. Few enough devices share one that it does not matter.
  static direct_reads& at(dev_t device) noexcept;

  // `co_await acquire(bytes)` returns a share of at most max_bytes, in the order of the calls.
  // Throws error(stopped) when the awaiting coroutine is asked to stop.
  [[nodiscard]] awaiter acquire(std::size_t bytes) noexcept;

 private:
  bool take(std::size_t bytes) noexcept;  // with the mutex held
  void release(std::size_t bytes) noexcept;

  std::mutex mutex_;
  wait_list waiters_;          // guarded by mutex_
  std::size_t in_flight_ = 0;  // guarded by mutex_
};

class direct_reads::awaiter : private waiter {
 public:
  awaiter(direct_reads& device, std::size_t bytes) noexcept : device_(device), bytes_(bytes) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return park(coroutine, device_.mutex_, device_.waiters_,
                [this] { return device_.waiters_.empty() && device_.take(bytes_); });
  }
  share await_resume();

 private:
  friend class direct_reads;

  direct_reads& device_;
  std::size_t bytes_;
};

inline direct_reads::awaiter direct_reads::acquire(std::size_t bytes) noexcept {
  return {*this, bytes};
}

// The figure in bytes behind `name`, which ends with a colon, in text like that of /proc/meminfo,
// whose figures are kibibytes; 0 if there is none.
std::uint64_t memory_figure(const std::string& text, const std::string& name);

// How many of the first `bytes` bytes of a file the page cache lacks, in whole pages; nothing where
// the kernel does not report it (cachestat(2) is of Linux 6.5).
std::optional<std::uint64_t> uncached_bytes(int fd, std::uint64_t bytes) noexcept;

}  // namespace lade::detail
