// Numbers in the bytes of files, low byte first.

#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

namespace lade::io {

// The number at `from`, which needs not be aligned. Its bytes must be there.
template <class T>
  requires(std::is_arithmetic_v<T>)
T load_little(const std::byte* from) noexcept {
  std::byte bytes[sizeof(T)];
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bytes[std::endian::native == std::endian::little ? i : sizeof(T) - 1 - i] = from[i];
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// The same of the `index`-th of numbers that follow each other.
template <class T>
T load_little(std::span<const std::byte> from, std::size_t index = 0) noexcept {
  return load_little<T>(from.data() + index * sizeof(T));
}

}  // namespace lade::io
