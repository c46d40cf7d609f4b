// Whether a custom stage yields every lineage that it takes once.

#pragma once

#include <lade/lineage.hpp>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace lade::detail {

// Keeps the positions that a stage has taken and not yielded yet. Where items share positions
// (parts of one item, windows that overlap) or have none, nothing can be told and nothing is
// checked: stages before this one have refused a state. Any thread.
class lineage_check {
 public:
  // `rule` is what the stage says it follows, for errors.
  explicit lineage_check(std::string rule) : rule_(std::move(rule)) {}

  // The stage has taken an item.
  void take(const lineage& origin);

  // It yields one. Throws error(invalid_argument) if the item comes of nothing that the stage
  // holds.
  void give(const lineage& origin);

  // It has ended, having consumed `unyielded` since its last item. Throws error(invalid_argument)
  // if positions are missing.
  void end(const lineage& unyielded);

 private:
  [[noreturn]] void fail(const std::string& why) const;
  bool meets(const lineage::range& taken) const;
  void insert(lineage::range added);
  bool erase(const lineage::range& gone);

  const std::string rule_;
  std::mutex mutex_;                           // guards what follows
  std::map<std::uint64_t, std::uint64_t> in_;  // ranges by their first positions, not adjacent
  bool is_off_ = false;
};

}  // namespace lade::detail
