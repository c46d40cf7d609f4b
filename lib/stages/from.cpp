#include <lade/from.hpp>

#include <fmt/format.h>

namespace lade::detail {

node_facts facts_of_list(const std::string& name, std::optional<std::uint64_t> items,
                         const std::vector<order_step>& steps) {
  auto facts = node_facts::source(name, size_behind(steps, items));
  for (auto& step : steps) {
    auto part = part_of({step});
    if (part.world > 1) {
      facts = std::move(facts).with("shard", fmt::format("{} of {}", part.rank, part.world));
      if (items) facts = std::move(facts).with("items", *items);
      if (part.remainder != remainder::drop)
        facts = std::move(facts).with("remainder", remainder_name(part.remainder));
    }
    for (auto& text : texts_of({step})) facts = std::move(facts).with("order", text);
    items = size_behind({step}, items);
  }
  return std::move(facts).refusing_state(why_inexact(steps));
}

}  // namespace lade::detail
