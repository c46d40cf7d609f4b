// What is known of the stages of a run before they are opened.

#pragma once

#include <lade/detail/pipeline/node_facts.hpp>
#include <lade/detail/pipeline/stage_key.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace lade {

class memory_resource;

namespace detail {

class progress;
struct planned_node;

// What the stages behind a node require of it, and of the nodes before it.
struct planned_rules {
  // The stage behind which parts of one item cannot be told apart; null if there is none. A stage
  // that makes parts before it refuses a state.
  const std::string* mixes_parts = nullptr;

  // Whether a later stage makes several items of one, and whether it cannot tell then how many
  // members an item has.
  bool parts_behind = false;
  bool members_unknown = false;

  // Whether a later stage pairs items or splits them, so that a batch which a failure has cut short
  // would be paired or split like none of another run: it is not delivered.
  bool keeps_batches_whole = false;

  bool in_path = false;  // of a route or tee

  // The nearest cache behind the node, and the nearest stage that says where it wants batches.
  const planned_node* cache = nullptr;
  const planned_node* batches_for = nullptr;
};

// A node at one place of the graph. A node that several others take items of, or one of which
// several inputs are the same, is at several places, and is opened at each.
struct planned_node {
  const node_base* node = nullptr;       // null behind the last
  const planned_node* behind = nullptr;  // the node that takes its items
  planned_rules rules = {};
  std::vector<const planned_node*> inputs = {};  // behind the paths, if the node is a split
  std::uint64_t branch = 0;                      // differs between the places of one node
  unsigned depth = 0;                            // how many nodes are behind it
  unsigned halvings = 0;  // how often those behind it have divided the positions of the sources

  // Of a stage that makes groups which a later stage splits: what a state says of them.
  std::string groups = {};

  // Of a stage that wants batches in memory that it copies fastest from: which, when it is opened.
  mutable memory_resource* batch_memory = nullptr;

  // Of a cache: whether a stage before it has items that cannot be left out exactly.
  mutable std::atomic<bool> indivisible = false;

  stage_key key() const noexcept { return {node, branch}; }
  const node_facts& facts() const noexcept;

  // The input or path that begins with a node. Ends the process if `of` is none of both: its facts
  // do not tell what the node opens.
  const planned_node& input(const node_base& of) const;

  // Where the stages behind it want tensors of batches; null: anywhere.
  memory_resource* wanted_memory() const noexcept {
    return rules.batches_for ? rules.batches_for->batch_memory : nullptr;
  }
};

// The nodes of a run, from the last to the sources: in the order in which the run opens them.
// Immutable, except for what stages set at their own place. Any thread.
class plan {
 public:
  // Tells `states` which stages refuse a state, and what it has to contain. Throws
  // error(invalid_argument) if the run requires a state that is refused, and error(limit_exceeded)
  // if too many stages have several inputs, each inside of another.
  plan(const node_base& last, progress& states);

  // The place behind the last node, which it is opened from.
  const planned_node& end() const noexcept { return places_.front(); }

  // There is no exact state, because of the node at that place: a cache behind it has to know.
  static void note_indivisible(const planned_node& place) noexcept;

 private:
  planned_node& add_input(const node_base& node, planned_node& behind, const planned_rules& rules,
                          std::size_t number);
  void visit(planned_node& first, planned_rules* told);
  planned_rules rules_before(planned_node& place);
  planned_rules rules_before_paths(planned_node& split, planned_rules inside);
  void apply_effect(const planned_node& place, planned_rules& rules);
  void mix_parts(const std::string& how, planned_rules& rules);
  void make_parts(const planned_node& place, planned_rules& rules);
  void require_last(const planned_node& place);
  void refuse(const planned_node& place, const std::string& why);

  progress& progress_;
  std::deque<planned_node> places_;
};

}  // namespace detail

}  // namespace lade
