// stage_key: identifies a stage of a run.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace lade::detail {

// The address of the node, and the branch of the plan in which it is opened.
struct stage_key {
  const void* description;
  std::uint64_t branch;
  friend bool operator==(const stage_key&, const stage_key&) = default;
};

struct stage_key_hash {
  std::size_t operator()(const stage_key& key) const noexcept {
    return std::hash<const void*>()(key.description) ^ std::hash<std::uint64_t>()(key.branch);
  }
};

}  // namespace lade::detail
