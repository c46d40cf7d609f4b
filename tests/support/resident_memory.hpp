// The memory of the process, as the system counts it.

#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>

#include <malloc.h>

namespace lade::test {

// The value of a line of /proc/self/status, in bytes; 0 if there is no such line.
inline std::size_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == name) {
      std::size_t kib = 0;
      status >> kib;
      return kib << 10;
    }
  return 0;
}

// Resets the peak of the resident memory to its current size.
inline void forget_peak() { std::ofstream("/proc/self/clear_refs") << 5 << std::flush; }

// Not with a sanitizer, which reserves terabytes and keeps freed memory.
inline bool memory_can_be_measured() {
  forget_peak();
  return status_bytes("VmSize:") < std::size_t{1} << 40 &&
         status_bytes("VmHWM:") < status_bytes("VmRSS:") + (std::size_t{4} << 20);
}

// The growth of the resident memory during a call, at its peak, in bytes. Accurate to some pages,
// because each processor counts separately.
template <class F>
std::size_t growth_during(F call) {
  malloc_trim(0);
  forget_peak();
  const auto before = status_bytes("VmRSS:");
  call();
  return std::max(status_bytes("VmHWM:"), before) - before;
}

}  // namespace lade::test
