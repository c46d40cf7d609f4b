// Numbers in files: little-endian, at any address.

#pragma once

#include <bit>
#include <concepts>
#include <cstring>
#include <string>
#include <string_view>

namespace lade::detail {

// The first bytes of `from` as a number. It has so many.
template <std::unsigned_integral T>
T load_little(std::string_view from) noexcept {
  T value;
  std::memcpy(&value, from.data(), sizeof value);
  if constexpr (std::endian::native == std::endian::big) {
    T turned = 0;
    for (std::size_t i = 0; i < sizeof value; ++i)
      turned = static_cast<T>(turned << 8 | static_cast<unsigned char>(from[sizeof value - 1 - i]));
    value = turned;
  }
  return value;
}

template <std::unsigned_integral T>
void append_little(std::string& to, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace lade::detail
