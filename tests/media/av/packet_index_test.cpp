#include <lade/error.hpp>
#include <lade/media/av/packet_index.hpp>
#include <lade/media/av/video.hpp>
#include <lade/runtime.hpp>

#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace lade::media {

static packet_index indexed(const media_recipe& recipe) {
  const auto path = video_path(recipe);
  return index_video(read_bytes(path), path);
}

class StoreIndex : public testing::TestWithParam<media_recipe> {};

TEST_P(StoreIndex, RoundTripIsTheSameIndex) {
  const auto before = indexed(GetParam());
  const auto after = packet_index::parse(before.serialise(), "stored");
  EXPECT_TRUE(std::ranges::equal(after.packets(), before.packets()));
  ASSERT_EQ(after.size(), before.size());
  for (std::int64_t i = 0; i < before.size(); ++i) EXPECT_EQ(after.time(i), before.time(i));
  EXPECT_EQ(after.end(), before.end());
  EXPECT_EQ(after.has_positions(), before.has_positions());
  EXPECT_EQ(after.is_sequential(), before.is_sequential());
  EXPECT_EQ(after.file_bytes(), before.file_bytes());
}

TEST_P(StoreIndex, AVideoWithAStoredIndexHasTheSameFrames) {
  const auto path = video_path(GetParam());
  const auto file = read_bytes(path);
  const video with(file, path, packet_index::parse(indexed(GetParam()).serialise(), "stored"));
  const video without(file, path);
  const std::vector<std::int64_t> numbers{0, 13, with.size() - 1};
  const auto frames = with.frames(numbers);
  const auto expected = without.frames(numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(digest_of(frames[i]), digest_of(expected[i]));
}

INSTANTIATE_TEST_SUITE_P(Files, StoreIndex, testing::ValuesIn(video_recipes()), name_of_recipe);

TEST(PacketIndex, IsKeptInAFile) {
  runtime runs;
  const auto index = indexed(video_recipes()[0]);
  const auto path = media_directory / "kept.index";
  save_index(index, path);
  EXPECT_EQ(sync_wait(runs, load_index(path)).size(), index.size());
  EXPECT_THROW(save_index(index, "/no/such/directory/kept.index"), error);
}

TEST(PacketIndex, OfAnotherFileIsRefused) {
  const auto path = video_path(video_recipes()[1]);
  EXPECT_THAT([&] { video(read_bytes(path), path, indexed(video_recipes()[0])); },
              testing::ThrowsMessage<error>(testing::HasSubstr("its index is of a file of")));
}

TEST(PacketIndex, StoredBytesThatAreCutAreRefused) {
  const auto stored = indexed(video_recipes()[0]).serialise();
  for (std::size_t size = 0; size < stored.size(); size += 1 + size / 9)
    EXPECT_THROW(packet_index::parse(stored.slice(0, size), "cut"), error);
}

TEST(PacketIndex, RangesStartAtKeyFramesAndDoNotOverlap) {
  const auto index = indexed(video_recipes()[0]);  // groups of 12
  const auto ranges = index.ranges(std::vector<std::int64_t>{3, 1, 30, 3});
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[0].first, 0U);
  EXPECT_EQ(ranges[0].frames, (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(ranges[1].first, 24U);
  EXPECT_LE(ranges[0].last, ranges[1].first);
  EXPECT_TRUE(index.is_key(24));
  EXPECT_FALSE(index.is_key(25));
  EXPECT_THROW((void)index.ranges(std::vector<std::int64_t>{50}), error);
  EXPECT_THROW((void)index.time(-1), error);
}

}  // namespace lade::media
