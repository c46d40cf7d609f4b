// The order in which a concurrent stage yields its items.

#pragma once

#include <cstdint>

namespace lade {

enum class item_order : std::uint8_t {
  input,       // input order: a finished item waits for all items before it
  completion,  // completion order: each item as soon as it is finished
};

}  // namespace lade
