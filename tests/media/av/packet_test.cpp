#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>

#include "../../fuzz/sealed.hpp"
#include "../../support/seed.hpp"
#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media::packet_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

static std::vector<frame_digest> decoded_digests(const packets& from) {
  std::vector<frame_digest> digests;
  for (const auto& each : decode(from)) digests.push_back(digest_of(each));
  return digests;
}

static packets demuxed(const media_recipe& recipe, const time_window& window = {}) {
  const auto path = video_path(recipe);
  return demux(read_bytes(path), path, stream_kind::video, window);
}

static packets short_packets() {
  return demuxed(video_recipes()[0], {.begin = 0, .end = rational(1, 5)});
}

class StorePackets : public testing::TestWithParam<media_recipe> {};

TEST_P(StorePackets, RoundTripDecodesToTheSameFrames) {
  const auto before = demuxed(GetParam(), {.begin = rational(1, 2)});
  const auto after = packets::parse(before.serialise(), "stored");
  ASSERT_EQ(after.size(), before.size());
  EXPECT_EQ(after.window(), before.window());
  EXPECT_EQ(after.stream().name(), before.stream().name());
  EXPECT_EQ(after.stream().metadata(), before.stream().metadata());
  EXPECT_EQ(after.stream().frame_rate(), before.stream().frame_rate());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].pts(), before[i].pts());
    EXPECT_EQ(after[i].dts(), before[i].dts());
    EXPECT_EQ(after[i].is_key(), before[i].is_key());
    EXPECT_EQ(after[i].position(), before[i].position());
  }
  EXPECT_EQ(decoded_digests(after), decoded_digests(before));
}

INSTANTIATE_TEST_SUITE_P(Files, StorePackets, testing::ValuesIn(video_recipes()), name_of_recipe);

TEST(Packets, OfAudioSurviveTheRoundTrip) {
  for (const auto& recipe : audio_recipes()) {
    const auto path = audio_path(recipe);
    const auto before = demux(read_bytes(path), path, stream_kind::audio);
    const auto after = packets::parse(before.serialise(), "stored");
    EXPECT_EQ(decode(after).size(), decode(before).size()) << recipe.file;
    EXPECT_EQ(after.stream().channels(), before.stream().channels());
  }
}

TEST(Packets, StoredBytesThatAreCutAreRefusedByName) {
  const auto stored = short_packets().serialise();
  for (std::size_t size = 0; size < stored.size(); size += 1 + size / 7)
    EXPECT_THAT([&] { packets::parse(stored.slice(0, size), "cut.pkts"); },
                ThrowsMessage<error>(HasSubstr("cut.pkts")));
}

TEST(Packets, OfAnotherVersionAreRefusedByItsNumber) {
  const auto stored = short_packets().serialise();
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(stored.data());
  EXPECT_NO_THROW(packets::parse(test::sealed(bytes, stored.size(), "LADEPKTS"), "new.pkts"));
  try {
    packets::parse(test::sealed(bytes, stored.size(), "LADEPKTS", 2), "new.pkts");
    FAIL() << "it parses another version";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::unsupported);
    EXPECT_THAT(refused.what(), AllOf(HasSubstr("new.pkts"), HasSubstr("version 2")));
  }
}

TEST(Packets, AnyFlippedBitIsRefused) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto stored = short_packets().serialise();
  for (int i = 0; i < 300; ++i) {
    buffer copy(stored.size());
    std::memcpy(copy.data(), stored.data(), stored.size());
    copy.data()[random() % copy.size()] ^= static_cast<std::byte>(1U << random() % 8);
    EXPECT_THROW(packets::parse(copy, "flipped"), error);
  }
}

TEST(Packets, ASliceSharesBytesAndACloneDoesNot) {
  const auto all = short_packets();
  const auto part = all.slice(1, 2);
  EXPECT_EQ(part.size(), 2U);
  EXPECT_EQ(part[0].data().data(), all[1].data().data());
  const auto copy = all.clone();
  EXPECT_NE(copy[0].data().data(), all[0].data().data());
  EXPECT_TRUE(std::equal(copy[0].data().begin(), copy[0].data().end(), all[0].data().begin()));
  EXPECT_THROW((void)all.slice(all.size(), 1), error);
}

// The packets with another version of the first one.
template <class F>
static packets with_changed_first(const packets& from, F change) {
  std::vector<packet> all(from.begin(), from.end());
  av_packet first(av_packet_clone(&all[0].get()));
  change(*first);
  all[0] = packet(std::move(first));
  return {from.stream(), std::move(all), from.window()};
}

TEST(Packets, SideDataAndFlagsSurviveTheRoundTrip) {
  const auto before = with_changed_first(short_packets(), [](AVPacket& first) {
    std::memcpy(av_packet_new_side_data(&first, AV_PKT_DATA_SKIP_SAMPLES, 10), "0123456789", 10);
    std::memcpy(av_packet_new_side_data(&first, AV_PKT_DATA_NEW_EXTRADATA, 3), "abc", 3);
    first.flags = AV_PKT_FLAG_KEY | AV_PKT_FLAG_CORRUPT | AV_PKT_FLAG_DISCARD;
    first.pts = AV_NOPTS_VALUE;
  });
  const auto after = packets::parse(before.serialise(), "stored");
  EXPECT_EQ(after[0].get().flags, before[0].get().flags);
  EXPECT_FALSE(after[0].pts());
  std::size_t size = 0;
  const auto* skip = av_packet_get_side_data(&after[0].get(), AV_PKT_DATA_SKIP_SAMPLES, &size);
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(skip), size), "0123456789");
}

TEST(Packets, AreNotTrustedAfterParsing) {
  const auto before = with_changed_first(
      short_packets(), [](AVPacket& first) { first.flags |= AV_PKT_FLAG_TRUSTED; });
  const auto after = packets::parse(before.serialise(), "stored");
  EXPECT_EQ(after[0].get().flags & AV_PKT_FLAG_TRUSTED, 0);
}

TEST(Packets, WithStructuresOfAnotherSizeAreRefused) {
  const auto before = with_changed_first(short_packets(), [](AVPacket& first) {
    av_packet_new_side_data(&first, AV_PKT_DATA_DISPLAYMATRIX, 7);
  });
  EXPECT_THAT([&] { packets::parse(before.serialise(), "stored"); },
              ThrowsMessage<error>(HasSubstr("another size")));
}

TEST(Packets, DoNotKeepSideDataWhoseBytesFFmpegTrusts) {
  const auto before = with_changed_first(short_packets(), [](AVPacket& first) {
    av_packet_new_side_data(&first, AV_PKT_DATA_ENCRYPTION_INFO, 64);
  });
  EXPECT_EQ(packets::parse(before.serialise(), "stored")[0].get().side_data_elems, 0);
}

// The stored bytes with another number of pictures that are reordered: the eleventh number from the
// width on.
static buffer with_reordered(const buffer& stored, const stream_info& of, std::int32_t pictures) {
  const std::int32_t size[] = {of.width(), of.height()};
  const std::string_view wanted(reinterpret_cast<const char*>(size), sizeof size);
  const auto at = stored.text().find(wanted);
  EXPECT_NE(at, std::string_view::npos);
  buffer copy(stored.size());
  std::memcpy(copy.data(), stored.data(), stored.size());
  std::memcpy(copy.data() + at + 10 * sizeof pictures, &pictures, sizeof pictures);
  return test::sealed(reinterpret_cast<const std::uint8_t*>(copy.data()), copy.size(), "LADEPKTS");
}

TEST(Packets, ThatReorderMorePicturesThanACodecCanAreRefused) {
  const auto before = short_packets();
  const auto stored = before.serialise();
  const auto& stream = before.stream();
  EXPECT_EQ(packets::parse(with_reordered(stored, stream, 16), "stored")
                .stream()
                .parameters()
                .video_delay,
            16);
  EXPECT_THROW(packets::parse(with_reordered(stored, stream, 17), "stored"), error);
}

TEST(Packets, CountToTheBudgetOfTheRunWhoseStageDemuxes) {
  const auto all = short_packets();
  const auto file = read_bytes(video_path(video_recipes()[0]));
  runtime where({.threads = 1});
  const auto held =
      from(std::vector<sample>(1, sample("video").with_data(file))) |
      map([](const sample& in) { return demux(in.data(), "video", stream_kind::video).clone(); });
  {
    std::optional<packets> kept;
    for (auto& each : where.run(held)) kept = std::move(each);
    ASSERT_TRUE(kept);
    EXPECT_EQ(where.memory().stats().used_bytes, kept->memory_bytes());
    EXPECT_GE(where.memory().stats().peak_bytes, 2 * kept->memory_bytes());
    EXPECT_EQ(kept->memory_bytes(), kept->data_bytes() + kept->size() * packets::packet_bytes);
  }
  EXPECT_EQ(where.memory().stats().used_bytes, 0U);
}

static task<packets> read_all(sample in) {
  demuxer file(in.data(), "video");
  co_return co_await file.read(file.best(stream_kind::video).index());
}

// All packets, in elements of seven that live at the same time.
static task<std::vector<packets>> stream_all(sample in) {
  demuxer file(in.data(), "video");
  std::vector<packets> elements;
  auto streamed = file.stream(file.best(stream_kind::video).index(), {.packets = 7});
  while (auto* next = co_await streamed.next()) elements.push_back(*next);
  co_return elements;
}

TEST(Packets, ThatADemuxerReadsCountToTheBudgetOfTheRun) {
  const auto file = read_bytes(video_path(video_recipes()[0]));
  runtime where({.threads = 1});
  const auto held = from(std::vector<sample>(1, sample("video").with_data(file))) | map(read_all);
  std::optional<packets> kept;
  for (auto& each : where.run(held)) kept = std::move(each);
  ASSERT_TRUE(kept);
  EXPECT_GE(where.memory().stats().used_bytes, kept->memory_bytes());
  EXPECT_LE(where.memory().stats().used_bytes, kept->memory_bytes() + (1U << 16));
  kept.reset();
  EXPECT_EQ(where.memory().stats().used_bytes, 0U);
}

TEST(Packets, ThatADemuxerStreamsCountToTheBudgetOfTheRun) {
  const auto file = read_bytes(video_path(video_recipes()[0]));
  runtime where({.threads = 1});
  const auto held = from(std::vector<sample>(1, sample("video").with_data(file))) | map(stream_all);
  std::vector<packets> kept;
  for (auto& each : where.run(held)) kept = std::move(each);
  ASSERT_EQ(kept.size(), 8U);
  while (!kept.empty()) {
    std::size_t bytes = 0;
    for (const auto& each : kept) bytes += each.memory_bytes();
    EXPECT_EQ(where.memory().stats().used_bytes, bytes);
    kept.pop_back();
  }
  EXPECT_EQ(where.memory().stats().used_bytes, 0U);
}

TEST(FilterPackets, InAChainAreAppliedInOrder) {
  const auto before = short_packets();
  const auto after = filter_packets(before, "h264_mp4toannexb,setts=pts=PTS+1000:dts=DTS+1000");
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].pts(), *before[i].pts() + 1000);
    EXPECT_EQ(after[i].dts(), *before[i].dts() + 1000);
  }
}

TEST(FilterPackets, LeavesItsInputAsItWas) {
  const auto before = short_packets();
  const auto stored = before.serialise();
  filter_packets(before, "h264_mp4toannexb,noise=amount=10");
  EXPECT_EQ(before.serialise().text(), stored.text());
}

TEST(FilterPackets, AnotherFormatOfTheBitstreamDecodesToTheSameFrames) {
  const auto all = demuxed(video_recipes()[0]);
  const auto filtered = filter_packets(all, "h264_mp4toannexb,h264_metadata");
  EXPECT_EQ(
      std::to_integer<int>(filtered[0].data()[2]) + std::to_integer<int>(filtered[0].data()[3]),
      1);  // a start code
  EXPECT_EQ(decoded_digests(filtered), decoded_digests(all));
}

TEST(FilterPackets, UnknownFiltersAndOptionsAreRefused) {
  EXPECT_THAT([] { filter_packets(short_packets(), "no_such_filter"); },
              ThrowsMessage<error>(HasSubstr("no_such_filter")));
  EXPECT_THROW(filter_packets(short_packets(), "h264_metadata=no_such_option=1"), error);
}

}  // namespace lade::media::packet_test
