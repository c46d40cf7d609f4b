#include <lade/detail/common/fatal.hpp>
#include <lade/detail/pipeline/node.hpp>
#include <lade/detail/pipeline/plan.hpp>
#include <lade/detail/pipeline/progress.hpp>
#include <lade/error.hpp>
#include <lade/random.hpp>

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace lade::detail {

const node_facts& planned_node::facts() const noexcept { return node->facts(); }

const planned_node& planned_node::input(const node_base& of) const {
  auto found = std::ranges::find(inputs, &of, &planned_node::node);
  if (found == inputs.end()) fatal("a stage opens an input that its facts do not name");
  return **found;
}

plan::plan(const node_base& last, progress& states, on_error policy)
    : progress_(states), policy_(policy) {
  auto& behind = places_.emplace_back();
  visit(add_input(last, behind, {}, 0), nullptr);
  name_stages();
}

void plan::name_stages() {
  stage_names names;
  for (auto i = stages_.size(); i-- > 0;) {
    stages_[i]->name = names.add(stages_[i]->facts().name());
    stages_[i]->from_end = static_cast<unsigned>(i + 1);
  }
}

std::string stage_names::add(const std::string& name) {
  auto& times = used_[name];
  if (++times == 1) return name;
  while (true) {
    auto numbered = fmt::format("{} ({})", name, times);
    if (++used_[numbered] == 1) return numbered;
    ++times;
  }
}

planned_node& plan::add_input(const node_base& node, planned_node& behind,
                              const planned_rules& rules, std::size_t number) {
  auto& place = places_.emplace_back();
  place.node = &node;
  place.behind = &behind;
  place.rules = rules;
  place.branch = behind.branch;
  place.depth = behind.depth + 1;
  place.halvings = behind.halvings;
  behind.inputs.push_back(&place);
  const auto inputs = behind.node ? behind.node->facts().inputs_.size() : 1;
  if (inputs < 2) return place;
  place.branch = random(behind.branch, number + 1)();
  place.halvings += static_cast<unsigned>(std::bit_width(inputs - 1));
  if (place.halvings > 62)
    throw error(errc::limit_exceeded, "open a source", "it is one of too many, inside of others");
  return place;
}

// Follows a chain by a loop instead of recursion: a pipeline may be long. `path_rules`: null
// outside a path. Inside, the beginning of the path sets it to the rules for the nodes before.
void plan::visit(planned_node& first, planned_rules* path_rules) {
  auto* at = &first;
  while (true) {
    const auto& facts = at->node->facts();
    if (facts.is_path()) {
      *path_rules = at->rules;
      return;
    }
    auto rules = rules_before(*at);
    if (!facts.paths_.empty()) rules = rules_before_paths(*at, rules);
    if (facts.is_stage()) stages_.push_back(at);
    if (facts.inputs_.empty()) return;
    const auto last = facts.inputs_.size() - 1;
    for (std::size_t i = 0; i < last; ++i)
      visit(add_input(*facts.inputs_[i], *at, rules, i), path_rules);
    at = &add_input(*facts.inputs_[last], *at, rules, last);
  }
}

// The rules for the inputs of a node, or for the ends of its paths.
planned_rules plan::rules_before(planned_node& place) {
  const auto& facts = place.node->facts();
  auto rules = place.rules;
  if (const auto& why = facts.stage_.refuses_state; !why.empty()) refuse(place, why);
  if (facts.inputs_.empty() && rules.in_path && facts.is_counted())
    refuse(place, "a source is in a path of tee, route or route_batches");
  if (rules.parts_behind && !facts.groups_.empty()) {
    place.groups = facts.groups_;
    if (rules.members_unknown)
      refuse(place,
             facts.stage_.name +
                 " makes batches, and a later stage splits items made of them; the type of these "
                 "items has no size() that counts members: add one, so that a resumed run detects "
                 "a changed batch");
  }
  if (facts.counts_steps_) {
    if (rules.is_reopened)
      throw error(
          errc::invalid_argument, facts.name(),
          "repeat is behind it, and it counts the steps of one epoch: put repeat before it");
    require_last(place);
  }
  if (rules.parts_behind && facts.consumes_) progress_.expect_rule(facts.effect_name_);
  apply_effect(place, rules);
  if (facts.changes_count(policy_)) rules.count_changes_behind = true;
  if (facts.pairs_) rules.keeps_batches_whole = true;
  if (facts.ends_early_) rules.may_end_early = true;
  if (facts.reopens_) rules.is_reopened = true;
  if (facts.wants_batches_) rules.batches_for = &place;
  if (facts.caches_) {
    rules.cache = &place;
    rules.mixes_parts = nullptr;  // stages behind a cache do not affect the stages before it
  }
  return rules;
}

void plan::require_last(const planned_node& place) {
  const auto& name = place.node->facts().effect_name_;
  if (const auto* mixes = place.rules.mixes_parts)
    refuse(place, fmt::format("{} is before {}: put it last", name, *mixes));
  if (place.rules.in_path)
    refuse(place, name + " is in a path: its steps are not those of the consumer");
  else if (place.rules.parts_behind || place.rules.count_changes_behind)
    refuse(place, name +
                      " is before a stage that groups, splits, reorders or drops items, or skips "
                      "failures: its steps are not those of the consumer");
}

void plan::apply_effect(const planned_node& place, planned_rules& rules) {
  const auto& facts = place.node->facts();
  switch (facts.effect_) {
    case parts_effect::keeps: return;
    case parts_effect::makes: return make_parts(place, rules);
    case parts_effect::reorders:
      if (rules.parts_behind)
        refuse(place, facts.effect_name_ + " is before a stage that makes several items of one");
      [[fallthrough]];
    case parts_effect::mixes: mix_parts(facts.effect_name_, rules);
  }
}

void plan::mix_parts(const std::string& how, planned_rules& rules) {
  if (rules.parts_behind) progress_.expect_groups();
  rules.mixes_parts = &how;
}

void plan::make_parts(const planned_node& place, planned_rules& rules) {
  const auto& facts = place.node->facts();
  if (rules.mixes_parts)
    refuse(place, fmt::format("{} makes several items of one before {}", facts.effect_name_,
                              *rules.mixes_parts));
  else
    progress_.expect_parts();
  rules.parts_behind = true;
  rules.members_unknown = !facts.tells_members_;
  rules.keeps_batches_whole = true;
}

// Plans the paths of a split. `inside`: the rules for their ends. Returns the rules for the nodes
// before the split: those of the nodes behind it, combined with those of each path.
planned_rules plan::rules_before_paths(planned_node& split, planned_rules inside) {
  const auto& facts = split.node->facts();
  auto before = facts.joins_ ? split.rules : inside;
  const std::string* mixes = nullptr;
  bool any_makes_parts = false;
  bool members_unknown = false;
  inside.in_path = true;
  for (auto i = facts.paths_.size(); i-- > 0;) {
    planned_rules path_rules;
    visit(add_input(*facts.paths_[i], split, inside, 0), &path_rules);
    if (path_rules.mixes_parts != inside.mixes_parts) mixes = path_rules.mixes_parts;
    if (path_rules.count_changes_behind) before.count_changes_behind = true;
    if (path_rules.may_end_early) before.may_end_early = true;
    if (!path_rules.parts_behind) continue;
    any_makes_parts = true;
    members_unknown |= path_rules.members_unknown;
  }
  if (any_makes_parts) {
    before.parts_behind = before.keeps_batches_whole = true;
    before.members_unknown = members_unknown;
  }
  if (mixes) mix_parts(*mixes, before);
  return before;
}

void plan::refuse(const planned_node& place, const std::string& why) {
  progress_.refuse(why);
  record_indivisible(place);
}

void plan::record_indivisible(const planned_node& place) noexcept {
  if (place.rules.cache) place.rules.cache->indivisible = true;
}

}  // namespace lade::detail
