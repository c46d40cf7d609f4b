// Epochs of runs, as caches count them.

#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace lade::detail {

// There is always one behind it: the last number that an epoch can have counts as the one before.
inline std::uint64_t counted_epoch(std::uint64_t of_run) noexcept {
  return std::min(of_run, std::numeric_limits<std::uint64_t>::max() - 1);
}

}  // namespace lade::detail
