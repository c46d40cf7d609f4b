// How one pass over a pipeline is made.

#pragma once

#include <cstddef>
#include <cstdint>

namespace lade {

struct run_options {
  std::uint64_t epoch = 0;  // shuffles and random transformations differ from epoch to epoch
  std::uint64_t seed = 0;   // of random transformations; a shuffle has a seed of its own

  // Finished items that may wait for the consumer, beyond those inside of the stages. Raise it
  // where items are small and many: the run is then woken once for half of them.
  std::size_t ready = 2;
};

// What a stage does with an item whose function throws.
enum class on_error : std::uint8_t {
  fail,  // the run ends, and the failure is rethrown to the consumer
  skip,  // the item is dropped, counted and named in run.failures()
};

}  // namespace lade
