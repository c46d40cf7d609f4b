#include <lade/map.hpp>
#include <lade/support/require.hpp>

#include <algorithm>

namespace lade::detail {

map_settings::map_settings(const map_options& options, std::string name,
                           unsigned default_concurrency)
    : options_(options),
      memory_(share_of(options.memory)),
      name_(std::move(name)),
      kind_(options.kind.empty() ? "map" : options.kind) {
  if (options_.concurrency == 0) options_.concurrency = default_concurrency;
  require_concurrency(name_, options_.concurrency);
  support::require_count(name_, "buffer", options.buffer.value_or(0));
  require_retry(name_, options.retry);
  require_budget(name_, options.error_budget,
                 options.substitute.has_value() ? std::nullopt : options.on_error);
  require_limits(name_, options.timeout, options.deadline);
  require_host_accessible(name_, options.memory);
}

failure_policy map_settings::policy() const {
  return {.finally = options_.on_error,
          .retry = options_.retry,
          .budget = options_.error_budget,
          .substitutes = options_.substitute.has_value()};
}

void map_settings::require_fit(bool substitutes, bool may_retry, bool tasks) const {
  if (!substitutes)
    throw error(errc::invalid_argument, name_, "the substitute is of another type than its items");
  if (options_.retry.attempts > 1 && !may_retry)
    throw error(errc::invalid_argument, name_, "items that cannot be copied cannot be retried");
  if (tasks && options_.pool)
    throw error(errc::invalid_argument, name_, "tasks run on the reactor, not on a pool");
}

std::optional<std::uint64_t> map_settings::most_held(unsigned at_a_time) const {
  const auto concurrency = options_.concurrency;
  if (concurrency == 0 || concurrency == automatic) return std::nullopt;
  const concurrent_options options{
      .slots = std::size_t{concurrency} + options_.buffer.value_or(concurrency),
      .workers = concurrency};
  return options.for_items(at_a_time).slots;
}

node_facts map_settings::facts(node_ptr in, std::string kind,
                               const function_facts& function) const {
  auto facts = node_facts::behind(std::move(in), std::move(kind), name_)
                   .completing(options_.order)
                   .failing(options_.substitute.has_value() ? on_error::fail : options_.on_error);
  if (function.drops) facts = std::move(facts).yielding(cardinality::at_most_one);
  if (function.is_task || !is_inline({})) facts = concurrent_facts(std::move(facts), function);
  return std::move(facts).with(policy(), limits());
}

node_facts map_settings::concurrent_facts(node_facts facts, const function_facts& function) const {
  facts = std::move(facts).holding(most_held(function.at_a_time));
  facts = function.is_task ? std::move(facts).on(stage_executor::reactor)
                           : std::move(facts).on(options_.pool);
  if (options_.concurrency == automatic)
    facts = std::move(facts).with("concurrency", "automatic");
  else if (options_.concurrency > 0)
    facts = std::move(facts).with("concurrency", options_.concurrency);
  if (options_.buffer) facts = std::move(facts).with("buffer", *options_.buffer);
  return std::move(facts)
      .with_limit("buffer_bytes", options_.buffer_bytes)
      .with_flag("completion", options_.order == item_order::completion);
}

bool map_settings::is_inline(const run_options& run) const noexcept {
  auto attempts = options_.retry.attempts ? options_.retry.attempts : run.retry.attempts;
  return options_.concurrency == 1 && attempts <= 1 && !limits().any() && !options_.pool &&
         !options_.buffer && options_.buffer_bytes == unlimited_bytes;
}

concurrent_options map_settings::waiting(const run_state& run) const {
  if (options_.concurrency == automatic) return tuned(std::max(run.options().tune.most, 1u));
  auto concurrency = options_.concurrency ? options_.concurrency : 16;
  return with_policy({.slots = concurrency + options_.buffer.value_or(concurrency),
                      .workers = concurrency,
                      .on_reactor = true});
}

concurrent_options map_settings::tuned(unsigned most) const {
  auto first = std::min(most, 16u);
  auto slots = most + std::max(options_.buffer.value_or(0), 2 * most);
  return with_policy({.slots = slots,
                      .workers = most,
                      .on_reactor = true,
                      .tuned_by = tuner({first, options_.buffer.value_or(first)}, most, slots)});
}

concurrent_options map_settings::computing(run_state& run) const {
  auto threads = (options_.pool ? *options_.pool : run.runtime().pool()).size();
  auto calls = calls_at_a_time(options_.concurrency, run.options().tune, threads);
  auto buffer = options_.buffer.value_or(calls);
  return with_policy({.slots = calls + buffer,
                      .workers = std::min(calls, threads),
                      .pool = options_.pool,
                      .shares_cpus = options_.concurrency == automatic,
                      .buffer = buffer});
}

concurrent_options map_settings::with_policy(concurrent_options result) const {
  result.order = options_.order;
  result.policy = policy();
  result.substitute = options_.substitute;
  result.limits = limits();
  result.memory = options_.memory;
  result.bytes = options_.buffer_bytes;
  return result;
}

buffer_pool map_settings::memory_of(lade::runtime& where, memory_resource* otherwise) const {
  auto* memory = options_.memory ? options_.memory : otherwise;
  return memory ? where.memory().over(*memory) : where.memory();
}

}  // namespace lade::detail
