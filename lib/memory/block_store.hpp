// Memory in blocks of few sizes, which is used again: what a buffer_pool hands out.

#pragma once

#include <lade/memory_resource.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace lade::detail {

struct block_group;

// A block, and the group that it is a part of. Where the resource can discard, blocks of more than
// 32 KiB, up to 2 MiB, lie side by side in huge pages: disks write faster to those than to many
// small pages. Other blocks are groups of one.
struct block {
  void* memory = nullptr;
  block_group* group = nullptr;
};

// Throws error(not_enough_memory) that tells how many bytes there are not.
[[noreturn]] void raise_no_memory(std::size_t bytes);

// What a resource allocates. Throws what it throws, and error(not_enough_memory) if it returns
// null.
std::byte* allocate_from(memory_resource& resource, std::size_t bytes, std::size_t alignment);

// The size of the block for so many bytes. Throws error(not_enough_memory) if that is absurd.
std::size_t block_bytes_for(std::size_t bytes);

// Memory that goes back to its resource with this object. That takes long: do it without a mutex.
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

// The blocks of a resource that are not out. Its records lie outside of the blocks, which may be
// memory of a device. Guarded by the mutex of whoever owns it. All blocks must be back when it is
// destroyed.
class block_store {
 public:
  explicit block_store(memory_resource& resource) : resource_(share_of(resource)) {}
  block_store(const block_store&) = delete;
  block_store& operator=(const block_store&) = delete;
  ~block_store();

  memory_resource& resource() const noexcept { return *resource_; }

  // The bytes of blocks that are not out and have memory of the resource.
  std::size_t kept_bytes() const noexcept { return kept_bytes_; }

  // A block that nobody has had yet, in untouched memory: needs no mutex. Throws what the resource
  // throws. Other blocks of its group are handed out after add().
  block new_block(std::size_t block_bytes) const;
  void add(const block& added) noexcept;

  // A block of that size that is not out; one that has memory if there is such a one. Null if there
  // is none.
  block take(std::size_t block_bytes) noexcept;

  // Takes a block back.
  void keep(block back) noexcept;

  // Takes a block back without its memory.
  void drop(block back, surplus& to) noexcept;

  // Takes the memory of kept blocks, `bytes` or more in all if there is so much, the largest first.
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
  std::array<group_list, sizes> full_{};   // groups with blocks that have memory
  std::array<group_list, sizes> empty_{};  // groups whose blocks are out or have none
  std::size_t kept_bytes_ = 0;
};

}  // namespace lade::detail
