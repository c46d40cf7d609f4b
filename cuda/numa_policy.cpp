#include "numa_policy.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lade::cuda {

static constexpr unsigned bits_of_word = 8 * sizeof(unsigned long);

// set_mempolicy(2) uses one bit less than its `maxnode`.
numa_policy::numa_policy(std::optional<unsigned> node) noexcept {
  if (!node || *node >= most_nodes) return;
  if (syscall(SYS_get_mempolicy, &before_, nodes_before_, most_nodes, nullptr, 0) != 0) return;
  unsigned long nodes[words] = {};
  nodes[*node / bits_of_word] = 1ul << (*node % bits_of_word);
  changed_ = syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, most_nodes + 1) == 0;
}

numa_policy::~numa_policy() {
  if (changed_) (void)syscall(SYS_set_mempolicy, before_, nodes_before_, most_nodes + 1);
}

}  // namespace lade::cuda
