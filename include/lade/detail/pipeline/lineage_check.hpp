// lineage_check: verifies that a custom stage yields every position that it takes exactly once.

#pragma once

#include <lade/lineage.hpp>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace lade::detail {

// Keeps the positions that a stage has taken and not yielded yet. If items share positions, as
// parts of one item and overlapping windows do, or have none, the check ends for good. Any thread.
class lineage_check {
 public:
  // `rule`: the lineage_rule that the stage claims to follow, for errors.
  explicit lineage_check(std::string rule) : rule_(std::move(rule)) {}

  // The stage has taken an item.
  void take(const lineage& origin);

  // The stage yields an item. Throws error(invalid_argument) if the stage does not hold all of its
  // positions, or if it has none.
  void give(const lineage& origin);

  // The stage has ended. `unyielded`: the lineage that it consumed after its last item. Throws
  // error(invalid_argument) if it still holds positions.
  void end(const lineage& unyielded);

 private:
  [[noreturn]] void fail(const std::string& why) const;
  bool meets(const lineage::range& taken) const;
  void insert(lineage::range added);
  bool erase(const lineage::range& gone);

  const std::string rule_;
  std::mutex mutex_;                           // guards the members below
  std::map<std::uint64_t, std::uint64_t> in_;  // held ranges, by first position; never adjacent
  bool is_off_ = false;
};

}  // namespace lade::detail
