#include <lade/support/range_allocator.hpp>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <iterator>
#include <utility>

namespace lade::support {

void range_allocator::add(std::span<std::byte> region) {
  region = region.first(region.size() / granule * granule);
  by_size entry{{region.size(), region.data()}};
  ranges_.try_emplace(region.data(), range{region.size(), region.data()});
  free_.merge(entry);
  free_bytes_ += region.size();
}

void range_allocator::remove(std::byte* region) noexcept {
  auto at = ranges_.find(region);
  assert(at != ranges_.end() && at->second.is_free());
  free_.erase({at->second.bytes, region});
  free_bytes_ -= at->second.bytes;
  ranges_.erase(at);
}

static std::size_t bytes_to_aligned(const std::byte* address, std::size_t alignment) noexcept {
  return (alignment - reinterpret_cast<std::uintptr_t>(address) % alignment) % alignment;
}

std::byte* range_allocator::allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes > largest_range()) return nullptr;
  bytes = (std::max<std::size_t>(bytes, 1) + granule - 1) / granule * granule;
  for (auto fit = free_.lower_bound({bytes, nullptr}); fit != free_.end(); ++fit) {
    auto [available, first] = *fit;
    auto before = bytes_to_aligned(first, alignment);
    if (before > available || available - before < bytes) continue;
    auto at = ranges_.find(first);
    if (before > 0) at = split(at, before);
    cut(at, bytes);
    at->second.entry = free_.extract({bytes, at->first});
    free_bytes_ -= bytes;
    return at->first;
  }
  return nullptr;
}

std::byte* range_allocator::deallocate(std::byte* memory) noexcept {
  auto at = ranges_.find(memory);
  assert(at != ranges_.end() && !at->second.is_free());
  free_bytes_ += at->second.bytes;
  free_.insert(std::move(at->second.entry));
  at->second.entry = {};
  if (auto next = std::next(at); may_join(at, next)) join(at, next);
  if (at != ranges_.begin() && may_join(std::prev(at), at)) {
    at = std::prev(at);
    join(at, std::next(at));
  }
  auto next = std::next(at);
  auto* region = at->second.region;
  bool is_whole = at->first == region && (next == ranges_.end() || next->second.region != region);
  return is_whole ? region : nullptr;
}

// Splits a free range after `bytes`. If that throws, joins it with the part that was cut off for
// the alignment.
void range_allocator::cut(range_map::iterator at, std::size_t bytes) {
  if (at->second.bytes == bytes) return;
  try {
    split(at, bytes);
  } catch (...) {
    if (at != ranges_.begin() && may_join(std::prev(at), at)) join(std::prev(at), at);
    throw;
  }
}

// Splits a free range at `offset`. Returns the second part.
range_allocator::range_map::iterator range_allocator::split(range_map::iterator at,
                                                            std::size_t offset) {
  auto* second = at->first + offset;
  auto rest = at->second.bytes - offset;
  by_size entry{{rest, second}};
  auto added = ranges_.try_emplace(second, range{rest, at->second.region}).first;
  free_.merge(entry);
  resize(at, offset);
  return added;
}

void range_allocator::resize(range_map::iterator at, std::size_t bytes) noexcept {
  auto entry = free_.extract({at->second.bytes, at->first});
  entry.value().first = bytes;
  free_.insert(std::move(entry));
  at->second.bytes = bytes;
}

bool range_allocator::may_join(range_map::iterator first,
                               range_map::iterator second) const noexcept {
  return second != ranges_.end() && first->second.is_free() && second->second.is_free() &&
         first->second.region == second->second.region;
}

void range_allocator::join(range_map::iterator first, range_map::iterator second) noexcept {
  auto bytes = first->second.bytes + second->second.bytes;
  free_.erase({second->second.bytes, second->first});
  ranges_.erase(second);
  resize(first, bytes);
}

}  // namespace lade::support
