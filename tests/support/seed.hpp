// What random tests begin with.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace lade::test {

// The seed of this run of a test, for SCOPED_TRACE: another each time, or what the environment
// variable LADE_SEED says.
inline std::uint64_t new_seed() {
  auto* given = std::getenv("LADE_SEED");
  return given ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

}  // namespace lade::test
