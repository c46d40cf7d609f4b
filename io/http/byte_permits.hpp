// Limits how many bytes of response bodies are in flight.

#pragma once

#include <lade/wait_list.hpp>

#include <coroutine>
#include <cstdint>
#include <mutex>
#include <utility>

namespace lade::io::http {

// Grants permits in the order of the calls, each when the body fits below the limit. A body larger
// than the limit is granted when nothing else is in flight.
//
// A holder must wait for nothing but its server. It must acquire everything else first, memory
// above all: otherwise holders could wait for each other.
class byte_permits {
 public:
  class awaiter;

  explicit byte_permits(std::uint64_t limit) noexcept : limit_(limit) {}

  bool try_acquire(std::uint64_t bytes) {
    std::lock_guard lock(mutex_);
    return take(bytes);
  }

  // `co_await acquire(bytes)`. Throws error(stopped) if the caller is cancelled.
  [[nodiscard]] awaiter acquire(std::uint64_t bytes) noexcept;

  void release(std::uint64_t bytes);

 private:
  bool fits(std::uint64_t bytes) const noexcept {
    return in_flight_ == 0 || (in_flight_ < limit_ && bytes <= limit_ - in_flight_);
  }
  bool take(std::uint64_t bytes) noexcept {
    if (!waiters_.empty() || !fits(bytes)) return false;
    in_flight_ += bytes;
    return true;
  }

  const std::uint64_t limit_;
  std::mutex mutex_;
  wait_list waiters_;
  std::uint64_t in_flight_ = 0;
};

class byte_permits::awaiter : private waiter {
 public:
  awaiter(byte_permits& permits, std::uint64_t bytes) noexcept : permits_(permits), bytes_(bytes) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return park(coroutine, permits_.mutex_, permits_.waiters_,
                [this] { return permits_.take(bytes_); });
  }
  void await_resume() { finish("wait for bytes in flight"); }

 private:
  friend class byte_permits;

  byte_permits& permits_;
  std::uint64_t bytes_;
};

inline byte_permits::awaiter byte_permits::acquire(std::uint64_t bytes) noexcept {
  return {*this, bytes};
}

// The permits of one body. The destructor releases them.
class byte_share {
 public:
  explicit byte_share(byte_permits& permits) noexcept : permits_(permits) {}
  byte_share(const byte_share&) = delete;
  ~byte_share() { release(); }

  byte_permits& permits() const noexcept { return permits_; }

  bool try_acquire(std::uint64_t bytes) {
    if (!permits_.try_acquire(bytes)) return false;
    bytes_ += bytes;
    return true;
  }

  // Owns permits that have been acquired.
  void add(std::uint64_t acquired) noexcept { bytes_ += acquired; }

  void release() {
    if (bytes_ > 0) permits_.release(std::exchange(bytes_, 0));
  }

 private:
  byte_permits& permits_;
  std::uint64_t bytes_ = 0;
};

}  // namespace lade::io::http
