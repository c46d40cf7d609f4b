#include <lade/tee.hpp>

#include <algorithm>

namespace lade::detail {

// The stage ends with its shortest path.
node_facts tee_core::facts(node_ptr in, std::vector<node_ptr> ends) const {
  auto size = in->facts().size();
  for (auto& each : ends) {
    auto of_path = each->facts().size();
    size = size && of_path ? std::optional(std::min(*size, *of_path)) : std::nullopt;
  }
  return node_facts::split_of(std::move(in), std::move(ends), "tee", name_)
      .yielding(cardinality::group, size)
      .pairing()
      .joining()
      .with("buffer", buffer_);
}

}  // namespace lade::detail
