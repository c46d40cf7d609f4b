// lineage_rule: from which input items a custom stage makes its output items.

#pragma once

#include <cstdint>

namespace lade {

// From which input items a custom stage makes each of its output items.
//
// A resumed run calls the stage anew, with the items whose positions have not been delivered. It is
// exact only if the stage then yields the same items as without the interruption. So under every
// rule, an output item must depend on its input items alone. It must not depend on
// - the number of earlier items,
// - which input is next,
// - remembered items whose lineage the stage has already yielded.
enum class lineage_rule : std::uint8_t {
  unspecified,  // no rule: run::state() throws
  consumed,     // all items taken since the previous yield: filters, joins
  carried,  // the items whose lineage is yielded with it (held<T>): shuffles, sorters, re-batchers
};

}  // namespace lade
