#include <lade/support/range_allocator.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <new>
#include <random>
#include <string>

#include "../support/failing_new.hpp"
#include "../support/seed.hpp"

namespace lade::detail::range_allocator_test {

// Nothing is mapped there.
static std::byte* at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

static constexpr std::uintptr_t base = std::uintptr_t{1} << 60;

TEST(RangeAllocator, HandsOutTheSmallestRangeThatFits) {
  support::range_allocator ranges;
  ranges.add({at(base), 1 << 20});
  ranges.add({at(base + (1 << 24)), 4096});
  EXPECT_EQ(ranges.allocate(4096, 64), at(base + (1 << 24)));
  EXPECT_EQ(ranges.allocate(4096, 64), at(base));
  EXPECT_EQ(ranges.free_bytes(), (1u << 20) - 4096);
}

TEST(RangeAllocator, RefusesWhatDoesNotFit) {
  support::range_allocator ranges;
  EXPECT_EQ(ranges.allocate(1, 64), nullptr);
  ranges.add({at(base + 64), 4096});
  EXPECT_EQ(ranges.allocate(4097, 64), nullptr);
  EXPECT_EQ(ranges.allocate(64, 8192), nullptr);
  EXPECT_EQ(ranges.allocate(~std::size_t{0}, 64), nullptr);
  EXPECT_EQ(ranges.free_bytes(), 4096u);
}

TEST(RangeAllocator, JoinsFreeNeighboursOfOneRegionOnly) {
  support::range_allocator ranges;
  ranges.add({at(base), 4096});
  ranges.add({at(base + 4096), 4096});
  auto* first = ranges.allocate(4096, 64);
  auto* second = ranges.allocate(4096, 64);
  EXPECT_EQ(ranges.deallocate(first), first);
  EXPECT_EQ(ranges.deallocate(second), second);
  EXPECT_EQ(ranges.largest_range(), 4096u);
  ranges.remove(at(base));
  EXPECT_EQ(ranges.free_bytes(), 4096u);
}

TEST(RangeAllocator, ReturnsARegionOnceItIsFree) {
  support::range_allocator ranges;
  ranges.add({at(base), 4096});
  auto* first = ranges.allocate(64, 64);
  auto* second = ranges.allocate(64, 64);
  EXPECT_EQ(ranges.deallocate(first), nullptr);
  EXPECT_EQ(ranges.deallocate(second), at(base));
  EXPECT_EQ(ranges.largest_range(), 4096u);
}

TEST(RangeAllocator, AnAllocationThatRunsOutOfMemoryChangesNothing) {
  if (!test::allocations_can_fail) GTEST_SKIP() << "the operator new of TSan does not fail";
  support::range_allocator ranges;
  ranges.add({at(base + 64), 1 << 20});
  for (unsigned allowed = 0;; ++allowed) {
    std::byte* got = nullptr;
    try {
      test::failing_allocation after(allowed);
      got = ranges.allocate(64, 4096);
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(ranges.free_bytes(), 1u << 20);
      EXPECT_EQ(ranges.largest_range(), 1u << 20);
      continue;
    }
    EXPECT_EQ(ranges.deallocate(got), at(base + 64));
    break;
  }
}

// Compares the allocator with a map of the used ranges and a sum of the free bytes.
TEST(RangeAllocator, RangesDoNotOverlap) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  constexpr std::size_t region_bytes = 1 << 20;
  support::range_allocator ranges;
  for (std::uintptr_t i = 0; i < 3; ++i) ranges.add({at(base + i * region_bytes), region_bytes});
  std::map<std::byte*, std::size_t> used;
  std::size_t used_bytes = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = std::size_t{1} << random() % 18;
    auto alignment = std::size_t{64} << random() % 8;
    auto* got = random() % 2 ? ranges.allocate(bytes += random() % bytes, alignment) : nullptr;
    if (got) {
      bytes = (bytes + 63) / 64 * 64;
      auto [place, is_new] = used.emplace(got, bytes);
      ASSERT_TRUE(is_new);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(got) % alignment, 0u);
      ASSERT_TRUE(place == used.begin() ||
                  std::prev(place)->first + std::prev(place)->second <= got);
      ASSERT_TRUE(std::next(place) == used.end() || got + bytes <= std::next(place)->first);
      used_bytes += bytes;
    } else if (!used.empty()) {
      auto any = used.lower_bound(at(base + random() % (3 * region_bytes)));
      if (any == used.end()) any = used.begin();
      used_bytes -= any->second;
      ranges.deallocate(any->first);
      used.erase(any);
    }
    ASSERT_EQ(ranges.free_bytes(), 3 * region_bytes - used_bytes);
  }
  for (auto& [memory, bytes] : used) ranges.deallocate(memory);
  EXPECT_EQ(ranges.largest_range(), region_bytes);
}

}  // namespace lade::detail::range_allocator_test
