// What tells the stages of a run apart.

#pragma once

#include <cstdint>

namespace lade::detail {

// The address of the description, and the branch that it is opened in.
struct stage_key {
  const void* description;
  std::uint64_t branch;
  friend bool operator==(const stage_key&, const stage_key&) = default;
};

}  // namespace lade::detail
