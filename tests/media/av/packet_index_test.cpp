#include <lade/error.hpp>
#include <lade/media/av/muxer.hpp>
#include <lade/media/av/packet.hpp>
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
#include <string_view>
#include <thread>
#include <vector>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media::packet_index_test {

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

static std::string_view extradata_of(const AVCodecParameters& of) {
  return {reinterpret_cast<const char*>(of.extradata), static_cast<std::size_t>(of.extradata_size)};
}

static void expect_same_parameters(const AVCodecParameters& a, const AVCodecParameters& b) {
  EXPECT_EQ(a.codec_id, b.codec_id);
  EXPECT_EQ(a.codec_tag, b.codec_tag);
  EXPECT_EQ(a.format, b.format);
  EXPECT_EQ(a.bits_per_coded_sample, b.bits_per_coded_sample);
  EXPECT_EQ(a.bits_per_raw_sample, b.bits_per_raw_sample);
  EXPECT_EQ(a.profile, b.profile);
  EXPECT_EQ(a.level, b.level);
  EXPECT_EQ(a.sample_aspect_ratio.num, b.sample_aspect_ratio.num);
  EXPECT_EQ(a.sample_aspect_ratio.den, b.sample_aspect_ratio.den);
  EXPECT_EQ(a.field_order, b.field_order);
  EXPECT_EQ(a.color_range, b.color_range);
  EXPECT_EQ(a.color_primaries, b.color_primaries);
  EXPECT_EQ(a.color_trc, b.color_trc);
  EXPECT_EQ(a.color_space, b.color_space);
  EXPECT_EQ(a.chroma_location, b.chroma_location);
  EXPECT_EQ(a.video_delay, b.video_delay);
  EXPECT_EQ(a.block_align, b.block_align);
  EXPECT_EQ(a.frame_size, b.frame_size);
  EXPECT_EQ(a.initial_padding, b.initial_padding);
  EXPECT_EQ(a.trailing_padding, b.trailing_padding);
  EXPECT_EQ(a.seek_preroll, b.seek_preroll);
  EXPECT_EQ(av_channel_layout_compare(&a.ch_layout, &b.ch_layout), 0);
  EXPECT_EQ(extradata_of(a), extradata_of(b));
}

static void expect_same_stream(const stream_info& a, const stream_info& b) {
  EXPECT_EQ(a.name(), b.name());
  EXPECT_EQ(a.index(), b.index());
  EXPECT_EQ(a.kind(), b.kind());
  EXPECT_EQ(a.codec(), b.codec());
  EXPECT_EQ(a.time_base(), b.time_base());
  EXPECT_EQ(a.start_time(), b.start_time());
  EXPECT_EQ(a.duration(), b.duration());
  EXPECT_EQ(a.stated_frames(), b.stated_frames());
  EXPECT_EQ(a.bit_rate(), b.bit_rate());
  EXPECT_EQ(a.metadata(), b.metadata());
  EXPECT_EQ(a.width(), b.width());
  EXPECT_EQ(a.height(), b.height());
  EXPECT_EQ(a.frame_rate(), b.frame_rate());
  EXPECT_EQ(a.sample_aspect(), b.sample_aspect());
  EXPECT_EQ(a.orientation(), b.orientation());
  EXPECT_EQ(a.sample_rate(), b.sample_rate());
  EXPECT_EQ(a.channels(), b.channels());
  expect_same_parameters(a.parameters(), b.parameters());
}

// A file with its packets' stream, and that of its index, after they have been stored.
static void expect_stream_survives(const std::string& path, stream_kind kind) {
  SCOPED_TRACE(path);
  const auto file = read_bytes(path);
  const auto demuxed = demux(file, path, kind);
  expect_same_stream(packets::parse(demuxed.serialise(), "stored").stream(), demuxed.stream());
  if (kind != stream_kind::video) return;
  const auto index = index_video(file, path);
  expect_same_stream(packet_index::parse(index.serialise(), "stored").stream(), index.stream());
}

// The packets of a file in one whose pictures are mirrored and turned.
static std::string mirrored_path() {
  const auto packets = demux(read_bytes(video_path(video_recipes()[0])), "in", stream_kind::video);
  auto path = media_directory / "mirrored.mp4";
  muxer to(path);
  to.set_orientation(to.add(packets.stream()), {.degrees = 270, .mirrored = true});
  for (const auto& each : packets) to.write(0, each);
  to.finish();
  return path;
}

TEST(StoredStream, HasAllThatTheFileStates) {
  const auto rotated = video_path(video_recipe("h264-rotated.mov"));
  const auto wide = video_path(
      {"wide.mp4", "-vf setsar=4/3 -metadata:s:v language=deu -c:v libx264 -pix_fmt yuv420p"});
  const auto stream_of = [](const std::string& path) {
    return index_video(read_bytes(path), path).stream();
  };
  EXPECT_EQ(stream_of(rotated).orientation().degrees % 180, 90);
  EXPECT_EQ(stream_of(rotated).stated_frames(), 50);
  EXPECT_EQ(stream_of(rotated).duration(), rational(2));
  EXPECT_EQ(stream_of(wide).sample_aspect(), rational(4, 3));
  const auto late = video_path(video_recipe("late-start.mp4"));
  EXPECT_EQ(stream_of(late).start_time(), rational(3));
  const auto mirrored = mirrored_path();
  EXPECT_TRUE(stream_of(mirrored).orientation().mirrored);
  for (const auto& path :
       {rotated, wide, late, mirrored, video_path(video_recipe("h264-interlaced.mp4")),
        video_path(video_recipe("hevc-422-12.mp4")), video_path(video_recipe("mpeg4.avi"))})
    expect_stream_survives(path, stream_kind::video);
  const auto second = index_video(read_bytes(two_videos()), "two.mkv", {.stream = 1});
  EXPECT_EQ(second.stream().index(), 1);
  expect_same_stream(packet_index::parse(second.serialise(), "stored").stream(), second.stream());
  for (const auto& recipe : audio_recipes())
    expect_stream_survives(audio_path(recipe), stream_kind::audio);
}

}  // namespace lade::media::packet_index_test
