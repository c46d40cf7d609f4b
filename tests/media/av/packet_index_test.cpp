#include <lade/error.hpp>
#include <lade/media/av/packet_index.hpp>
#include <lade/media/av/video.hpp>
#include <lade/random.hpp>
#include <lade/runtime.hpp>

#include "../../fuzz/sealed.hpp"
#include "../../support/seed.hpp"
#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
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
  EXPECT_THAT([&] { save_index(index, "/dev/full"); },
              testing::ThrowsMessage<error>(
                  testing::HasSubstr("write /dev/full: No space left on device")));
}

TEST(PacketIndex, MayBeWrittenByManyThreadsAtOnce) {
  const auto index = indexed(video_recipes()[0]);
  const auto directory = std::filesystem::path(media_directory / "indexes");
  std::filesystem::create_directory(directory);
  const auto path = (directory / "kept.index").string();
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      for (int round = 0; round < 20; ++round) save_index(index, path);
    });
  for (auto& each : writers) each.join();
  EXPECT_EQ(read_bytes(path).text(), index.serialise().text());
  std::vector<std::string> left;
  for (const auto& each : std::filesystem::directory_iterator(directory))
    left.push_back(each.path().filename().string());
  EXPECT_THAT(left, testing::ElementsAre("kept.index"));
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

TEST(PacketIndex, OfAnotherVersionIsRefusedByItsNumber) {
  const auto stored = indexed(video_recipes()[0]).serialise();
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(stored.data());
  EXPECT_NO_THROW(packet_index::parse(test::sealed(bytes, stored.size(), "LADEVIDX"), "new"));
  try {
    packet_index::parse(test::sealed(bytes, stored.size(), "LADEVIDX", 2), "new.index");
    FAIL() << "it parses another version";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::unsupported);
    EXPECT_THAT(refused.what(),
                testing::AllOf(testing::HasSubstr("new.index"), testing::HasSubstr("version 2")));
  }
}

// The number of the packet that decoding a packet starts from, found by a walk over all before it.
static std::size_t start_by_walking(std::span<const indexed_packet> packets, std::size_t of) {
  for (std::size_t i = of + 1; i-- > 0;)
    if (packets[i].key && packets[i].pts <= packets[of].pts) return i;
  return 0;
}

TEST(PacketIndex, RangesStartWhereAWalkOverThePacketsSays) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  lade::random draw(seed);
  const auto stream = indexed(video_recipes()[0]).stream();
  std::vector<indexed_packet> packets(300);
  for (std::size_t i = 0; i < packets.size(); ++i) {
    packets[i].pts = static_cast<std::int64_t>(i * 100 + draw.below(2'000));
    packets[i].key = i == 0 || draw.below(4) == 0;
  }
  packets[0].pts = 0;
  const packet_index index(stream, packets, false);
  for (std::int64_t frame = 0; frame < index.size(); ++frame) {
    const auto range = index.ranges(std::vector{frame}).at(0);
    EXPECT_EQ(range.first, start_by_walking(packets, range.last - 1));
  }
}

TEST(PacketIndex, OfKeyFramesInDescendingOrderIsMadeInOnePass) {
  const auto stream = indexed(video_recipes()[0]).stream();
  constexpr std::int64_t count = 400'000;
  std::vector<indexed_packet> packets(count);
  for (std::int64_t i = 0; i < count; ++i) {
    packets[static_cast<std::size_t>(i)].pts = i == 0 ? 0 : 2 * count - i;
    packets[static_cast<std::size_t>(i)].key = i < count / 2;
  }
  const packet_index index(stream, packets, false);
  EXPECT_EQ(index.ranges(std::vector<std::int64_t>{1}).at(0).first, 0U);
}

TEST(PacketIndex, FramesAreFoundByTheirTimesAsFloatingPointNumbers) {
  const auto stream = indexed(video_recipes()[0]).stream();
  const auto unit = stream.time_base();
  for (const auto& rate : {rational(24'000, 1'001), rational(30), rational(30'000, 1'001)}) {
    std::vector<indexed_packet> packets(2'000);
    for (std::size_t i = 0; i < packets.size(); ++i) {
      packets[i].pts = nearest_units(rational(static_cast<std::int64_t>(i)) / rate, unit);
      packets[i].key = true;
    }
    const packet_index index(stream, std::move(packets), false);
    for (std::int64_t i = 0; i < index.size(); ++i)
      ASSERT_EQ(index.frame_at(rational::nearest(index.time(i).to_double())), i);
  }
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
