// The kernel that copies bytes. A thread copies 16 bytes if both addresses are multiples of 16,
// else one.

#pragma once

#include "grid_code.hpp"

#include <cstddef>
#include <cstdint>

#include "grid_mark.hpp"

namespace lade::cuda {

struct byte_copy {
  static constexpr unsigned threads = 256;
  static constexpr int group = 16;

  const unsigned char* from = nullptr;
  unsigned char* to = nullptr;
  std::int64_t bytes = 0;
};

struct alignas(byte_copy::group) copied_group {
  std::uint32_t at[byte_copy::group / 4];
};

LADE_GRID_CODE int bytes_per_thread(const byte_copy& copy) {
  return ((address_of(copy.from) | address_of(copy.to)) & (byte_copy::group - 1)) == 0
             ? byte_copy::group
             : 1;
}

// The work of one thread.
LADE_GRID_CODE void copy_group(const byte_copy& copy, const grid_block& block, int thread) {
  const int each = bytes_per_thread(copy);
  const auto first = (std::int64_t{block.x} * byte_copy::threads + thread) * each;
  if (each == byte_copy::group && first + each <= copy.bytes)
    return store_aligned(copy.to + first, load_aligned<copied_group>(copy.from + first));
  for (auto at = first; at < smaller(first + each, copy.bytes); ++at) copy.to[at] = copy.from[at];
}

inline grid_shape grid_of(const byte_copy& copy) {
  const auto threads = divided_up(copy.bytes, bytes_per_thread(copy));
  return {static_cast<unsigned>(divided_up(threads, byte_copy::threads)), 1, 1, byte_copy::threads,
          0};
}

}  // namespace lade::cuda

#undef LADE_GRID_CODE
