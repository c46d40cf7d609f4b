#include "../../lib/memory/block_store.hpp"

#include <lade/error.hpp>
#include <lade/memory_resource.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <random>
#include <string>
#include <string_view>

#include "../support/seed.hpp"

namespace lade::detail::block_store_test {

// A store and what of it is out: the value that fills each block.
class books {
 public:
  explicit books(memory_resource& resource) : store_(resource) {}
  ~books() {
    while (!out_.empty()) give_back(false);
  }

  void take(std::size_t bytes, std::byte value) {
    auto size = block_bytes_for(bytes);
    auto taken = store_.take(size);
    if (!taken.memory) {
      taken = store_.new_block(size);
      store_.add(taken);
    }
    std::memset(taken.memory, static_cast<int>(value), size);
    out_.emplace(taken.memory, entry{taken, size, value});
  }

  // Any block in use.
  void give_back(bool drop) {
    auto any = out_.begin();
    auto [back, size, value] = any->second;
    auto* bytes = static_cast<std::byte*>(back.memory);
    EXPECT_TRUE(std::all_of(bytes, bytes + size, [&](auto byte) { return byte == value; }));
    auto kept = store_.kept_bytes();
    surplus unused;
    if (drop)
      store_.drop(back, unused);
    else
      store_.keep(back);
    EXPECT_EQ(store_.kept_bytes(), drop ? kept : kept + size);
    out_.erase(any);
  }

  void shrink(std::size_t bytes) {
    auto kept = store_.kept_bytes();
    surplus unused;
    store_.shrink(bytes, unused);
    EXPECT_LE(store_.kept_bytes() + bytes, kept);
  }

  std::size_t out() const { return out_.size(); }
  std::size_t kept_bytes() const { return store_.kept_bytes(); }

 private:
  struct entry {
    block taken;
    std::size_t size;
    std::byte value;
  };

  block_store store_;
  std::map<void*, entry> out_;
};

// Blocks of several sizes come and go in any order.
static void use_at_random(memory_resource& resource) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  books store(resource);
  for (int i = 0; i < 3000; ++i) {
    auto value = static_cast<std::byte>(i);
    auto bytes = std::size_t{1} << random() % 22;
    auto what = random() % 100;
    if (what < 50 && store.out() < 100)
      store.take(bytes + random() % bytes, value);
    else if (what < 98 && store.out() > 0)
      store.give_back(what % 4 == 0);
    else
      store.shrink(store.kept_bytes() / (1 + random() % 3));
  }
}

TEST(BlockStore, BlocksDoNotOverlap) { use_at_random(host_memory()); }

TEST(BlockStore, BlocksOfAnyResourceDoNotOverlap) {
  huge_page_memory huge;
  use_at_random(huge);
}

// Memory of a device, which the CPU must not touch: addresses that are not mapped.
class unmapped_memory final : public memory_resource {
 public:
  void* allocate(std::size_t bytes, std::size_t alignment) override {
    auto* memory = reinterpret_cast<void*>((next_ + alignment - 1) / alignment * alignment);
    next_ = reinterpret_cast<std::uintptr_t>(memory) + bytes;
    out_.emplace(memory, bytes);
    return memory;
  }
  void deallocate(void* memory, std::size_t bytes, std::size_t) noexcept override {
    auto found = out_.find(memory);
    ASSERT_NE(found, out_.end());
    EXPECT_EQ(found->second, bytes);
    out_.erase(found);
  }
  device where() const noexcept override { return {device::kind::cuda, 3}; }
  std::string_view name() const noexcept override { return "unmapped memory"; }
  void discard(void*, std::size_t) noexcept override { FAIL() << "it cannot discard"; }

  std::size_t allocations() const { return out_.size(); }

 private:
  std::uintptr_t next_ = std::uintptr_t{1} << 60;
  std::map<void*, std::size_t> out_;
};

TEST(BlockStore, NeverTouchesTheMemory) {
  unmapped_memory resource;
  {
    block_store store(resource);
    surplus unused;
    for (int round = 0; round < 3; ++round)
      for (std::size_t bytes : {64u, 5000u, 40'000u, 200'000u, 3'000'000u}) {
        auto size = block_bytes_for(bytes);
        auto first = store.take(size);
        if (!first.memory) store.add(first = store.new_block(size));
        auto second = store.new_block(size);
        store.add(second);
        store.keep(first);
        round == 1 ? store.drop(second, unused) : store.keep(second);
      }
    store.shrink(1'000'000, unused);
    EXPECT_GT(resource.allocations(), 0u);
  }
  EXPECT_EQ(resource.allocations(), 0u);
}

TEST(BlockStore, AKeptBlockIsReusedBeforeAnUntouchedOne) {
  block_store store(host_memory());
  auto size = block_bytes_for(110'000);
  auto first = store.new_block(size);
  store.add(first);
  auto second = store.take(size);
  EXPECT_EQ(second.group, first.group);
  EXPECT_NE(second.memory, first.memory);
  store.keep(second);
  EXPECT_EQ(store.take(size).memory, second.memory);
  store.keep(second);
  store.keep(first);
}

TEST(BlockStore, ReusesABlockForItsSizeOnly) {
  block_store store(host_memory());
  for (std::size_t bytes : {64u, 40'000u, 3'000'000u}) {
    auto size = block_bytes_for(bytes);
    EXPECT_FALSE(store.take(size).memory);
    auto block = store.new_block(size);
    store.add(block);
    store.keep(block);
  }
  EXPECT_FALSE(store.take(block_bytes_for(50'000)).memory);
}

TEST(BlockStore, ReleasedMemoryIsZeroedWhenItIsReused) {
  block_store store(host_memory());
  auto size = block_bytes_for(110'000);
  auto kept = store.new_block(size);
  store.add(kept);
  auto dropped = store.take(size);
  std::memset(dropped.memory, 1, size);
  surplus unused;
  store.drop(dropped, unused);
  EXPECT_EQ(store.kept_bytes(), 0u);
  auto again = store.take(size);
  EXPECT_EQ(again.memory, dropped.memory);
  EXPECT_EQ(*static_cast<std::byte*>(again.memory), std::byte{0});
  store.keep(again);
  store.keep(kept);
}

TEST(BlockStore, AnAbsurdSizeIsRefused) {
  EXPECT_THAT(
      [] { block_bytes_for(std::size_t{1} << 63); },
      testing::ThrowsMessage<error>("allocate 9223372036854775808 bytes: Cannot allocate memory"));
}

}  // namespace lade::detail::block_store_test
