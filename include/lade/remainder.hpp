// What happens to items that do not divide by the number of ranks.

#pragma once

#include <cstdint>

namespace lade {

// What every rank of a distributed run does when the items do not divide by the number of ranks.
// All ranks have the same number of items, except with `keep`.
enum class remainder : std::uint8_t {
  drop,  // the last items are left out
  pad,   // the last item is repeated
  wrap,  // the first items follow the last
  keep,  // every item once: the first ranks have one item more than the others
};

}  // namespace lade
