// A short text that tells sequences of names apart.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lade::detail {

// Up to 16 digits.
std::string hexadecimal(std::uint64_t number);

// Depends on all names and on their order. The same in every process.
class name_digest {
 public:
  void add(std::string_view name) noexcept;

  std::uint64_t value() const noexcept { return value_; }
  std::string text() const;  // "names 3f2504e04f8911d3"

 private:
  std::uint64_t value_ = 0;
};

}  // namespace lade::detail
