// A snapshot of the items in a stage, as text for stall reports.

#pragma once

#include <lade/detail/observability/stage_counters.hpp>
#include <lade/lineage.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lade::detail {

// An item between the feeder and the next stage, or in the call of an inline stage.
struct item_overview {
  enum class doing : std::uint8_t { waits_for_worker, works, pauses, yields_part, done };

  std::string name;  // may be empty
  lineage origin;
  doing what = doing::waits_for_worker;
  clock::time_point since = {};  // start of `works` and `pauses`
};

struct stage_overview {
  enum class feeding : std::uint8_t { waits_for_input, waits_for_slot, waits_for_memory, over };

  std::size_t slots = 0;
  std::size_t free = 0;
  std::size_t idle_workers = 0;
  feeding feeder = feeding::waits_for_input;
  bool wanted = false;  // whether the next stage waits for an item
  std::vector<item_overview> items = {};
};

std::string to_string(const std::string& stage, const stage_overview& now, clock::time_point at);

// The report of an inline stage. `item`: the item that its function is processing, if any.
std::string to_string(const std::string& stage, const std::optional<item_overview>& item,
                      clock::time_point at);

// The interface of a stage for stall reports. Any thread may call overview().
class overviewed {
 public:
  virtual ~overviewed() = default;
  virtual std::string overview(clock::time_point at) const = 0;
};

}  // namespace lade::detail
