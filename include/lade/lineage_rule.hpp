// Which items a custom stage makes its items of.

#pragma once

#include <cstdint>

namespace lade {

// Which items of its input a custom stage makes each of its items of. A run that goes on from a
// state calls the stage anew, for the items whose positions have not been delivered; it is exact
// only if the stage then yields what it would have yielded without the interruption. So whichever
// rule it follows, what it yields must depend on these items alone: not on how many came before
// them, nor on whose turn it is, nor on what it remembers of items whose lineage it has yielded.
enum class lineage_rule : std::uint8_t {
  unspecified,  // run.state() is refused
  consumed,     // all items it took since it yielded the item before: filters, joins
  carried,      // those whose lineage it yields with it (held<T>): shuffles, sorters, re-batchers
};

}  // namespace lade
