// stage_registry: the stages that a run has opened, and their counters.

#pragma once

#include <lade/detail/observability/overview.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/pipeline/plan.hpp>
#include <lade/stats.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lade::detail {

// Stages are added in the order of opening, from the last stage to the sources. Lists of all stages
// begin with the sources. Any thread; one mutex guards all members.
class stage_registry {
 public:
  stage_registry();
  ~stage_registry();

  // Adds a stage and returns its counters, which live as long as the registry. A stage that is
  // opened again keeps its counters.
  stage_counters& add(const planned_node& stage, std::size_t inputs);
  void record_workers(stage_counters& stage, const stage_workers& resources);
  void record_groups(stage_counters& stage, std::string groups);

  // The name of a stage; empty if the run has not opened it.
  std::string name_of(std::uint64_t stage_number) const;

  // The names of all stages, for states (checkpoints). If a state depends on the size of groups,
  // the name includes it: "batch of 4".
  std::vector<std::string> names() const;

  std::vector<stage_statistics> statistics(clock::time_point now) const;

  // The bytes of all buffers that the stages have allocated since the run began.
  std::uint64_t allocated_bytes() const;

  // The number of items that the run has started, for error budgets: the number that the sources
  // have yielded or, if a later stage has taken more items, that number. So each part of an item
  // counts, and the shards that a source reads do not.
  std::uint64_t items_begun() const;

  // The stages in stall reports, and the text of the report. A stage must be unwatched before it is
  // destroyed.
  void watch(const overviewed& stage);
  void unwatch(const overviewed& stage) noexcept;
  std::string overviews(clock::time_point at) const;

 private:
  struct contents;
  std::unique_ptr<contents> in_;
};

}  // namespace lade::detail
