// Allocations of a test program: how many there are, and some that fail. Sanitizers bring an
// allocator of their own: nothing is counted there, and none fails without failing_new.hpp.

#pragma once

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define LADE_SANITIZED_ADDRESSES
#elif defined(__SANITIZE_THREAD__)
#define LADE_SANITIZED_THREADS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LADE_SANITIZED_ADDRESSES
#elif __has_feature(thread_sanitizer)
#define LADE_SANITIZED_THREADS
#endif
#endif

namespace lade::test {

// How many allocations all threads have made so far.
std::uint64_t allocations_made() noexcept;

// How many blocks of memory the process has, those of C libraries included; 0 where nothing is
// counted.
long blocks_in_use() noexcept;

// As long as it lives, one allocation fails, of whatever thread and also of a C library: the first
// if `after` is 0, else as many later.
class failing_allocation {
 public:
  explicit failing_allocation(std::uint64_t after) noexcept;
  failing_allocation(const failing_allocation&) = delete;
  ~failing_allocation() { end(); }

  // None fails from now on.
  void end() noexcept;

  // Whether it has failed by now.
  bool has_failed() const noexcept;

  // How many allocations of all kinds there have been before one failed.
  std::uint64_t passed() const noexcept;

 private:
  std::uint64_t after_;
};

// Whether allocations can fail in this build, in a program with failing_new.hpp.
#ifdef LADE_SANITIZED_THREADS
constexpr bool allocations_can_fail = false;
#else
constexpr bool allocations_can_fail = true;
#endif

// Whether the allocation that is being made is to fail.
bool allocation_fails() noexcept;

// Called on the thread of the tests before and after each, to free what is kept between them on
// purpose. May be set before the first test.
inline void (*free_what_is_kept)() = nullptr;

}  // namespace lade::test
