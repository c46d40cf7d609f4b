#include "../../io/page_cache.hpp"

#include "../support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace lade::detail::page_cache_test {

using testing_support::temp_dir;

constexpr std::uint64_t plenty = 1 << 20;

static auto new_use(std::uint64_t room) { return std::make_unique<page_cache_use>(room); }

TEST(PageCacheUse, MissedFilesFillItUpToItsBudget) {
  auto use = new_use(100);
  EXPECT_FALSE(use->should_bypass(1, 60, false));
  EXPECT_FALSE(use->should_bypass(2, 40, false));
  EXPECT_TRUE(use->should_bypass(3, 1, false));
}

TEST(PageCacheUse, AFileThatDoesNotFitEndsTheFilling) {
  auto use = new_use(100);
  EXPECT_TRUE(use->should_bypass(1, 101, false));
  EXPECT_TRUE(use->should_bypass(2, 1, false));
}

TEST(PageCacheUse, CachedFilesUseNoneOfItsBudget) {
  auto use = new_use(100);
  for (std::uint64_t epoch = 0; epoch < 10; ++epoch)
    for (std::uint64_t file = 0; file < 100; ++file)
      EXPECT_FALSE(use->should_bypass(file, 0, false));
  EXPECT_FALSE(use->should_bypass(1, 100, false));
}

TEST(PageCacheUse, AHurriedRunCachesOnlyRepeatedReads) {
  auto use = new_use(plenty);
  EXPECT_TRUE(use->should_bypass(1, 10, true));
  EXPECT_TRUE(use->should_bypass(2, 10, true));
  EXPECT_FALSE(use->should_bypass(1, 10, true));
  EXPECT_FALSE(use->should_bypass(2, 10, true));
}

TEST(PageCacheUse, WhileAllFilesAreCachedFewAreLookedAt) {
  auto use = new_use(plenty);
  auto looks = [&](std::uint64_t missing) {
    int count = 0;
    for (std::uint64_t file = 0; file < 800; ++file)
      if (use->should_probe()) {
        ++count;
        (void)use->should_bypass(file, missing, false);
      }
    return count;
  };
  EXPECT_LT(looks(0), 150);
  EXPECT_GT(looks(4096), 790);  // from the first that is missed on
}

TEST(PageCacheUse, TheProcessHasABudget) {
  EXPECT_FALSE(page_cache_use::of_process().should_bypass(1, 1, false));
}

TEST(PageCache, FiguresOfTheKernelAreFoundByName) {
  std::string text = "MemTotal:       16000 kB\nMemAvailable:    8000 kB\nHugePages_Total:   0\n";
  EXPECT_EQ(memory_figure(text, "MemAvailable:"), 8000u * 1024);
  EXPECT_EQ(memory_figure(text, "MemFree:"), 0u);
  EXPECT_EQ(memory_figure("MemAvailable: much", "MemAvailable:"), 0u);
  EXPECT_EQ(memory_figure("", "MemAvailable:"), 0u);
}

TEST(PageCache, WhatWasJustWrittenIsInIt) {
  temp_dir dir;
  auto path = dir.write("file", std::string(10'000, 'a'));
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(uncached_bytes(fd, 10'000), 0u);
  close(fd);
}

TEST(PageCache, ReturnsNothingForOtherThanFiles) { EXPECT_EQ(uncached_bytes(-1, 1), std::nullopt); }

}  // namespace lade::detail::page_cache_test
