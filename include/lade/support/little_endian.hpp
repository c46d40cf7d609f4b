// load_little(), append_little(): little-endian numbers in the bytes of files.

#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace lade::support {

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

// The number at index `index` of contiguous numbers. Its bytes must exist.
template <class T>
T load_little(std::span<const std::byte> from, std::size_t index = 0) noexcept {
  return load_little<T>(from.data() + index * sizeof(T));
}

// The first sizeof(T) bytes of `from` as a number. They must exist.
template <std::unsigned_integral T>
T load_little(std::string_view from) noexcept {
  return load_little<T>(reinterpret_cast<const std::byte*>(from.data()));
}

template <std::unsigned_integral T>
void append_little(std::string& to, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace lade::support
