#include "../lib/block_store.hpp"

#include <lade/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <random>
#include <string>

#include "support/seed.hpp"

namespace lade::detail {

// A store and what of it is out: the value that fills each block.
class books {
 public:
  ~books() {
    while (!out_.empty()) give_back(false);
  }

  void take(std::size_t bytes, std::byte value) {
    auto size = block_bytes_for(bytes);
    auto taken = store_.take(size);
    if (!taken.memory) {
      taken = new_block(size);
      if (taken.group) store_.add(*taken.group);
    }
    std::memset(taken.memory, static_cast<int>(value), size);
    out_.emplace(taken.memory, entry{taken, size, value});
  }

  // Any of those that are out.
  void give_back(bool drop) {
    auto any = out_.begin();
    auto [back, size, value] = any->second;
    auto* bytes = static_cast<std::byte*>(back.memory);
    EXPECT_TRUE(std::all_of(bytes, bytes + size, [&](auto byte) { return byte == value; }));
    auto kept = store_.kept_bytes();
    if (drop)
      (void)store_.drop(back, size);
    else
      store_.keep(back, size);
    EXPECT_EQ(store_.kept_bytes(), drop ? kept : kept + size);
    out_.erase(any);
  }

  void shrink(std::size_t bytes) {
    auto kept = store_.kept_bytes();
    (void)store_.shrink(bytes);
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

TEST(BlockStore, BlocksAreTheirHoldersAlone) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  books store;
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

TEST(BlockStore, AKeptBlockIsTakenBeforeAnUntouchedOne) {
  block_store store;
  auto size = block_bytes_for(110'000);
  auto first = new_block(size);
  ASSERT_TRUE(first.group);
  store.add(*first.group);
  auto second = store.take(size);
  EXPECT_EQ(second.group, first.group);
  EXPECT_NE(second.memory, first.memory);
  store.keep(second, size);
  EXPECT_EQ(store.take(size).memory, second.memory);
  store.keep(second, size);
  store.keep(first, size);
}

TEST(BlockStore, GivesABlockOfOneSizeOnly) {
  block_store store;
  for (std::size_t bytes : {64u, 40'000u, 3'000'000u}) {
    auto size = block_bytes_for(bytes);
    EXPECT_FALSE(store.take(size).memory);
    auto block = new_block(size);
    if (block.group) store.add(*block.group);
    store.keep(block, size);
  }
  EXPECT_FALSE(store.take(block_bytes_for(50'000)).memory);
}

TEST(BlockStore, MemoryThatIsTakenAwayComesBackEmpty) {
  block_store store;
  auto size = block_bytes_for(110'000);
  auto kept = new_block(size);
  store.add(*kept.group);
  auto dropped = store.take(size);
  std::memset(dropped.memory, 1, size);
  (void)store.drop(dropped, size);
  EXPECT_EQ(store.kept_bytes(), 0u);
  auto again = store.take(size);
  EXPECT_EQ(again.memory, dropped.memory);
  EXPECT_EQ(*static_cast<std::byte*>(again.memory), std::byte{0});
  store.keep(again, size);
  store.keep(kept, size);
}

TEST(BlockStore, AnAbsurdSizeIsRefused) {
  EXPECT_THAT(
      [] { block_bytes_for(std::size_t{1} << 63); },
      testing::ThrowsMessage<error>("allocate 9223372036854775808 bytes: Cannot allocate memory"));
}

}  // namespace lade::detail
