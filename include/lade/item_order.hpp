// The order in which a concurrent stage yields its items.

#pragma once

#include <cstdint>

namespace lade {

enum class item_order : std::uint8_t {
  input,       // that of its input: an item waits until those before it are done
  completion,  // as they finish
};

}  // namespace lade
