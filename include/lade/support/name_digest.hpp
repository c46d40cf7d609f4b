// name_digest: a digest of a sequence of names.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lade::support {

// Depends on all names and their order. Equal in every process, so states (checkpoints) contain it.
class name_digest {
 public:
  void add(std::string_view name) noexcept;

  std::uint64_t value() const noexcept { return value_; }
  std::string text() const;  // "names 3f2504e04f8911d3"

 private:
  std::uint64_t value_ = 0;
};

}  // namespace lade::support
