// Files that are cut off or damaged, and calls that must refuse them or do without what is lost.
// LADE_CORRUPT_ROUNDS says how many of each file.

#pragma once

#include <lade/buffer.hpp>
#include <lade/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>

namespace lade::media {

inline int corrupt_rounds(int unless_given) {
  const auto* given = std::getenv("LADE_CORRUPT_ROUNDS");
  return given ? std::atoi(given) : unless_given;
}

inline buffer copy_of(const buffer& file, std::size_t bytes) {
  buffer copy(bytes);
  std::memcpy(copy.data(), file.data(), bytes);
  return copy;
}

inline buffer with_flips(const buffer& file, std::mt19937_64& random) {
  auto copy = copy_of(file, file.size());
  const auto flips = 1 + random() % 20;
  for (std::uint64_t i = 0; i < flips; ++i)
    copy.data()[random() % copy.size()] ^= static_cast<std::byte>(1U << random() % 8);
  return copy;
}

// Whether a call returns; if not, it must throw an error of lade.
template <class F>
bool succeeds(const F& call) {
  try {
    call();
    return true;
  } catch (const error&) {
    return false;
  } catch (const std::bad_alloc&) {  // FFmpeg refuses an absurd size
    return false;
  }
}

}  // namespace lade::media
