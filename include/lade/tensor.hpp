// An array of numbers, with an element type, a shape and strides over a buffer.

#pragma once

#include <lade/buffer.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace lade {

// A boolean is one byte, 0 or 1. f16 is IEEE 754 binary16; bf16 is the upper half of a binary32.
// Both occupy 16 bits.
enum class element_type : std::uint8_t {
  boolean,
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  f16,
  bf16,
  f32,
  f64
};

inline constexpr std::size_t element_types = 13;  // number of enumerators

constexpr std::size_t element_bytes(element_type type) noexcept {
  constexpr std::array<std::uint8_t, element_types> bytes{1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  return bytes[static_cast<std::size_t>(type)];
}

std::string_view name(element_type type) noexcept;  // "bool", "u8", "bf16", ...

// Whether T is the C++ type of one element: std::uint16_t for f16 and bf16.
template <class T>
constexpr bool holds(element_type type) noexcept;

// Up to eight extents, outermost dimension first. Also used for strides.
class dimensions {
 public:
  static constexpr std::size_t max_rank = 8;

  constexpr dimensions() = default;
  constexpr dimensions(std::initializer_list<std::int64_t> extents)
      : dimensions(std::span(extents.begin(), extents.size())) {}
  // Throws error(invalid_argument) for more than max_rank extents.
  constexpr explicit dimensions(std::span<const std::int64_t> extents) {
    if (extents.size() > max_rank) refuse_rank(extents.size());
    for (auto extent : extents) extents_[rank_++] = extent;
  }

  constexpr std::size_t size() const noexcept { return rank_; }
  constexpr std::int64_t operator[](std::size_t i) const noexcept {
    assert(i < rank_);
    return extents_[i];
  }
  constexpr const std::int64_t* begin() const noexcept { return extents_.data(); }
  constexpr const std::int64_t* end() const noexcept { return extents_.data() + rank_; }

  // Returns the dimensions with one more in front, or without the first.
  dimensions prepend(std::int64_t extent) const;
  dimensions tail() const;

  friend bool operator==(const dimensions& a, const dimensions& b) noexcept {
    return std::ranges::equal(a, b);
  }

 private:
  [[noreturn]] static void refuse_rank(std::size_t rank);

  std::array<std::int64_t, max_rank> extents_{};
  std::uint8_t rank_ = 0;
};

std::string to_string(const dimensions& extents);  // "[3, 224, 224]"

// The type and the shape of the elements of a tensor.
struct tensor_spec {
  element_type type = element_type::u8;
  dimensions shape;

  // The number of elements, and of bytes if the elements are contiguous. Throws
  // error(invalid_argument) for a negative extent or an overflow.
  std::size_t elements() const;
  std::size_t bytes() const { return elements() * element_bytes(type); }

  friend bool operator==(const tensor_spec&, const tensor_spec&) = default;
};

// An n-dimensional array. Like a buffer, a tensor shares the ownership of its memory: copies and
// slices refer to the same elements. Strides count elements, not bytes, and may be zero or
// negative.
class tensor {
 public:
  tensor() = default;

  // Allocates a contiguous tensor (last dimension fastest) in uninitialised host memory.
  explicit tensor(const tensor_spec& spec) : tensor(spec, buffer(spec.bytes())) {}
  tensor(element_type type, const dimensions& shape) : tensor(tensor_spec{type, shape}) {}

  // A contiguous tensor over the first bytes of `memory`. Throws error(invalid_argument) if the
  // memory is too small or not aligned to the element type.
  tensor(const tensor_spec& spec, buffer memory);

  // A strided tensor over `memory` with its first element at `first`, which must be aligned to the
  // element type. Throws error(invalid_argument) otherwise, if an element lies outside `memory`, or
  // if strides and shape differ in rank.
  tensor(const tensor_spec& spec, const dimensions& strides, buffer memory, std::byte* first);

  const tensor_spec& spec() const noexcept { return spec_; }
  element_type type() const noexcept { return spec_.type; }
  const dimensions& shape() const noexcept { return spec_.shape; }
  const dimensions& strides() const noexcept { return strides_; }
  std::size_t rank() const noexcept { return spec_.shape.size(); }
  device where() const noexcept { return memory_.where(); }  // device of its memory
  const buffer& memory() const noexcept { return memory_; }
  bool contiguous() const noexcept;

  std::byte* bytes() const noexcept { return first_; }

  // The address of the first element. Throws error(invalid_argument) unless holds<T>(type()).
  template <class T>
  T* data() const {
    if (!holds<T>(type())) refuse_elements(__PRETTY_FUNCTION__);
    return reinterpret_cast<T*>(first_);
  }

  // Element `i` along the first dimension, such as image i of a batch. Shares the memory. Throws
  // std::out_of_range.
  tensor operator[](std::int64_t i) const;

  // Elements [begin, end) along the first dimension. Shares the memory. Throws std::out_of_range.
  tensor slice(std::int64_t begin, std::int64_t end) const;

 private:
  [[noreturn]] void refuse_elements(std::string_view wanted) const;

  tensor_spec spec_;
  dimensions strides_;
  buffer memory_;
  std::byte* first_ = nullptr;
};

dimensions contiguous_strides(const dimensions& shape);

// Copies the elements of a tensor, which is in host memory, in the order of their indices (last
// dimension fastest), whatever its strides are. `to`: spec().bytes() bytes.
void copy_elements(const tensor& from, std::byte* to);

template <class T>
constexpr bool holds(element_type type) noexcept {
  using U = std::remove_cv_t<T>;
  switch (type) {
    case element_type::boolean: return std::is_same_v<U, bool>;
    case element_type::u8: return std::is_same_v<U, std::uint8_t>;
    case element_type::i8: return std::is_same_v<U, std::int8_t>;
    case element_type::u16:
    case element_type::f16:
    case element_type::bf16: return std::is_same_v<U, std::uint16_t>;
    case element_type::i16: return std::is_same_v<U, std::int16_t>;
    case element_type::u32: return std::is_same_v<U, std::uint32_t>;
    case element_type::i32: return std::is_same_v<U, std::int32_t>;
    case element_type::u64: return std::is_same_v<U, std::uint64_t>;
    case element_type::i64: return std::is_same_v<U, std::int64_t>;
    case element_type::f32: return std::is_same_v<U, float>;
    case element_type::f64: return std::is_same_v<U, double>;
  }
  return false;
}

// Number types of C++ that have an element type. std::uint16_t has u16, not f16 or bf16.
template <class T>
concept has_element_type = std::is_arithmetic_v<T> && [] {
  for (std::size_t i = 0; i < element_types; ++i)
    if (holds<T>(static_cast<element_type>(i))) return true;
  return false;
}();

template <has_element_type T>
constexpr element_type type_of() noexcept {
  std::size_t i = 0;
  while (!holds<T>(static_cast<element_type>(i))) ++i;
  return static_cast<element_type>(i);
}

}  // namespace lade
