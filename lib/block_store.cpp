#include "block_store.hpp"

#include <lade/buffer.hpp>
#include <lade/error.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <new>
#include <string>

#include <sys/mman.h>

namespace lade::detail {

static constexpr std::size_t small_page_bytes = 4096;
static constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// A kept block holds the link to the next one of its size.
struct kept_block {
  kept_block* next;
  std::size_t bytes;
};

// Blocks side by side. In the masks the lowest bit stands for the first.
struct block_group {
  std::byte* memory;
  std::size_t block_bytes;
  std::uint64_t all;
  std::uint64_t full = 0;   // not out, and with memory
  std::uint64_t empty = 0;  // not out, and without memory: never used, or given to the system
  block_group* previous = nullptr;
  block_group* next = nullptr;

  std::uint64_t bit_of(const void* block) const noexcept {
    auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(block) - memory);
    return std::uint64_t{1} << (offset / block_bytes);
  }
  std::byte* block_of(std::uint64_t bit) const noexcept {
    return memory + static_cast<std::size_t>(std::countr_zero(bit)) * block_bytes;
  }
};

static std::uint64_t lowest_bit(std::uint64_t mask) noexcept { return mask & (~mask + 1); }

static std::size_t round_up(std::size_t bytes, std::size_t step) {
  return (bytes + step - 1) / step * step;
}

void raise_no_memory(std::size_t bytes) {
  raise(ENOMEM, "allocate " + std::to_string(bytes) + " bytes");
}

// Multiples of 64 up to 512, from there on eight steps for each doubling.
std::size_t block_bytes_for(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 4) raise_no_memory(bytes);
  if (bytes <= 512) return round_up(bytes, buffer::alignment);
  auto step = std::bit_floor(bytes - 1) / 8;
  return round_up(bytes, bytes > small_page_bytes ? std::max(step, small_page_bytes) : step);
}

// The place of a block's size among all sizes.
static std::size_t size_number(std::size_t block_bytes) noexcept {
  if (block_bytes <= 512) return block_bytes / buffer::alignment - 1;
  auto exponent = static_cast<std::size_t>(std::bit_width(block_bytes - 1)) - 1;  // 9 or more
  auto eighth = (block_bytes - 1 - (std::size_t{1} << exponent)) >> (exponent - 3);
  return 8 + (exponent - 9) * 8 + eighth;
}

static bool in_groups(std::size_t block_bytes) noexcept {
  return block_bytes > 8 * small_page_bytes && block_bytes <= huge_page_bytes;
}

// At least 4 blocks, and at most 56.
static std::size_t group_bytes(std::size_t block_bytes) noexcept {
  return block_bytes <= huge_page_bytes / 8 ? huge_page_bytes : 4 * huge_page_bytes;
}

static std::align_val_t alignment_of(std::size_t bytes) noexcept {
  if (bytes >= small_page_bytes) return std::align_val_t(small_page_bytes);
  return std::align_val_t(buffer::alignment);
}

// Maps more than that, and unmaps what lies before and behind the aligned part.
static void* map_huge_pages(std::size_t bytes) {
  if (bytes > PTRDIFF_MAX) raise_no_memory(bytes);
  auto mapped = bytes + huge_page_bytes;
  auto* first = static_cast<std::byte*>(
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (first == MAP_FAILED) raise_no_memory(bytes);
  auto before = (huge_page_bytes - reinterpret_cast<std::uintptr_t>(first) % huge_page_bytes) %
                huge_page_bytes;
  if (before > 0) (void)munmap(first, before);
  (void)munmap(first + before + bytes, huge_page_bytes - before);
  (void)madvise(first + before, bytes, MADV_HUGEPAGE);
  return first + before;
}

// Large blocks are mapped: malloc would keep up to 64 MiB of what is freed for each thread.
static void* take_from_system(std::size_t bytes) {
  if (bytes >= huge_page_bytes) return map_huge_pages(bytes);
  auto* memory = ::operator new(bytes, alignment_of(bytes), std::nothrow);
  if (!memory) raise_no_memory(bytes);
  return memory;
}

static void give_to_system(void* memory, std::size_t bytes) noexcept {
  if (bytes >= huge_page_bytes)
    (void)munmap(memory, bytes);
  else
    ::operator delete(memory, alignment_of(bytes));
}

block new_block(std::size_t block_bytes) {
  if (!in_groups(block_bytes)) return {take_from_system(block_bytes), nullptr};
  auto bytes = group_bytes(block_bytes);
  auto* memory = take_from_system(bytes);
  auto all = (std::uint64_t{1} << (bytes / block_bytes)) - 1;
  auto* group = new (std::nothrow) block_group{static_cast<std::byte*>(memory), block_bytes, all};
  if (!group) {
    give_to_system(memory, bytes);
    raise_no_memory(sizeof(block_group));
  }
  group->empty = all & ~std::uint64_t{1};
  return {memory, group};
}

surplus::~surplus() {
  while (blocks_) {
    auto* block = std::exchange(blocks_, blocks_->next);
    give_to_system(block, block->bytes);
  }
  while (groups_) {
    auto* group = std::exchange(groups_, groups_->next);
    give_to_system(group->memory, group_bytes(group->block_bytes));
    delete group;
  }
}

void surplus::add(void* memory, std::size_t block_bytes) noexcept {
  blocks_ = new (memory) kept_block{blocks_, block_bytes};
}

void surplus::add(block_group& group) noexcept { group.next = std::exchange(groups_, &group); }

void block_store::group_list::push(block_group& added) noexcept {
  added.previous = nullptr;
  added.next = std::exchange(first, &added);
  if (added.next) added.next->previous = &added;
}

void block_store::group_list::remove(block_group& member) noexcept {
  (member.previous ? member.previous->next : first) = member.next;
  if (member.next) member.next->previous = member.previous;
}

block_store::~block_store() { (void)shrink(kept_bytes_); }

block_store::group_list* block_store::list_of(const block_group& group) noexcept {
  auto size = size_number(group.block_bytes) - first_group_size;
  if (group.full) return &full_[size];
  return group.empty ? &empty_[size] : nullptr;
}

void block_store::note(block_group& group, std::uint64_t full, std::uint64_t empty) noexcept {
  if (auto* list = list_of(group)) list->remove(group);
  group.full = full;
  group.empty = empty;
  if (auto* list = list_of(group)) list->push(group);
}

block block_store::take(std::size_t block_bytes) noexcept {
  auto size = size_number(block_bytes);
  if (!in_groups(block_bytes)) return {pop(size), nullptr};
  auto* group = full_[size - first_group_size].first;
  if (group) {
    auto bit = lowest_bit(group->full);
    kept_bytes_ -= block_bytes;
    note(*group, group->full & ~bit, group->empty);
    return {group->block_of(bit), group};
  }
  group = empty_[size - first_group_size].first;
  if (!group) return {};
  auto bit = lowest_bit(group->empty);
  note(*group, 0, group->empty & ~bit);
  return {group->block_of(bit), group};
}

void block_store::add(block_group& group) noexcept {
  if (auto* list = list_of(group)) list->push(group);
}

void block_store::keep(block back, std::size_t block_bytes) noexcept {
  kept_bytes_ += block_bytes;
  if (auto* group = back.group) {
    note(*group, group->full | group->bit_of(back.memory), group->empty);
  } else {
    auto& list = blocks_[size_number(block_bytes)];
    list = new (back.memory) kept_block{list, block_bytes};
  }
}

surplus block_store::drop(block back, std::size_t block_bytes) noexcept {
  surplus dropped;
  if (auto* group = back.group) {
    note(*group, group->full, group->empty | group->bit_of(back.memory));
    if (group->empty == group->all)
      drop(*group, dropped);
    else
      (void)madvise(back.memory, block_bytes, MADV_DONTNEED);
  } else {
    dropped.add(back.memory, block_bytes);
  }
  return dropped;
}

surplus block_store::shrink(std::size_t bytes) noexcept {
  surplus dropped;
  auto goal = kept_bytes_ - bytes;
  for (auto size = sizes; size-- > 0 && kept_bytes_ > goal;) {
    while (kept_bytes_ > goal && blocks_[size]) {
      auto* block = pop(size);
      dropped.add(block, block->bytes);
    }
    if (size < first_group_size || size >= first_group_size + group_sizes) continue;
    auto& groups = full_[size - first_group_size];
    while (kept_bytes_ > goal && groups.first) empty_out(*groups.first, dropped);
  }
  return dropped;
}

// Takes the memory of all blocks of a group that are not out.
void block_store::empty_out(block_group& group, surplus& to) noexcept {
  kept_bytes_ -= static_cast<std::size_t>(std::popcount(group.full)) * group.block_bytes;
  if ((group.full | group.empty) == group.all) return drop(group, to);
  for (auto left = group.full; left; left &= left - 1)
    (void)madvise(group.block_of(left), group.block_bytes, MADV_DONTNEED);
  note(group, 0, group.full | group.empty);
}

void block_store::drop(block_group& group, surplus& to) noexcept {
  note(group, 0, 0);
  to.add(group);
}

kept_block* block_store::pop(std::size_t size) noexcept {
  auto* block = blocks_[size];
  if (!block) return nullptr;
  blocks_[size] = block->next;
  kept_bytes_ -= block->bytes;
  return block;
}

}  // namespace lade::detail
