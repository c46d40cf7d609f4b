#include "freed_memory.hpp"

#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace lade::detail {

struct freed_piece {
  freed_piece* next;
};

// malloc reuses freed memory first. So the function allocates it again, discards its pages and
// frees it. Pieces are below the smallest size that malloc maps separately. The link at the front
// of each piece keeps its first page.
void give_back_freed(std::size_t bytes) noexcept {
  constexpr std::size_t piece_bytes = std::size_t{120} << 10;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  freed_piece* taken = nullptr;
  for (std::size_t given = 0; given < bytes; given += piece_bytes) {
    void* memory = std::malloc(piece_bytes);
    if (memory == nullptr) break;
    taken = new (memory) freed_piece{taken};
    const auto first = reinterpret_cast<std::uintptr_t>(memory);
    const auto begin = (first + sizeof(freed_piece) + page - 1) / page * page;
    const auto end = (first + piece_bytes) / page * page;
    (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  while (taken != nullptr) std::free(std::exchange(taken, taken->next));
}

}  // namespace lade::detail
