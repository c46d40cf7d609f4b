// byte_view: bounds-checked reads of untrusted bytes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lade::support {

// A view of the bytes of a file, which must outlive it. No read passes the end.
class byte_view {
 public:
  byte_view() = default;
  byte_view(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t size() const noexcept { return bytes_.size(); }
  bool empty() const noexcept { return bytes_.empty(); }
  const std::uint8_t* data() const noexcept {
    return reinterpret_cast<const std::uint8_t*>(bytes_.data());
  }
  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

  // The byte at `at`; 0 at or after the end.
  std::uint8_t operator[](std::size_t at) const noexcept {
    return at < size() ? std::to_integer<std::uint8_t>(bytes_[at]) : std::uint8_t{0};
  }

  // The unsigned number in `count` bytes from `at`, up to 8, little-endian or big-endian; 0 if they
  // pass the end.
  std::uint64_t little(std::size_t at, std::size_t count) const noexcept {
    std::uint64_t value = 0;
    for (std::size_t i = count; holds(at, count) && i-- > 0;) value = value << 8 | (*this)[at + i];
    return value;
  }
  std::uint64_t big(std::size_t at, std::size_t count) const noexcept {
    std::uint64_t value = 0;
    for (std::size_t i = 0; holds(at, count) && i < count; ++i)
      value = value << 8 | (*this)[at + i];
    return value;
  }

  bool holds(std::size_t at, std::size_t count) const noexcept {
    return at <= size() && count <= size() - at;
  }

  // `count` bytes from `at`; empty if they pass the end.
  byte_view part(std::size_t at, std::size_t count) const noexcept {
    return holds(at, count) ? byte_view(bytes_.subspan(at, count)) : byte_view();
  }
  byte_view from(std::size_t at) const noexcept {
    return at <= size() ? byte_view(bytes_.subspan(at)) : byte_view();
  }

  bool begins(std::string_view with) const noexcept { return text().starts_with(with); }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace lade::support
