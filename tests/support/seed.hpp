// The seed of a random test.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace lade::test {

// Returns a new random seed, or the value of the environment variable LADE_SEED if it is set. Print
// it by SCOPED_TRACE.
inline std::uint64_t new_seed() {
  auto* given = std::getenv("LADE_SEED");
  return given ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

}  // namespace lade::test
