// How items are sharded if their number is not a multiple of the number of ranks.

#pragma once

#include <cstdint>

namespace lade {

// How items are distributed among the ranks if their number is not a multiple of the number of
// ranks. All ranks yield the same number of items, except with `keep`.
enum class remainder : std::uint8_t {
  drop,  // drops the last items
  pad,   // repeats the last item
  wrap,  // repeats items from the first on
  keep,  // yields every item once: the first ranks have one item more than the others
};

}  // namespace lade
