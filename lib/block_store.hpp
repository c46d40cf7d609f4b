// Memory in blocks of few sizes, which is used again: what a buffer_pool hands out.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace lade::detail {

struct block_group;
struct kept_block;

// Blocks of more than 32 KiB, up to 2 MiB, lie side by side in huge pages, in groups: disks write
// faster to those than to many small pages. Smaller and larger ones are on their own.
struct block {
  void* memory = nullptr;
  block_group* group = nullptr;
};

// Throws error(not_enough_memory) that tells how many bytes there are not.
[[noreturn]] void raise_no_memory(std::size_t bytes);

// The size of the block for so many bytes. Throws error(not_enough_memory) if that is absurd.
std::size_t block_bytes_for(std::size_t bytes);

// A block that nobody has had yet, in untouched memory. Throws error(not_enough_memory).
block new_block(std::size_t block_bytes);

// Memory that goes back to the system with this object. That takes long: do it without a mutex.
class surplus {
 public:
  surplus() = default;
  surplus(surplus&& other) noexcept
      : blocks_(std::exchange(other.blocks_, nullptr)),
        groups_(std::exchange(other.groups_, nullptr)) {}
  surplus& operator=(surplus&& other) noexcept {
    std::swap(blocks_, other.blocks_);
    std::swap(groups_, other.groups_);
    return *this;
  }
  ~surplus();

  void add(void* memory, std::size_t block_bytes) noexcept;
  void add(block_group& group) noexcept;

 private:
  kept_block* blocks_ = nullptr;
  block_group* groups_ = nullptr;
};

// The blocks that are not out. Guarded by the mutex of whoever owns it. All blocks must be back
// when it is destroyed.
class block_store {
 public:
  block_store() = default;
  block_store(const block_store&) = delete;
  block_store& operator=(const block_store&) = delete;
  ~block_store();

  // The bytes of blocks that are not out and have memory of the system.
  std::size_t kept_bytes() const noexcept { return kept_bytes_; }

  // A block of that size that is not out; one that has memory if there is such a one. Null if there
  // is none.
  block take(std::size_t block_bytes) noexcept;

  // For the group of a new block: its other blocks.
  void add(block_group& group) noexcept;

  // Takes a block back.
  void keep(block back, std::size_t block_bytes) noexcept;

  // Takes a block back without its memory.
  surplus drop(block back, std::size_t block_bytes) noexcept;

  // Takes the memory of kept blocks, `bytes` or more in all, the largest first.
  surplus shrink(std::size_t bytes) noexcept;

 private:
  struct group_list {
    block_group* first = nullptr;

    void push(block_group& added) noexcept;
    void remove(block_group& member) noexcept;
  };

  static constexpr std::size_t sizes = 8 + 8 * 55;
  static constexpr std::size_t first_group_size = 56;
  static constexpr std::size_t group_sizes = 6 * 8;

  kept_block* pop(std::size_t size) noexcept;
  group_list* list_of(const block_group& group) noexcept;
  void note(block_group& group, std::uint64_t full, std::uint64_t empty) noexcept;
  void empty_out(block_group& group, surplus& to) noexcept;
  void drop(block_group& group, surplus& to) noexcept;

  std::array<kept_block*, sizes> blocks_{};      // those on their own
  std::array<group_list, group_sizes> full_{};   // groups with blocks that have memory
  std::array<group_list, group_sizes> empty_{};  // groups whose blocks are out or have none
  std::size_t kept_bytes_ = 0;
};

}  // namespace lade::detail
