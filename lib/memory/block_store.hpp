// block_store: the free blocks of a buffer_pool, in a limited number of sizes.

#pragma once

#include <lade/memory_resource.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace lade::detail {

struct block_group;

// A block, and the group that contains it. If the resource can discard pages, blocks of more than
// 32 KiB and up to 2 MiB lie side by side in huge pages. Disks write faster to huge pages than to
// many small ones. Other blocks are groups of one.
struct block {
  void* memory = nullptr;
  block_group* group = nullptr;
};

// Throws error(not_enough_memory) for an allocation of `bytes`.
[[noreturn]] void raise_no_memory(std::size_t bytes);

// Allocates from a resource. Rethrows its exceptions. Throws error(not_enough_memory) if the
// resource returns null.
std::byte* allocate_from(memory_resource& resource, std::size_t bytes, std::size_t alignment);

// The size of the block for `bytes`. Throws error(not_enough_memory) if it could overflow.
std::size_t block_bytes_for(std::size_t bytes);

// Groups whose memory the destructor deallocates. Deallocation is slow, so the object must be
// destroyed without the mutex.
class surplus {
 public:
  surplus() = default;
  surplus(surplus&& other) noexcept : groups_(std::exchange(other.groups_, nullptr)) {}
  surplus& operator=(surplus&& other) noexcept {
    std::swap(groups_, other.groups_);
    return *this;
  }
  ~surplus();

  void add(block_group& group) noexcept;

 private:
  block_group* groups_ = nullptr;
};

// The free blocks of one resource. A block is in use, full or empty:
//
//   new_block() ──> in use ── keep() ──> full: free, with memory ───── take() ──> in use
//                          ── drop() ──> empty: free, without memory ─ take() ──> in use
//                   full ── shrink() ──> empty
//
// A group without used and full blocks returns to the resource.
//
// - Records lie outside the blocks, which may be memory of a device.
// - Guarded by the mutex of its owner, except new_block().
// - All blocks must be free when the store is destroyed.
class block_store {
 public:
  explicit block_store(memory_resource& resource) : resource_(share_of(resource)) {}
  block_store(const block_store&) = delete;
  block_store& operator=(const block_store&) = delete;
  ~block_store();

  memory_resource& resource() const noexcept { return *resource_; }

  // The bytes of all full blocks.
  std::size_t kept_bytes() const noexcept { return kept_bytes_; }

  // Allocates a new group and returns its first block. Needs no mutex. Rethrows the exceptions of
  // the resource. take() returns the other blocks of the group only after add().
  block new_block(std::size_t block_bytes) const;
  void add(const block& added) noexcept;

  // Takes a full block of the size, else an empty one. Null if there is neither.
  block take(std::size_t block_bytes) noexcept;

  // Returns a used block as a full one.
  void keep(block back) noexcept;

  // Returns a used block as an empty one.
  void drop(block back, surplus& to) noexcept;

  // Empties full blocks, the largest first, until `bytes` are released or none is left.
  void shrink(std::size_t bytes, surplus& to) noexcept;

 private:
  struct group_list {
    block_group* first = nullptr;

    void push(block_group& added) noexcept;
    void remove(block_group& member) noexcept;
  };

  static constexpr std::size_t sizes = 8 + 8 * 55;

  group_list* list_of(const block_group& group) noexcept;
  void note(block_group& group, std::uint64_t full, std::uint64_t empty) noexcept;
  void empty_out(block_group& group, surplus& to) noexcept;
  void drop(block_group& group, surplus& to) noexcept;

  std::shared_ptr<memory_resource> resource_;
  std::array<group_list, sizes> full_{};   // groups with full blocks
  std::array<group_list, sizes> empty_{};  // groups with empty blocks and no full ones
  std::size_t kept_bytes_ = 0;
};

}  // namespace lade::detail
