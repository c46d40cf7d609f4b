// Allocations of a test program: how many there are, and some that fail. Sanitizers bring an
// allocator of their own: nothing is counted and none fails there.

#pragma once

#include <cstdint>

namespace lade::test {

// How many allocations all threads have made so far.
std::uint64_t allocations_made() noexcept;

// As long as it lives, one allocation fails, of whatever thread and also of a C library: the first
// if `after` is 0, else as many later.
class failing_allocation {
 public:
  explicit failing_allocation(std::uint64_t after) noexcept;
  failing_allocation(const failing_allocation&) = delete;
  ~failing_allocation();

  // Whether it has failed by now.
  bool has_failed() const noexcept;
};

// Called on the thread of the tests before and after each, to free what is kept between them on
// purpose. May be set before the first test.
inline void (*free_what_is_kept)() = nullptr;

}  // namespace lade::test
