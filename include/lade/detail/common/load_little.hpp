// load_little(): reads little-endian numbers.

#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace lade::io {

// The number in the sizeof(T) bytes at `from`, which need not be aligned.
template <class T>
  requires(std::is_arithmetic_v<T>)
T load_little(const std::byte* from) noexcept {
  T value;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&value, from, sizeof(T));
  } else {
    std::byte bytes[sizeof(T)];
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes[sizeof(T) - 1 - i] = from[i];
    std::memcpy(&value, bytes, sizeof(T));
  }
  return value;
}

}  // namespace lade::io
