// plan: the graph of the stages of a run, and the requirements of later stages on earlier ones.

#pragma once

#include <lade/detail/pipeline/node_facts.hpp>
#include <lade/detail/pipeline/stage_key.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace lade {

class memory_resource;

namespace detail {

class progress;
struct planned_node;

// The requirements of later stages for a node and the nodes before it.
struct planned_rules {
  // The nearest later stage behind which parts of one item cannot be distinguished; null if there
  // is none. With one, a stage that makes parts refuses a state (a checkpoint).
  const std::string* mixes_parts = nullptr;

  // Whether a later stage splits items into parts, and whether the number of members of an item is
  // then unknown.
  bool parts_behind = false;
  bool members_unknown = false;

  // Whether a later stage pairs or splits items, and whether one may end before its input.
  bool keeps_batches_whole = false;
  bool may_end_early = false;

  // Whether a batch or window that a failure of the input cuts short is not delivered: it would be
  // paired or split unlike in any other run, or be the last item of a run that ends without the
  // failure.
  bool fails_at_once() const noexcept { return keeps_batches_whole || may_end_early; }

  bool is_reopened = false;  // a later stage opens its input several times in a run

  // Whether a later stage may drop or add items, so that the consumer takes another number of items
  // than the node yields.
  bool count_changes_behind = false;

  bool in_path = false;  // the node is in a path of a route or tee

  // The nearest later cache, and the nearest later stage that chooses the memory of batches.
  const planned_node* cache = nullptr;
  const planned_node* batches_for = nullptr;
};

// One place of a node in the graph. A node that is an input of several nodes, or several inputs of
// one, has several places. It is opened at each of them.
struct planned_node {
  const node_base* node = nullptr;       // null at the end, behind the last node
  const planned_node* behind = nullptr;  // node that takes its items
  planned_rules rules = {};
  std::vector<const planned_node*> inputs = {};  // inputs; of a split, after the ends of its paths
  std::uint64_t branch = 0;                      // differs between the places of one node
  unsigned depth = 0;                            // number of places behind it, with the end
  unsigned halvings = 0;  // how often later nodes have halved the positions of the sources

  // Of a stage: its name in statistics, descriptions and states, unique among the stages of the
  // run, and its number from the end, in the order of opening; the last stage: 1.
  std::string name = {};
  unsigned from_end = 0;

  // Of a stage that makes groups which a later stage splits: the description of the groups in a
  // state.
  std::string groups = {};

  // Of a stage that chooses the memory of batches, such as memory that it copies fastest from: the
  // memory, once the stage is opened.
  mutable memory_resource* batch_memory = nullptr;

  // Of a cache: whether a stage before it has items that cannot be skipped exactly.
  mutable std::atomic<bool> indivisible = false;

  stage_key key() const noexcept { return {node, branch}; }
  const node_facts& facts() const noexcept;

  // The place of an input, or of a path that begins with the node `of`. Ends the process if `of` is
  // neither: the facts of the node then omit an input that it opens.
  const planned_node& input(const node_base& of) const;

  // The memory for tensors of batches that later stages choose; null: any.
  memory_resource* wanted_memory() const noexcept {
    return rules.batches_for ? rules.batches_for->batch_memory : nullptr;
  }
};

// The places of all nodes of a run, from the last node to the sources. Immutable, except for the
// mutable members, which each stage sets at its own place. Any thread.
class plan {
 public:
  // `policy`: the run's, for stages without one. Reports to `states` the stages that refuse a
  // state, and the required contents of a state. Throws error(invalid_argument) if the run requires
  // a state that is refused. Throws error(limit_exceeded) if too many stages with several inputs
  // are nested.
  plan(const node_base& last, progress& states, on_error policy);

  // The place behind the last node, at which opening begins.
  const planned_node& end() const noexcept { return places_.front(); }

  // Records, for a cache behind the place, that there is no exact state because of that node.
  static void record_indivisible(const planned_node& place) noexcept;

 private:
  planned_node& add_input(const node_base& node, planned_node& behind, const planned_rules& rules,
                          std::size_t number);
  void visit(planned_node& first, planned_rules* path_rules);
  planned_rules rules_before(planned_node& place);
  planned_rules rules_before_paths(planned_node& split, planned_rules inside);
  void apply_effect(const planned_node& place, planned_rules& rules);
  void mix_parts(const std::string& how, planned_rules& rules);
  void make_parts(const planned_node& place, planned_rules& rules);
  void require_last(const planned_node& place);
  void refuse(const planned_node& place, const std::string& why);
  void name_stages();

  progress& progress_;
  on_error policy_;
  std::deque<planned_node> places_;
  std::vector<planned_node*> stages_;  // in the order of opening, which is from the last one
};

// Makes the names of the stages of a pipeline unique, from the sources on: "map", "map (2)".
class stage_names {
 public:
  std::string add(const std::string& name);

 private:
  std::unordered_map<std::string, unsigned> used_;  // how often
};

}  // namespace detail

}  // namespace lade
