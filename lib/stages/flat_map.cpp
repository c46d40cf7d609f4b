#include <lade/detail/stages/link.hpp>
#include <lade/flat_map.hpp>
#include <lade/support/require.hpp>

#include <algorithm>

namespace lade::detail {

// In input order, each item in flight has a queue, and so does an item that has been split and
// whose parts are being delivered. In completion order, all items share one queue.
std::uint64_t most_held(const flat_map_options& options) noexcept {
  const std::size_t concurrency = options.concurrency;
  const auto queued = std::max<std::size_t>(options.buffer, 1);
  if (options.order == item_order::completion)
    return concurrency + link_options::gathering(queued, concurrency).ring.slots;
  const std::uint64_t queues = link_options::gathering(concurrency, 1).ring.slots;
  return concurrency + queues * link_options::gathering(queued, 1).ring.slots;
}

flat_map_settings::flat_map_settings(const flat_map_options& given, std::string stage)
    : options(given), name(std::move(stage)) {
  require_concurrency(name, options.concurrency, 1);
  support::require_count(name, "buffer", options.buffer);
  require_budget(name, options.error_budget, options.on_error);
}

unsigned flat_map_settings::calls_at_a_time(run_state& run, bool is_searched) const {
  if (is_searched) return run.options().tune.most;
  auto threads = (options.pool ? *options.pool : run.runtime().pool()).size();
  return detail::calls_at_a_time(options.concurrency, run.options().tune, threads);
}

void flat_map_settings::list(const open_context& run, const stage_counters& counters,
                             unsigned concurrency) const {
  run.run->tuned().list(run.at->key(),
                        {counters.name(), concurrency, static_cast<unsigned>(options.buffer)});
}

tuner flat_map_settings::search(unsigned most) const noexcept {
  return {{std::min(most, 16u), {}}, most, most};
}

node_facts flat_map_settings::facts(node_ptr in, bool tells_members) const {
  const bool wide = options.concurrency > 1 || options.pool;
  auto facts = node_facts::behind(std::move(in), "flat_map", name)
                   .yielding(cardinality::several)
                   .making_parts(name, tells_members);
  if (options.order == item_order::completion)
    facts = std::move(facts).refusing_state(name +
                                            " yields parts of several items in completion order");
  if (options.concurrency == automatic)
    facts = std::move(facts).with("concurrency", "automatic");
  else if (options.concurrency > 1)
    facts = std::move(facts).with("concurrency", options.concurrency);
  if (wide && options.buffer != flat_map_options().buffer)
    facts = std::move(facts).with("buffer", options.buffer);
  if (wide) facts = std::move(facts).with_limit("buffer_bytes", options.buffer_bytes);
  if (options.concurrency != automatic)
    facts = std::move(facts).holding(wide ? most_held(options) : 1);
  if (wide) facts = std::move(facts).on(options.pool);
  return std::move(facts)
      .with_flag("completion", options.order == item_order::completion)
      .with(policy());
}

}  // namespace lade::detail
