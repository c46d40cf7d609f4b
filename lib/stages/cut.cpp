#include <lade/autotune.hpp>
#include <lade/cut.hpp>

#include <utility>

namespace lade::detail {

static std::string refusal_of(const std::string& kind, const order_step& step) {
  if (step.what != order_step::kind::repeat)
    return kind + " counts the items of a stage: put it at the source";
  return step.count == 1 ? "" : "repeat follows other stages: put it at the source";
}

node_facts cut_facts(node_ptr in, std::string kind, const order_step& step) {
  auto size = size_behind({step}, in->facts().size());
  auto refusal = refusal_of(kind, step);
  auto facts = node_facts::behind(std::move(in), std::move(kind))
                   .uncounted()
                   .holding(0)
                   .refusing_state(std::move(refusal));
  for (auto& text : texts_of({step})) facts = std::move(facts).with("order", text);
  const bool repeats = step.what == order_step::kind::repeat;
  if (repeats && step.count != 1) facts = std::move(facts).reopening();
  if (step.what == order_step::kind::take) facts = std::move(facts).ending_early();
  return std::move(facts).yielding(repeats ? cardinality::several : cardinality::at_most_one, size);
}

node_facts prefetch_facts(node_ptr in, std::size_t count, std::uint64_t bytes) {
  auto facts = node_facts::behind(std::move(in), "prefetch").on(stage_executor::cpu_pool);
  facts = std::move(facts).with_limit("bytes", bytes);
  if (count == automatic) return std::move(facts).with("count", "automatic");
  return std::move(facts).holding(count).with("count", count);
}

}  // namespace lade::detail
