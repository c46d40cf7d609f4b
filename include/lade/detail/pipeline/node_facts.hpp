// What the nodes of a pipeline say of themselves.

#pragma once

#include <lade/description.hpp>
#include <lade/detail/common/counted.hpp>
#include <lade/item_order.hpp>
#include <lade/lineage_rule.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lade::detail {

class node_base;
using node_ptr = counted_ptr<const node_base>;

// What a stage does to the parts that an earlier stage has made of an item.
enum class parts_effect : std::uint8_t {
  keeps,     // parts can be told apart behind it
  mixes,     // its items are made of several, so they cannot
  reorders,  // the same, and dropped items may count to other items in a resumed run
  makes,     // it makes several items of one
};

// Of one node. Made by one of the static functions and completed by the others:
//
//   node_facts::behind(in, "map", name).on(stage_executor::cpu_pool).with("buffer", buffer)
//
// Immutable once the node has it.
class node_facts {
 public:
  // A source; a stage behind one input, of which it yields as many items; behind several. The name
  // is that in statistics; the kind, if not given.
  static node_facts source(std::string name, std::optional<std::uint64_t> size = {});
  static node_facts behind(node_ptr in, std::string kind, std::string name = {});
  static node_facts behind_all(std::vector<node_ptr> inputs, std::string kind,
                               std::string name = {});

  // A part of the stage behind it, or of a run, which is no stage of its own.
  static node_facts part_behind(node_ptr in);
  static node_facts of_run();

  // Where the items of a split go on: the beginning of one of its paths, the number of which is
  // behind that of the stages of the paths before it; and what a split's paths end in.
  static node_facts path_of(node_ptr in, std::uint64_t number);
  static node_facts split_of(node_ptr in, std::vector<node_ptr> paths, std::string kind,
                             std::string name);

  node_facts uncounted() &&;  // statistics do not have the stage
  node_facts on(stage_executor executor) &&;
  node_facts yielding(cardinality what, std::optional<std::uint64_t> size = {}) &&;
  node_facts in_groups(std::uint64_t size, bool drop_last) &&;

  // How many items it holds at most, and how many bytes of them.
  node_facts holding(std::optional<std::uint64_t> items,
                     std::optional<std::uint64_t> bytes = {}) &&;

  // What it does to order and lineage, from which a plan derives what a state of the run needs.
  // `how`: what errors call the stage. A stage that makes groups of `size` items, each `step` items
  // behind the one before, is mixing or refuses a state besides.
  node_facts mixing_parts(std::string how) &&;
  node_facts reordering(std::string how) &&;
  node_facts making_parts(std::string how, bool tells_members) &&;  // of groups that have a size
  node_facts grouping(std::uint64_t size, std::uint64_t step) &&;
  node_facts completing(item_order order) &&;  // reordering, if it is that of completion
  node_facts pairing() &&;         // it takes items of several inputs or paths side by side
  node_facts counting_steps() &&;  // its items are the steps of the consumer: it is the last stage
  node_facts joining() &&;  // of a split: its items are those of its input again, in their order
  node_facts following(lineage_rule rule, const std::string& stage) &&;
  node_facts refusing_state(std::string why) &&;

  // It keeps what the stages before it yield, for later runs. It says where it wants the tensors of
  // batches: see planned_node::batch_memory.
  node_facts caching() &&;
  node_facts wanting_batches() &&;

  // Adds an option; see stage_description::options.
  node_facts with(std::string option, std::string_view value) &&;
  node_facts with(std::string option, std::uint64_t value) &&;
  node_facts with_flag(std::string option, bool value) &&;  // left out if false

  // Its place in its pipeline, from 1 on, counted along its longest input; the paths of a split are
  // counted one after the other. A part of the keys of its random numbers.
  std::uint64_t number() const noexcept { return number_; }
  const std::optional<std::uint64_t>& size() const noexcept { return stage_.size; }

  // Whether statistics have it, as a stage of its own.
  bool is_counted() const noexcept { return role_ == role::stage || role_ == role::split; }
  bool is_path() const noexcept { return role_ == role::path; }
  bool is_reordering() const noexcept { return effect_ == parts_effect::reorders; }

 private:
  friend class described_stages;
  friend class plan;
  enum class role : std::uint8_t { stage, uncounted_stage, part, path, split };

  stage_description stage_;  // without its inputs
  role role_ = role::stage;
  std::vector<node_ptr> inputs_;
  std::vector<node_ptr> paths_;
  std::uint64_t number_ = 1;

  parts_effect effect_ = parts_effect::keeps;
  std::string effect_name_;
  bool tells_members_ = true;
  std::string groups_;  // "of 4 in steps of 2"
  bool pairs_ = false;
  bool joins_ = false;
  bool counts_steps_ = false;
  bool consumes_ = false;  // as far as its author says
  bool caches_ = false;
  bool wants_batches_ = false;
};

// Of a pipeline, by its last node.
pipeline_description describe(const node_base& last);

}  // namespace lade::detail
