#include <lade/detail/data/item_bytes.hpp>
#include <lade/detail/pipeline/node.hpp>
#include <lade/detail/pipeline/node_facts.hpp>
#include <lade/thread_pool.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace lade::detail {

node_facts node_facts::source(std::string name, std::optional<std::uint64_t> size) {
  node_facts facts;
  facts.stage_.kind = "from";
  facts.stage_.name = std::move(name);
  facts.stage_.cardinality = cardinality::source;
  facts.stage_.size = size;
  return facts;
}

node_facts node_facts::behind(node_ptr in, std::string kind, std::string name) {
  auto size = in->facts().size();
  std::vector<node_ptr> inputs;
  inputs.push_back(std::move(in));
  auto facts = behind_all(std::move(inputs), std::move(kind), std::move(name));
  return std::move(facts).yielding(cardinality::one, size);
}

node_facts node_facts::behind_all(std::vector<node_ptr> inputs, std::string kind,
                                  std::string name) {
  node_facts facts;
  for (auto& each : inputs) facts.number_ = std::max(facts.number_, each->facts().number() + 1);
  facts.inputs_ = std::move(inputs);
  facts.stage_.cardinality = cardinality::group;
  facts.stage_.name = name.empty() ? kind : std::move(name);
  facts.stage_.kind = std::move(kind);
  return facts;
}

node_facts node_facts::part_behind(node_ptr in) {
  const auto number = in->facts().number();
  auto facts = behind(std::move(in), {});
  facts.role_ = role::part;
  facts.number_ = number;
  return facts;
}

node_facts node_facts::path_of(node_ptr in, std::uint64_t number,
                               std::optional<std::uint64_t> size) {
  auto facts = behind(std::move(in), {});
  facts.role_ = role::path;
  facts.number_ = number;
  facts.stage_.size = size;
  return facts;
}

node_facts node_facts::split_of(node_ptr in, std::vector<node_ptr> paths, std::string kind,
                                std::string name) {
  auto facts = behind(std::move(in), std::move(kind), std::move(name));
  facts.role_ = role::split;
  facts.stage_.cardinality = cardinality::one;
  facts.stage_.executor = stage_executor::cpu_pool;
  facts.stage_.size.reset();
  facts.number_ = paths.back()->facts().number() + 1;
  facts.paths_ = std::move(paths);
  return facts;
}

node_facts node_facts::uncounted() && {
  role_ = role::uncounted_stage;
  return std::move(*this);
}

node_facts node_facts::made_by(std::string kind) && {
  stage_.kind = std::move(kind);
  return std::move(*this);
}

node_facts node_facts::on(stage_executor executor) && {
  stage_.executor = executor;
  return std::move(*this);
}

node_facts node_facts::on(const thread_pool* pool) && {
  if (!pool) return std::move(*this).on(stage_executor::cpu_pool);
  return std::move(*this).on(stage_executor::own_pool).with("pool", pool->name());
}

node_facts node_facts::yielding(cardinality what, std::optional<std::uint64_t> size) && {
  stage_.cardinality = what;
  stage_.size = size;
  return std::move(*this);
}

node_facts node_facts::in_groups(std::uint64_t size, bool drop_last) && {
  std::optional<std::uint64_t> groups;
  if (stage_.size) groups = *stage_.size / size + (!drop_last && *stage_.size % size > 0);
  return std::move(*this)
      .yielding(cardinality::group, groups)
      .grouping(size, size)
      .with("size", size)
      .with_flag("drop_last", drop_last);
}

node_facts node_facts::holding(std::optional<std::uint64_t> items,
                               std::optional<std::uint64_t> bytes) && {
  stage_.held_items = items;
  stage_.held_bytes = bytes;
  return std::move(*this);
}

node_facts node_facts::failing(std::optional<on_error> policy) && {
  may_fail_ = true;
  policy_ = policy;
  return std::move(*this);
}

bool node_facts::changes_count(on_error of_run) const noexcept {
  return stage_.cardinality == cardinality::at_most_one ||
         stage_.cardinality == cardinality::several ||
         (may_fail_ && policy_.value_or(of_run) == on_error::skip);
}

node_facts node_facts::ordered(stage_ordering what) && {
  stage_.ordering = what;
  return std::move(*this);
}

node_facts node_facts::mixing_parts(std::string how) && {
  effect_ = parts_effect::mixes;
  effect_name_ = std::move(how);
  return std::move(*this);
}

node_facts node_facts::reordering(std::string how) && {
  auto facts = std::move(*this).mixing_parts(std::move(how)).ordered(stage_ordering::changed);
  facts.effect_ = parts_effect::reorders;
  return facts;
}

node_facts node_facts::making_parts(std::string how, bool tells_members) && {
  auto facts = std::move(*this).mixing_parts(std::move(how));
  facts.effect_ = parts_effect::makes;
  facts.tells_members_ = tells_members;
  return facts;
}

node_facts node_facts::grouping(std::uint64_t size, std::uint64_t step) && {
  groups_ = fmt::format("of {}", size);
  if (step != size) groups_ += fmt::format(" in steps of {}", step);
  return std::move(*this);
}

node_facts node_facts::completing(item_order order) && {
  if (order == item_order::input) return std::move(*this);
  return std::move(*this).reordering("a stage that yields items in completion order");
}

node_facts node_facts::pairing() && {
  pairs_ = true;
  return std::move(*this);
}

node_facts node_facts::ending_early() && {
  ends_early_ = true;
  return std::move(*this);
}

node_facts node_facts::reopening() && {
  reopens_ = true;
  return std::move(*this);
}

node_facts node_facts::counting_steps() && {
  counts_steps_ = true;
  return std::move(*this);
}

node_facts node_facts::joining() && {
  joins_ = true;
  return std::move(*this);
}

node_facts node_facts::following(lineage_rule rule, const std::string& stage) && {
  const bool carries = rule == lineage_rule::carried;
  consumes_ = !carries;
  auto facts = carries ? std::move(*this).reordering(stage) : std::move(*this).mixing_parts(stage);
  facts = std::move(facts).ordered(stage_ordering::custom);
  if (carries) return std::move(facts).with("lineage", "carried");
  if (rule == lineage_rule::consumed) return std::move(facts).with("lineage", "consumed");
  return std::move(facts).refusing_state(fmt::format(
      "the lineage of {} is unknown. Set through_options::lineage to lineage_rule::consumed if "
      "each of its items is made of all items taken since the previous one, or to "
      "lineage_rule::carried if the coroutine yields held<T>",
      stage));
}

node_facts node_facts::refusing_state(std::string why) && {
  stage_.refuses_state = std::move(why);
  return std::move(*this);
}

node_facts node_facts::caching() && {
  caches_ = true;
  return std::move(*this);
}

node_facts node_facts::wanting_batches() && {
  wants_batches_ = true;
  return std::move(*this);
}

// Seconds, without trailing zeros.
static std::string text_of(std::chrono::nanoseconds time) {
  return fmt::format("{} s", std::chrono::duration<double>(time).count());
}

// A rate applies after the probation.
static std::string text_of(const error_budget& budget) {
  std::string text = budget.count ? fmt::format("{}", *budget.count) : "";
  if (budget.rate) text += fmt::format("{}rate {}", text.empty() ? "" : ", ", *budget.rate);
  if (budget.probation > 0) text += fmt::format(" after {}", budget.probation);
  return text;
}

node_facts node_facts::with(const failure_policy& policy, const time_limits& limits) && {
  auto facts = std::move(*this);
  if (policy.retry.attempts > 1) facts = std::move(facts).with("attempts", policy.retry.attempts);
  if (policy.substitutes)
    facts = std::move(facts).with("substitute", "given");
  else if (policy.finally)
    facts = std::move(facts).with("on_error", *policy.finally == on_error::skip ? "skip" : "fail");
  if (policy.budget.is_given())
    facts = std::move(facts).with("error_budget", text_of(policy.budget));
  if (limits.call.count() > 0) facts = std::move(facts).with("timeout", text_of(limits.call));
  if (limits.item.count() > 0) facts = std::move(facts).with("deadline", text_of(limits.item));
  return facts;
}

node_facts node_facts::with(std::string option, std::string_view value) && {
  stage_.options.emplace_back(std::move(option), value);
  return std::move(*this);
}

node_facts node_facts::with(std::string option, std::uint64_t value) && {
  return std::move(*this).with(std::move(option), std::to_string(value));
}

node_facts node_facts::with_flag(std::string option, bool value) && {
  return value ? std::move(*this).with(std::move(option), "true") : std::move(*this);
}

node_facts node_facts::with_limit(std::string option, std::uint64_t bytes) && {
  if (bytes == unlimited_bytes) return std::move(*this);
  return std::move(*this).with(std::move(option), bytes);
}

}  // namespace lade::detail
