#include <lade/cut.hpp>

namespace lade::detail {

node_facts cut_facts(node_ptr in, std::string kind, const order_step& step) {
  auto size = size_behind({step}, in->facts().size());
  const auto refusal = kind == "repeat"
                           ? "repeat follows other stages: put it at the source"
                           : kind + " counts the items of a stage: put it at the source";
  auto facts =
      node_facts::behind(std::move(in), std::move(kind)).uncounted().refusing_state(refusal);
  for (auto& text : texts_of({step})) facts = std::move(facts).with("order", text);
  return std::move(facts).yielding(cardinality::at_most_one, size);
}

}  // namespace lade::detail
