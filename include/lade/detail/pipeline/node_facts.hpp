// What the nodes of a pipeline say of themselves.

#pragma once

#include <lade/description.hpp>
#include <lade/detail/common/counted.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lade::detail {

class node_base;
using node_ptr = counted_ptr<const node_base>;

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

  // Adds an option; see stage_description::options.
  node_facts with(std::string option, std::string_view value) &&;
  node_facts with(std::string option, std::uint64_t value) &&;
  node_facts with_flag(std::string option, bool value) &&;  // left out if false

  // Its place in its pipeline, from 1 on, counted along its longest input; the paths of a split are
  // counted one after the other. A part of the keys of its random numbers.
  std::uint64_t number() const noexcept { return number_; }
  const std::optional<std::uint64_t>& size() const noexcept { return stage_.size; }

 private:
  friend class described_stages;
  enum class role : std::uint8_t { stage, uncounted_stage, part, path, split };

  stage_description stage_;  // without its inputs
  role role_ = role::stage;
  std::vector<node_ptr> inputs_;
  std::vector<node_ptr> paths_;
  std::uint64_t number_ = 1;
};

// Of a pipeline, by its last node.
pipeline_description describe(const node_base& last);

}  // namespace lade::detail
