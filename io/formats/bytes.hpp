// Little-endian numbers in the bytes of files.

#pragma once

#include <lade/detail/common/load_little.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace lade {

namespace io {

// The number at index `index` of contiguous numbers. Its bytes must exist.
template <class T>
T load_little(std::span<const std::byte> from, std::size_t index = 0) noexcept {
  return load_little<T>(from.data() + index * sizeof(T));
}

}  // namespace io

namespace detail {

// The first bytes of `from` as a number. They must exist.
template <std::unsigned_integral T>
T load_little(std::string_view from) noexcept {
  return io::load_little<T>(reinterpret_cast<const std::byte*>(from.data()));
}

template <std::unsigned_integral T>
void append_little(std::string& to, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace detail
}  // namespace lade
