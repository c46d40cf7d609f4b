// Parts of large regions of memory, with all records outside of the memory itself.

#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace lade::detail {

// Divides regions into ranges, free ones and used ones. Two free ranges of a region are never
// neighbours. Nothing reads or writes the memory, so it may be that of a device.
//
// Thread: one at a time; the owner has a mutex.
class range_allocator {
 public:
  static constexpr std::size_t granule = 64;  // of all sizes: the rest of a region is not used

  range_allocator() = default;
  range_allocator(const range_allocator&) = delete;
  range_allocator& operator=(const range_allocator&) = delete;

  // Regions must not overlap, and stay until they are removed. Throws std::bad_alloc.
  void add(std::span<std::byte> region);

  // All of the region must be free.
  void remove(std::byte* region) noexcept;

  // The smallest free range that has the bytes at that alignment, a power of two; null if there is
  // none. Throws std::bad_alloc, and has allocated nothing then.
  std::byte* allocate(std::size_t bytes, std::size_t alignment);

  // Frees what allocate() returned. Returns the region if all of it is free now, otherwise null.
  std::byte* deallocate(std::byte* memory) noexcept;

  std::size_t free_bytes() const noexcept { return free_bytes_; }
  std::size_t largest_range() const noexcept { return free_.empty() ? 0 : free_.rbegin()->first; }

 private:
  using by_size = std::set<std::pair<std::size_t, std::byte*>>;

  struct range {
    std::size_t bytes;
    std::byte* region;
    by_size::node_type entry =
        {};  // its entry in free_ while it is used: freeing allocates nothing

    bool is_free() const noexcept { return entry.empty(); }
  };
  using range_map = std::map<std::byte*, range>;

  void cut(range_map::iterator at, std::size_t bytes);
  range_map::iterator split(range_map::iterator at, std::size_t offset);
  void resize(range_map::iterator at, std::size_t bytes) noexcept;
  bool may_join(range_map::iterator first, range_map::iterator second) const noexcept;
  void join(range_map::iterator first, range_map::iterator second) noexcept;

  range_map ranges_;  // all of them, by address
  by_size free_;      // the free ones
  std::size_t free_bytes_ = 0;
};

}  // namespace lade::detail
