// Memory that a library has taken from malloc and freed.

#pragma once

#include <cstddef>

namespace lade::detail {

// Gives the pages of up to so many bytes that this thread has freed to the system. malloc keeps
// them in the arena of the thread, for nobody else: a pool of many threads would hold as many
// images. For memory that a library takes by itself, after a large image.
void give_back_freed(std::size_t bytes) noexcept;

}  // namespace lade::detail
