// Reads and writes values in the module's files: little-endian, without padding.

#pragma once

#include <lade/buffer.hpp>
#include <lade/error.hpp>
#include <lade/media/av/rational.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lade::media {

class stored_writer {
 public:
  template <std::integral T>
  void number(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      bytes_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
  void bytes(std::span<const std::byte> value);
  void text(std::string_view value) { bytes(std::as_bytes(std::span(value))); }
  void fraction(const rational& value) {
    number(value.numerator());
    number(value.denominator());
  }
  void fraction(const std::optional<rational>& value) {
    number(static_cast<std::uint8_t>(value.has_value()));
    if (value) fraction(*value);
  }

  // The file: a signature of eight bytes, the version, the values, and a CRC-32C of everything
  // before it.
  buffer sealed(std::string_view signature, std::uint32_t version) const;

 private:
  std::vector<std::byte> bytes_;
};

// Reads the values of a stored_writer. Throws error(invalid_data) for invalid bytes: lengths and
// counts are checked against the bytes left.
class stored_reader {
 public:
  // Checks the signature, the version and the checksum. `doing`: the operation, for errors. Throws
  // error(unsupported) for another version.
  stored_reader(std::span<const std::byte> file, std::string_view signature, std::uint32_t version,
                std::string doing);

  template <std::integral T>
  T number() {
    std::uint64_t value = 0;
    const auto stored = take(sizeof(T));
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value |= std::to_integer<std::uint64_t>(stored[i]) << (8 * i);
    return static_cast<T>(value);
  }

  // The same, for a number that must be from `low` to `high`.
  template <std::integral T>
  T number(T low, T high) {
    const T value = number<T>();
    if (value < low || value > high) refuse("a number is out of its range");
    return value;
  }

  // Reads the number of elements that follow, each of at least `element_bytes`.
  std::size_t count(std::size_t element_bytes);

  std::span<const std::byte> bytes() { return take(count(1)); }
  std::string text();
  rational fraction();
  std::optional<rational> optional_fraction();

  // Throws if bytes are left.
  void end() const;

  [[noreturn]] void refuse(std::string_view reason) const;
  const std::string& doing() const noexcept { return doing_; }

 private:
  std::span<const std::byte> take(std::size_t bytes);

  std::span<const std::byte> left_;
  std::string doing_;
};

}  // namespace lade::media
