#include "../../io/page_cache.hpp"

#include "../support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace lade::detail {

using testing_support::temp_dir;

TEST(PageCache, RoomIsTakenUntilThereIsNoneLeft) {
  page_cache_room room(100);
  EXPECT_TRUE(room.take(60));
  EXPECT_TRUE(room.take(40));
  EXPECT_FALSE(room.take(1));
}

TEST(PageCache, AFileThatDoesNotFitEndsTheRoom) {
  page_cache_room room(100);
  EXPECT_FALSE(room.take(101));
  EXPECT_FALSE(room.take(1));
}

TEST(PageCache, TheProcessHasRoom) { EXPECT_TRUE(page_cache_room::of_process().take(1)); }

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
  EXPECT_FALSE(misses_page_cache(fd, 10'000));
  close(fd);
}

TEST(PageCache, OfWhatIsNoFileNothingIsSaid) { EXPECT_FALSE(misses_page_cache(-1, 1)); }

}  // namespace lade::detail
