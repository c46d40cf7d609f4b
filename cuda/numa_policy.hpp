// Selects the NUMA node of a thread's new pages.

#pragma once

#include <optional>

namespace lade::cuda {

// Prefers a node for pages that the calling thread touches first, during its lifetime. Does nothing
// without a node, or if the system refuses: memory of another node is only slower.
class numa_policy {
 public:
  explicit numa_policy(std::optional<unsigned> node) noexcept;
  numa_policy(const numa_policy&) = delete;
  ~numa_policy();

 private:
  static constexpr unsigned most_nodes = 1024;
  static constexpr unsigned words = most_nodes / (8 * sizeof(unsigned long));

  int before_ = 0;
  unsigned long nodes_before_[words] = {};
  bool changed_ = false;
};

}  // namespace lade::cuda
