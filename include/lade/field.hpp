// The values of a sample besides its key, each with a name.

#pragma once

#include <lade/buffer.hpp>
#include <lade/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace lade {

// A named value of a sample, such as an encoded image, a caption, a class or a mask. Its kind is
// bytes, text, an integer, a number or a tensor.
//
// Immutable. Copies share bytes and tensors, and copy text. Any thread may read a field.
class field {
 public:
  enum class kind : std::uint8_t { bytes, text, integer, number, tensor };

  field(std::string name, buffer bytes) : name_(std::move(name)), content_(std::move(bytes)) {}
  field(std::string name, std::string text) : name_(std::move(name)), content_(std::move(text)) {}
  field(std::string name, const char* text) : field(std::move(name), std::string(text)) {}
  field(std::string name, lade::tensor tensor)
      : name_(std::move(name)), content_(std::move(tensor)) {}
  template <std::floating_point T>
  field(std::string name, T number)
      : name_(std::move(name)), content_(static_cast<double>(number)) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  field(std::string name, T integer) : name_(std::move(name)), content_(to_integer(integer)) {}

  const std::string& name() const noexcept { return name_; }
  kind type() const noexcept { return static_cast<kind>(content_.index()); }

  // Return the value. Each throws error(invalid_argument) naming the field if the kind differs.
  // Exceptions: `text` also returns bytes, and `number` also returns an integer.
  const buffer& bytes() const;
  std::string_view text() const;
  std::int64_t integer() const;
  double number() const;
  const lade::tensor& tensor() const;

  // The size of the value in memory, in bytes: of its bytes, text, elements or number.
  std::size_t size_bytes() const;

 private:
  using content = std::variant<buffer, std::string, std::int64_t, double, lade::tensor>;

  // Throws error(limit_exceeded) for an integer that does not fit a std::int64_t.
  template <class T>
  static std::int64_t to_integer(T integer) {
    if (!std::in_range<std::int64_t>(integer)) refuse_integer();
    return static_cast<std::int64_t>(integer);
  }
  [[noreturn]] static void refuse_integer();
  [[noreturn]] void refuse_kind(std::string_view wanted) const;

  std::string name_;
  content content_;
};

std::string_view name(field::kind kind) noexcept;  // "bytes", "text", ...

}  // namespace lade
