// The stages that a run has opened.

#pragma once

#include <lade/detail/observability/overview.hpp>
#include <lade/detail/pipeline/stage_key.hpp>
#include <lade/detail/pipeline/tuned_stages.hpp>
#include <lade/stats.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lade::detail {

// Their counters, in the order in which they were opened: from the last to the sources. What is
// told of all stages is told from the sources on. Any thread.
class stage_registry {
 public:
  // `tuned`: the stages whose concurrency is automatic, which it names.
  explicit stage_registry(tuned_stages& tuned);
  ~stage_registry();

  // The counters of a stage. A stage that is opened again keeps its counters. The reference is
  // valid as long as the registry.
  stage_counters& add(std::string name, const stage_key& stage, std::size_t inputs);
  void record_workers(stage_counters& stage, const stage_workers& resources);
  void record_groups(stage_counters& stage, std::string groups);

  // The name of a stage; empty if it has no name or is not a stage of this run.
  std::string name_of(const stage_key& stage) const;
  std::string name_of(std::uint64_t stage_number) const;

  // The names of all. Where a state depends on the size of batches or windows, the name includes
  // it: "batch of 4".
  std::vector<std::string> names() const;

  std::vector<stage_statistics> statistics(clock::time_point now) const;

  // How many bytes of buffers they have allocated, ever.
  std::uint64_t allocated_bytes() const;

  // How many items the run has begun. Parts of one item are items of their own, which the stage
  // behind them takes. What a source takes, such as shards, are no items yet.
  std::uint64_t items_begun() const;

  // The stages that a stall report is made of, and the report. Unwatch a stage before it ends.
  void watch(const overviewed& stage);
  void unwatch(const overviewed& stage) noexcept;
  std::string overviews(clock::time_point at) const;

 private:
  struct contents;
  std::unique_ptr<contents> in_;
};

}  // namespace lade::detail
