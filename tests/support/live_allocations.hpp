// Counts the allocations of a test program, and makes some of them fail. Sanitizers have their own
// allocators: under them, nothing is counted, and allocations fail only with failing_new.hpp.

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

// Number of allocations that all threads have made so far.
std::uint64_t allocations_made() noexcept;

// Number of blocks that the process has allocated and not freed, including those of C libraries. 0
// if nothing is counted.
long blocks_in_use() noexcept;

// While the object lives, one allocation fails: the one that follows `after` others. Allocations of
// all threads and of C libraries count.
class failing_allocation {
 public:
  explicit failing_allocation(std::uint64_t after) noexcept;
  failing_allocation(const failing_allocation&) = delete;
  ~failing_allocation() { end(); }

  // From now on, no allocation fails.
  void end() noexcept;

  // Whether the allocation has failed.
  bool has_failed() const noexcept;

  // Number of allocations since the construction, before the one that failed.
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

// For an allocator: whether the current allocation must fail. Counts it.
bool allocation_fails() noexcept;

// Called on the thread of the tests before and after each test, to free memory that is kept between
// tests on purpose. May be set before the first test.
inline void (*free_what_is_kept)() = nullptr;

}  // namespace lade::test
