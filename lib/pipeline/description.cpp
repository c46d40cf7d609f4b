#include <lade/description.hpp>
#include <lade/detail/pipeline/node.hpp>
#include <lade/detail/pipeline/plan.hpp>
#include <lade/printable.hpp>
#include <lade/support/json.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

namespace lade {

namespace detail {

// Collects the stages of a pipeline in the order in which a run opens them, from the last node to
// the sources. The inputs of a stage follow each other; the paths of a split, from the last to the
// first, precede the split. in_order() reverses this order, as statistics do.
class described_stages {
 public:
  explicit described_stages(const node_base& last) { visit(last, nullptr); }

  pipeline_description in_order();

 private:
  struct stage {
    const node_facts* facts;
    std::vector<stage*> inputs = {};
    std::size_t index = 0;
  };
  using stages = std::vector<stage*>;

  // Visits a node and the nodes before it. Returns the stages that yield the items of the node.
  // `split`: the split that has the node in a path; null: none. Then a path that begins before the
  // node is described with the stages before its split: the pipeline is still being built.
  stages visit(const node_base& node, stage* split);
  stage& add(const node_facts& facts) { return stages_.emplace_back(stage{&facts}); }
  stages ends_of_paths(const node_facts& facts, stage& split);

  std::deque<stage> stages_;
  stages opened_;
};

// Follows a chain of stages by a loop instead of recursion: a pipeline may be long.
described_stages::stages described_stages::visit(const node_base& node, stage* split) {
  stages result;
  auto* takers = &result;
  const auto* at = &node;
  while (true) {
    const auto& facts = at->facts();
    if (facts.role_ == node_facts::role::path && split) {
      takers->push_back(split);
      return result;
    }
    if (facts.role_ == node_facts::role::split) {
      auto& here = add(facts);
      std::ranges::copy(ends_of_paths(facts, here), std::back_inserter(*takers));
      opened_.push_back(&here);
      takers = &here.inputs;
    } else if (facts.is_stage()) {
      auto& here = add(facts);
      takers->push_back(&here);
      opened_.push_back(&here);
      takers = &here.inputs;
    }
    if (facts.inputs_.empty()) return result;
    for (std::size_t i = 0; i + 1 < facts.inputs_.size(); ++i)
      std::ranges::copy(visit(*facts.inputs_[i], split), std::back_inserter(*takers));
    at = facts.inputs_.back().get();
  }
}

described_stages::stages described_stages::ends_of_paths(const node_facts& facts, stage& split) {
  stages ends;
  for (auto path = facts.paths_.rbegin(); path != facts.paths_.rend(); ++path)
    std::ranges::copy(visit(**path, &split), std::back_inserter(ends));
  std::ranges::reverse(ends);
  return ends;
}

pipeline_description described_stages::in_order() {
  std::ranges::reverse(opened_);
  for (std::size_t i = 0; i < opened_.size(); ++i) opened_[i]->index = i;
  pipeline_description result;
  stage_names names;
  for (const auto* each : opened_) {
    auto& described = result.stages.emplace_back(each->facts->stage_);
    for (const auto* input : each->inputs) described.inputs.push_back(input->index);
    described.name = names.add(described.name);
  }
  return result;
}

pipeline_description describe(const node_base& last) { return described_stages(last).in_order(); }

}  // namespace detail

static std::string_view name_of(cardinality what) {
  constexpr std::array<std::string_view, 6> names{"source",  "one",   "at_most_one",
                                                  "several", "group", "custom"};
  return names.at(static_cast<std::size_t>(what));
}

static std::string_view name_of(stage_executor executor) {
  constexpr std::array<std::string_view, 4> names{"caller", "cpu_pool", "own_pool", "reactor"};
  return names.at(static_cast<std::size_t>(executor));
}

static std::string_view name_of(stage_ordering ordering) {
  constexpr std::array<std::string_view, 3> names{"kept", "changed", "custom"};
  return names.at(static_cast<std::size_t>(ordering));
}

using support::json_of;

static std::string json_of(const std::optional<std::uint64_t>& number) {
  return number ? std::to_string(*number) : "null";
}

// A dedicated pool is among the options.
static std::string_view in_words(stage_executor executor) {
  constexpr std::array<std::string_view, 4> words{"", ", on the CPU pool", "", ", on the reactor"};
  return words.at(static_cast<std::size_t>(executor));
}

static std::string inputs_in_words(const std::vector<std::size_t>& inputs) {
  std::string text;
  for (auto each : inputs) text += fmt::format(" {} {}", text.empty() ? "of" : "and", each + 1);
  return text;
}

static std::string line_of(const stage_description& stage) {
  std::string line = stage.name;
  if (stage.kind != stage.name) line += ": " + stage.kind;
  line += inputs_in_words(stage.inputs);
  line += in_words(stage.executor);
  for (const auto& [option, value] : stage.options)
    line += ", " + option + (value == "true" ? "" : " " + value);
  if (stage.ordering == stage_ordering::changed) line += ", reordered";
  if (!stage.refuses_state.empty()) line += ", no state";
  if (stage.size) line += fmt::format(", {} items", *stage.size);
  return printable(line);
}

std::string to_string(const pipeline_description& pipeline) {
  std::string text;
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i)
    text += fmt::format("{} {}\n", i + 1, line_of(pipeline.stages[i]));
  return text;
}

static std::string json_of(const stage_description& stage) {
  std::vector<std::string> inputs;
  for (auto each : stage.inputs) inputs.push_back(std::to_string(each));
  std::vector<std::pair<const char*, std::string>> options;
  for (const auto& [option, value] : stage.options)
    options.emplace_back(option.c_str(), json_of(std::string_view(value)));
  const std::vector<std::pair<const char*, std::string>> members{
      {"name", json_of(std::string_view(stage.name))},
      {"kind", json_of(std::string_view(stage.kind))},
      {"inputs", support::json_array(inputs)},
      {"cardinality", json_of(name_of(stage.cardinality))},
      {"executor", json_of(name_of(stage.executor))},
      {"ordering", json_of(name_of(stage.ordering))},
      {"options", support::json_object(options)},
      {"size", json_of(stage.size)},
      {"held_items", json_of(stage.held_items)},
      {"held_bytes", json_of(stage.held_bytes)},
      {"refuses_state",
       stage.refuses_state.empty() ? "null" : json_of(std::string_view(stage.refuses_state))}};
  return support::json_object(members);
}

std::string to_json(const pipeline_description& pipeline) {
  std::vector<std::string> stages;
  for (const auto& each : pipeline.stages) stages.push_back(json_of(each));
  const std::vector<std::pair<const char*, std::string>> members{
      {"stages", support::json_array(stages)}};
  return support::json_object(members);
}

}  // namespace lade
