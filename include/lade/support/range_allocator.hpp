// range_allocator: allocates parts of large regions, with all records outside the regions.

#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace lade::support {

// Divides each region into free and used ranges. Adjacent free ranges of a region are always
// joined. The allocator neither reads nor writes the memory, which may be that of a device.
//
// Thread: one at a time, under a mutex of the owner.
class range_allocator {
 public:
  // All sizes are multiples of this. The remainder of a region is not used.
  static constexpr std::size_t granule = 64;

  range_allocator() = default;
  range_allocator(const range_allocator&) = delete;
  range_allocator& operator=(const range_allocator&) = delete;

  // Adds a region, which must not overlap others and must live until remove(). Throws
  // std::bad_alloc.
  void add(std::span<std::byte> region);

  // Removes a region, which must be entirely free.
  void remove(std::byte* region) noexcept;

  // Allocates from the smallest free range that fits. `alignment`: a power of two. Returns null if
  // no range fits. Throws std::bad_alloc without an effect.
  std::byte* allocate(std::size_t bytes, std::size_t alignment);

  // Frees memory of allocate(). Returns the region if all of it is free now, otherwise null.
  std::byte* deallocate(std::byte* memory) noexcept;

  std::size_t free_bytes() const noexcept { return free_bytes_; }
  std::size_t largest_range() const noexcept { return free_.empty() ? 0 : free_.rbegin()->first; }

 private:
  using by_size = std::set<std::pair<std::size_t, std::byte*>>;

  struct range {
    std::size_t bytes;
    std::byte* region;
    // While the range is used: its node for free_, so that freeing allocates nothing.
    by_size::node_type entry = {};

    bool is_free() const noexcept { return entry.empty(); }
  };
  using range_map = std::map<std::byte*, range>;

  void cut(range_map::iterator at, std::size_t bytes);
  range_map::iterator split(range_map::iterator at, std::size_t offset);
  void resize(range_map::iterator at, std::size_t bytes) noexcept;
  bool may_join(range_map::iterator first, range_map::iterator second) const noexcept;
  void join(range_map::iterator first, range_map::iterator second) noexcept;

  range_map ranges_;  // all ranges, by address
  by_size free_;      // free ranges
  std::size_t free_bytes_ = 0;
};

}  // namespace lade::support
