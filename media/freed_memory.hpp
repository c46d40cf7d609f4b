// Returns memory to the system that a library has allocated with malloc and freed.

#pragma once

#include <cstddef>

namespace lade::detail {

// Returns to the system the pages of up to `bytes` that this thread has freed. Without it, malloc
// keeps them in the arena of the thread, so a pool of many threads would hold as many images. Call
// it after a large image, if the decoder allocated the memory itself.
void give_back_freed(std::size_t bytes) noexcept;

}  // namespace lade::detail
