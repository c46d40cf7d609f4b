#include "block_store.hpp"

#include <lade/buffer.hpp>
#include <lade/error.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include <fmt/format.h>

namespace lade::detail {

static constexpr std::size_t small_page_bytes = 4096;
static constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// Adjacent blocks of one allocation. The lowest bit of a mask is the first block. A block that is
// in neither `full` nor `empty` is in use.
struct block_group {
  memory_resource& resource;
  std::size_t block_bytes;
  std::size_t bytes;
  std::uint64_t all;
  std::byte* memory = nullptr;
  std::uint64_t full = 0;
  std::uint64_t empty = 0;
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

void raise_no_memory(std::size_t bytes) { raise(ENOMEM, fmt::format("allocate {} bytes", bytes)); }

std::byte* allocate_from(memory_resource& resource, std::size_t bytes, std::size_t alignment) {
  auto* memory = resource.allocate(bytes, alignment);
  if (memory || bytes == 0) return static_cast<std::byte*>(memory);
  raise(ENOMEM,
        fmt::format("allocate {} bytes of {}, which returned null", bytes, resource.name()));
}

// Multiples of 64 up to 512, then eight sizes for each power of two; above 4 KiB, whole pages.
std::size_t block_bytes_for(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 4) raise_no_memory(bytes);
  if (bytes <= 512) return round_up(bytes, buffer::alignment);
  auto step = std::bit_floor(bytes - 1) / 8;
  return round_up(bytes, bytes > small_page_bytes ? std::max(step, small_page_bytes) : step);
}

// The index of a block size among all sizes.
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

static std::size_t alignment_of(std::size_t bytes) noexcept {
  if (bytes >= huge_page_bytes) return huge_page_bytes;
  return bytes >= small_page_bytes ? small_page_bytes : buffer::alignment;
}

block block_store::new_block(std::size_t block_bytes) const {
  bool alone = !in_groups(block_bytes) || !resource_->can_discard();
  auto bytes = alone ? block_bytes : group_bytes(block_bytes);
  auto all = (std::uint64_t{1} << (bytes / block_bytes)) - 1;
  auto group = std::make_unique<block_group>(block_group{*resource_, block_bytes, bytes, all});
  group->memory = allocate_from(*resource_, bytes, alignment_of(bytes));
  group->empty = all & ~std::uint64_t{1};
  auto* memory = group->memory;
  return {memory, group.release()};
}

surplus::~surplus() {
  while (groups_) {
    std::unique_ptr<block_group> group(std::exchange(groups_, groups_->next));
    group->resource.deallocate(group->memory, group->bytes, alignment_of(group->bytes));
  }
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

block_store::~block_store() {
  surplus unused;
  shrink(kept_bytes_, unused);
}

block_store::group_list* block_store::list_of(const block_group& group) noexcept {
  auto size = size_number(group.block_bytes);
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
  if (auto* group = full_[size].first) {
    auto bit = lowest_bit(group->full);
    kept_bytes_ -= block_bytes;
    note(*group, group->full & ~bit, group->empty);
    return {group->block_of(bit), group};
  }
  auto* group = empty_[size].first;
  if (!group) return {};
  auto bit = lowest_bit(group->empty);
  note(*group, 0, group->empty & ~bit);
  return {group->block_of(bit), group};
}

void block_store::add(const block& added) noexcept {
  if (auto* list = list_of(*added.group)) list->push(*added.group);
}

void block_store::keep(block back) noexcept {
  auto& group = *back.group;
  kept_bytes_ += group.block_bytes;
  note(group, group.full | group.bit_of(back.memory), group.empty);
}

void block_store::drop(block back, surplus& to) noexcept {
  auto& group = *back.group;
  note(group, group.full, group.empty | group.bit_of(back.memory));
  if (group.empty == group.all)
    drop(group, to);
  else
    resource_->discard(back.memory, group.block_bytes);
}

void block_store::shrink(std::size_t bytes, surplus& to) noexcept {
  auto goal = kept_bytes_ - std::min(bytes, kept_bytes_);
  for (auto size = sizes; size-- > 0 && kept_bytes_ > goal;)
    while (kept_bytes_ > goal && full_[size].first) empty_out(*full_[size].first, to);
}

// Makes all full blocks of a group empty.
void block_store::empty_out(block_group& group, surplus& to) noexcept {
  kept_bytes_ -= static_cast<std::size_t>(std::popcount(group.full)) * group.block_bytes;
  if ((group.full | group.empty) == group.all) return drop(group, to);
  for (auto left = group.full; left; left &= left - 1)
    resource_->discard(group.block_of(left), group.block_bytes);
  note(group, 0, group.full | group.empty);
}

void block_store::drop(block_group& group, surplus& to) noexcept {
  note(group, 0, 0);
  to.add(group);
}

}  // namespace lade::detail
