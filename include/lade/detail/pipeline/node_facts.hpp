// node_facts: the properties of a node, for plans, descriptions and statistics.

#pragma once

#include <lade/description.hpp>
#include <lade/detail/common/counted.hpp>
#include <lade/failure.hpp>
#include <lade/item_order.hpp>
#include <lade/lineage_rule.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lade {

class thread_pool;

namespace detail {

class node_base;
using node_ptr = counted_ptr<const node_base>;

// The effect of a stage on parts that an earlier stage made of an item.
enum class parts_effect : std::uint8_t {
  keeps,     // parts remain distinguishable
  mixes,     // makes each item of several, so parts are indistinguishable
  reorders,  // the same, and in a resumed run dropped items may count to other items
  makes,     // makes several items of one
};

// The facts of one node. A static function makes them, and the others complete them:
//
//   node_facts::behind(in, "map", name).on(stage_executor::cpu_pool).with("buffer", buffer)
//
// Immutable once a node owns them.
class node_facts {
 public:
  // source: a source. behind: a stage that yields one item for each item of its input. behind_all:
  // a stage with several inputs. `name`: the name in statistics; by default the kind.
  static node_facts source(std::string name, std::optional<std::uint64_t> size = {});
  static node_facts behind(node_ptr in, std::string kind, std::string name = {});
  static node_facts behind_all(std::vector<node_ptr> inputs, std::string kind,
                               std::string name = {});

  // A part of another stage, or of a run, which is no stage by itself.
  static node_facts part_behind(node_ptr in);

  // path_of: the beginning of a path of a split. Its `number` follows the stages of the paths
  // before it, `size` is the number of its items. split_of: the stage in which the paths of a split
  // end.
  static node_facts path_of(node_ptr in, std::uint64_t number, std::optional<std::uint64_t> size);
  static node_facts split_of(node_ptr in, std::vector<node_ptr> paths, std::string kind,
                             std::string name);

  node_facts uncounted() &&;                // a stage without statistics
  node_facts made_by(std::string kind) &&;  // of a source; default: "from"
  node_facts on(stage_executor executor) &&;
  node_facts on(const thread_pool* pool) &&;  // null: the CPU pool
  node_facts yielding(cardinality what, std::optional<std::uint64_t> size = {}) &&;
  node_facts ordered(stage_ordering what) &&;             // default: kept
  node_facts failing(std::optional<on_error> policy) &&;  // items may fail; default: run's policy
  node_facts in_groups(std::uint64_t size, bool drop_last) &&;

  // The largest number of items that the stage holds, and of their bytes; see
  // stage_description::held_items.
  node_facts holding(std::optional<std::uint64_t> items,
                     std::optional<std::uint64_t> bytes = {}) &&;

  // The effect on order and lineage, from which a plan derives the requirements of a state (a
  // checkpoint). `how`: the name of the stage in errors. A stage that makes groups of `size` items,
  // each `step` items behind the one before, also mixes parts or refuses a state.
  node_facts mixing_parts(std::string how) &&;
  node_facts reordering(std::string how) &&;
  node_facts making_parts(std::string how, bool tells_members) &&;  // of groups with a size
  node_facts grouping(std::uint64_t size, std::uint64_t step) &&;
  node_facts completing(item_order order) &&;  // reordering, if `order` is completion
  node_facts pairing() &&;         // takes items of several inputs or paths side by side
  node_facts ending_early() &&;    // may end before its inputs do
  node_facts reopening() &&;       // opens its input several times in a run
  node_facts counting_steps() &&;  // its items are the steps of the consumer: it is the last stage
  node_facts joining() &&;  // of a split: yields the items of its input again, in their order
  node_facts following(lineage_rule rule, const std::string& stage) &&;
  node_facts refusing_state(std::string why) &&;

  // caching: the stage keeps the items of the stages before it for later runs. wanting_batches: the
  // stage chooses the memory of batches; see planned_node::batch_memory.
  node_facts caching() &&;
  node_facts wanting_batches() &&;

  // Adds the options for failures and time limits that are set.
  node_facts with(const failure_policy& policy, const time_limits& limits = {}) &&;

  // Adds an option; see stage_description::options.
  node_facts with(std::string option, std::string_view value) &&;
  node_facts with(std::string option, std::uint64_t value) &&;
  node_facts with_flag(std::string option, bool value) &&;            // omitted if false
  node_facts with_limit(std::string option, std::uint64_t bytes) &&;  // omitted without a limit

  // The place in the pipeline, from 1, counted along the longest input; the paths of a split count
  // one after the other. A part of the keys of the stage's random numbers.
  std::uint64_t number() const noexcept { return number_; }
  const std::string& name() const noexcept { return stage_.name; }
  const std::optional<std::uint64_t>& size() const noexcept { return stage_.size; }

  // Whether the node is a stage, instead of a part of one or of a run. is_counted(): whether it is
  // also a separate stage in statistics.
  bool is_stage() const noexcept { return role_ != role::part && role_ != role::path; }
  bool is_counted() const noexcept { return role_ == role::stage || role_ == role::split; }
  bool is_path() const noexcept { return role_ == role::path; }

  // Whether the stage may yield fewer or more items than it takes, in a run with this policy.
  bool changes_count(on_error of_run) const noexcept;

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
  bool may_fail_ = false;
  std::optional<on_error> policy_;  // if items may fail; none: the run's
  bool pairs_ = false;
  bool ends_early_ = false;
  bool reopens_ = false;
  bool joins_ = false;
  bool counts_steps_ = false;
  bool consumes_ = false;  // as far as its author claims
  bool caches_ = false;
  bool wants_batches_ = false;
};

// Describes a pipeline, by its last node.
pipeline_description describe(const node_base& last);

}  // namespace detail

}  // namespace lade
