#include <lade/pipeline.hpp>

namespace lade::detail {

void node_base::warn_of_same_epoch(run_state& run) const {
  auto stage = run.epoch_dependent();
  if (stage.empty() || run.options().epoch) return;
  if (runs_without_epoch_.fetch_add(1, std::memory_order_relaxed) != 1) return;
  run.warn("a pipeline runs for the second time without an epoch: " + stage +
           " makes the same choices again. Give every run its own: {.epoch = epoch}.");
}

}  // namespace lade::detail
