// Decides which files are read through the page cache, and which past it with O_DIRECT.

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

// Decides whether a file that is not cached is read through the page cache. Any thread.
class page_cache_use {
 public:
  // `budget`: bytes that may be read into the page cache.
  explicit page_cache_use(std::uint64_t budget) noexcept : budget_(budget) {}

  // The instance of this process. Its budget is half of the memory available at the first call.
  static page_cache_use& of_process();

  // Whether to ask the kernel how much of the next file is cached. While the last files were cached
  // whole, only one of eight is probed: a probe costs a tenth of reading a cached file.
  bool should_probe() noexcept;

  // Whether a probed file is read past the page cache.
  // `file`: a number that identifies it. `missing`: bytes that are not cached.
  // `hurried`: the run waits for the disk.
  // A hurried run reads a file past the page cache the first time: direct I/O is faster than the
  // kernel's copy. All other files go through the page cache while the budget lasts.
  bool should_bypass(std::uint64_t file, std::uint64_t missing, bool hurried) noexcept;

 private:
  static constexpr unsigned cached_files_for_trust = 32;
  static constexpr unsigned files_per_probe = 8;

  bool reserve(std::uint64_t bytes) noexcept;
  bool was_read(std::uint64_t file) noexcept;  // and records this read

  std::atomic<std::uint64_t> budget_;

  // Estimates: updates of several threads may be lost.
  std::atomic<unsigned> cached_in_a_row_ = 0;
  std::atomic<unsigned> files_ = 0;  // calls of should_probe()

  // A bit for each hash of a file that has been read. A file whose bit another file has set counts
  // as read: it goes into the page cache one epoch early.
  std::array<std::atomic<std::uint64_t>, std::size_t{1} << 18> read_{};
};

// Limits the bytes of O_DIRECT reads in flight at one device. The kernel cannot cancel such a read,
// so a stop waits for all of them: the limit bounds that wait. Any thread.
class direct_reads {
 public:
  static constexpr std::size_t max_bytes = std::size_t{32} << 20;

  class awaiter;

  // Bytes of the limit that a read holds. The destructor releases them.
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

  // The instance of a device (st_dev). Devices whose numbers are equal modulo 61 share one.
  static direct_reads& at(dev_t device) noexcept;

  // `co_await acquire(bytes)` returns a share of at most max_bytes, in the order of the calls.
  // Throws error(stopped) if the awaiting coroutine is asked to stop.
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

// The value of the line `name` ("MemFree:") in text with the format of /proc/meminfo, converted
// from KiB to bytes; 0 if there is no such line.
std::uint64_t memory_figure(const std::string& text, const std::string& name);

// How many of the first `bytes` bytes of a file are not in the page cache, in whole pages. Empty if
// the kernel does not report it: cachestat(2) exists since Linux 6.5.
std::optional<std::uint64_t> uncached_bytes(int fd, std::uint64_t bytes) noexcept;

}  // namespace lade::detail
