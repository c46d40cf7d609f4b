#include <lade/from.hpp>

#include <fmt/format.h>

namespace lade::detail {

node_facts facts_of_list(const std::string& name, std::optional<std::uint64_t> items,
                         const std::vector<order_step>& steps) {
  auto facts = node_facts::source(name, size_behind(steps, items));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto& step = steps[i];
    auto part = part_of({step});
    if (part.world > 1)
      facts = std::move(facts).with("shard", fmt::format("{} of {}", part.rank, part.world));
    if (auto sharded = size_behind({steps.begin(), steps.begin() + i}, items);
        part.world > 1 && sharded)
      facts = std::move(facts).with("items", *sharded);
    if (part.world > 1 && part.remainder != remainder::drop)
      facts = std::move(facts).with("remainder", remainder_name(part.remainder));
    for (auto& text : texts_of({step})) facts = std::move(facts).with("order", text);
  }
  return std::move(facts).refusing_state(why_inexact(steps));
}

}  // namespace lade::detail
