// What is where in a stage at one moment, for people who look for what hangs.

#pragma once

#include <lade/lineage.hpp>
#include <lade/stats.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lade::detail {

// An item between the feeder and the next stage, or in the call of a stage in place.
struct item_overview {
  enum class doing : std::uint8_t { waits_for_worker, works, pauses, yields_part, done };

  std::string name;  // may be empty
  lineage origin;
  doing what = doing::waits_for_worker;
  clock::time_point since = {};  // for works and pauses
};

struct stage_overview {
  enum class feeding : std::uint8_t { waits_for_input, waits_for_room, waits_for_memory, over };

  std::size_t slots = 0;
  std::size_t free = 0;
  std::size_t idle_workers = 0;
  feeding feeder = feeding::waits_for_input;
  bool wanted = false;  // the next stage waits for an item
  std::vector<item_overview> items = {};
};

std::string to_string(const std::string& stage, const stage_overview& now, clock::time_point at);

// Of a stage in place, with the item that its function is called for, if it is.
std::string to_string(const std::string& stage, const std::optional<item_overview>& item,
                      clock::time_point at);

// A stage of which there is an overview. Any thread may ask for it.
class overviewed {
 public:
  virtual ~overviewed() = default;
  virtual std::string overview(clock::time_point at) const = 0;
};

}  // namespace lade::detail
