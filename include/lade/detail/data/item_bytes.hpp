// item_bytes: the bytes that an item holds, for limits of stages.

#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lade {

class buffer;
class sample;
class sample_batch;
class tensor;

namespace detail {

// The limit of a stage without a limit in bytes.
inline constexpr std::uint64_t unlimited_bytes = ~std::uint64_t{0};

// The bytes of the items that wait in a queue. Guarded by the mutex of the queue.
class waiting_bytes {
 public:
  void add(std::uint64_t bytes) noexcept {
    sum_ += bytes;
    largest_ = std::max(largest_, bytes);
  }
  void remove(std::uint64_t bytes) noexcept { sum_ -= std::min(sum_, bytes); }
  void remove_all() noexcept { sum_ = 0; }

  // Whether an item with bytes has been added.
  bool knows_size() const noexcept { return largest_ > 0; }

  // Whether `more` items as large as the largest one so far are within a limit. Always if no item
  // had bytes.
  bool leaves(std::uint64_t more, std::uint64_t limit) const noexcept {
    if (!knows_size()) return true;
    return sum_ <= limit && more <= (limit - sum_) / largest_;
  }

 private:
  std::uint64_t sum_ = 0;
  std::uint64_t largest_ = 0;
};

template <class T>
concept has_bytes = requires(const T& item) {
  { item.bytes() } -> std::integral;
};

// A member bytes() whose result is no integer, such as a double: the bytes are unknown.
template <class T>
concept has_inexact_bytes = !has_bytes<T> && requires(const T& item) {
  { item.bytes() } -> std::convertible_to<std::size_t>;
};

// Whether bytes_of() can determine the bytes that an item of type T holds. `Around`: the ranges of
// which it is an element. The bytes of a recursive type, such as a tree, are unknown.
template <class T, class... Around>
consteval bool tells_bytes() {
  if constexpr (has_bytes<T> || std::same_as<T, buffer> || std::same_as<T, tensor> ||
                std::same_as<T, sample> || std::same_as<T, sample_batch>)
    return true;
  else if constexpr (has_inexact_bytes<T> || (std::same_as<T, Around> || ...))
    return false;
  else if constexpr (std::ranges::sized_range<const T>)
    return tells_bytes<std::ranges::range_value_t<const T>, T, Around...>();
  else
    return std::is_trivially_copyable_v<T>;
}

// The result of the member bytes(), if there is one; 0 for a negative one. Otherwise the data of a
// buffer, tensor, sample or sample_batch, the sum of the elements of a range, or the size of a
// trivially copyable object.
template <class T>
std::uint64_t bytes_of(const T& item) {
  if constexpr (has_bytes<T>) {
    const auto bytes = item.bytes();
    return std::cmp_less(bytes, 0) ? 0 : static_cast<std::uint64_t>(bytes);
  } else if constexpr (std::same_as<T, buffer>) {
    return item.size();
  } else if constexpr (std::same_as<T, tensor>) {
    return item.spec().bytes();
  } else if constexpr (std::same_as<T, sample>) {
    return item.key().size() + item.content_bytes();
  } else if constexpr (std::same_as<T, sample_batch>) {
    std::uint64_t sum = bytes_of(item.samples());
    for (auto& each : item.tensors()) sum += bytes_of(each.tensor());
    return sum;
  } else if constexpr (std::ranges::sized_range<const T>) {
    using value = std::ranges::range_value_t<const T>;
    if constexpr (std::is_trivially_copyable_v<value> && !has_bytes<value> &&
                  !std::ranges::sized_range<const value>)
      return std::ranges::size(item) * sizeof(value);
    std::uint64_t sum = 0;
    for (auto&& each : item) sum += bytes_of(each);
    return sum;
  } else {
    return sizeof(item);
  }
}

// Returns the bytes of the item at an address; 0 if that throws.
using measure_item = std::uint64_t (*)(const void* item) noexcept;

// Throws error(invalid_argument): the option is a limit in bytes, and the bytes of the items are
// unknown.
[[noreturn]] void refuse_bytes(std::string_view stage, std::string_view option);

// Returns the function that measures items of type T for the option of a stage, whose value is
// `most`; null without a limit. Throws error(invalid_argument) if there is a limit and the bytes of
// the items are unknown.
template <class T>
measure_item measure_for(std::uint64_t most, std::string_view stage, std::string_view option) {
  if (most == unlimited_bytes) return nullptr;
  if constexpr (tells_bytes<T>())
    return [](const void* item) noexcept -> std::uint64_t {
      try {
        return bytes_of(*static_cast<const T*>(item));
      } catch (...) {
        return 0;
      }
    };
  else
    refuse_bytes(stage, option);
}

}  // namespace detail
}  // namespace lade
