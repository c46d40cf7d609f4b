// What the kernel keeps of files, and how much more it may.

#pragma once

#include <lade/detail/waiter.hpp>

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include <sys/types.h>

namespace lade::detail {

// What is left of the memory that files may fill. Any thread.
class page_cache_room {
 public:
  explicit page_cache_room(std::uint64_t bytes) noexcept : bytes_(bytes) {}

  // Takes the bytes of a file. False, from then on, if there are not as many.
  bool take(std::uint64_t bytes) noexcept;

  // That of this process: half of the memory that was available when it first asked.
  static page_cache_room& of_process();

 private:
  std::atomic<std::uint64_t> bytes_;
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

// Whether the kernel says (cachestat(2), Linux 6.5) that it does not have all of the first `bytes`
// bytes of a file.
bool misses_page_cache(int fd, std::uint64_t bytes) noexcept;

}  // namespace lade::detail
