// How much memory the process has, as the system counts it.

#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>

#include <malloc.h>

namespace lade::test {

// A line of the process's status, in bytes.
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

// The peak of the resident memory begins again.
inline void forget_peak() { std::ofstream("/proc/self/clear_refs") << 5 << std::flush; }

// Sanitizers reserve terabytes, and keep what is freed.
inline bool memory_can_be_measured() {
  forget_peak();
  return status_bytes("VmSize:") < std::size_t{1} << 40 &&
         status_bytes("VmHWM:") < status_bytes("VmRSS:") + (std::size_t{4} << 20);
}

// How far the memory of the process rises above what it is now; to some pages, since each processor
// counts for itself.
template <class F>
std::size_t growth_during(F call) {
  malloc_trim(0);
  forget_peak();
  const auto before = status_bytes("VmRSS:");
  call();
  return std::max(status_bytes("VmHWM:"), before) - before;
}

}  // namespace lade::test
