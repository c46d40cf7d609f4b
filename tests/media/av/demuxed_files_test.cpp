#include <lade/error.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/sync_wait.hpp>

#include "../../../media/av/format_reader.hpp"
#include "../../support/buffer_of.hpp"
#include "../../support/coroutines.hpp"
#include "demuxed_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <stop_token>
#include <string>
#include <vector>

namespace lade::media::demuxed_files_test {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::code_of;

// What ffprobe prints: "streams.stream.0.codec_name" and "h264".
static std::map<std::string, std::string> probed(const std::string& path) {
  std::istringstream lines(
      output_of("ffprobe -v error -show_streams -show_format -of flat " + path));
  std::map<std::string, std::string> values;
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    auto value = line.substr(equals + 1);
    if (value.starts_with('"')) value = value.substr(1, value.size() - 2);
    values[line.substr(0, equals)] = value;
  }
  return values;
}

static demuxer opened(const demuxed_file& file) {
  return demuxer(read_bytes(file.path()), file.path());
}

class DemuxedFiles : public testing::TestWithParam<demuxed_file> {};

TEST_P(DemuxedFiles, StatesTheParametersThatFfprobeStates) {
  const auto file = opened(GetParam());
  auto expected = probed(GetParam().path());
  EXPECT_EQ(file.format(), expected["format.format_name"]);
  ASSERT_EQ(std::to_string(file.streams().size()), expected["format.nb_streams"]);
  for (const auto& stream : file.streams()) {
    const auto prefix = "streams.stream." + std::to_string(stream.index()) + ".";
    EXPECT_EQ(stream.codec(), expected[prefix + "codec_name"]);
    EXPECT_EQ(name(stream.kind()), expected[prefix + "codec_type"]);
    const auto unit = stream.time_base();
    EXPECT_EQ(std::to_string(unit.numerator()) + "/" + std::to_string(unit.denominator()),
              expected[prefix + "time_base"]);
    if (stream.kind() == stream_kind::video) {
      EXPECT_EQ(std::to_string(stream.width()), expected[prefix + "width"]);
      EXPECT_EQ(std::to_string(stream.height()), expected[prefix + "height"]);
    } else {
      EXPECT_EQ(std::to_string(stream.sample_rate()), expected[prefix + "sample_rate"]);
      EXPECT_EQ(std::to_string(stream.channels()), expected[prefix + "channels"]);
    }
    for (const auto& [key, value] : stream.metadata())
      EXPECT_EQ(value, expected[prefix + "tags." + key]) << key;
  }
  for (const auto& [key, value] : file.metadata())
    EXPECT_EQ(value, expected["format.tags." + key]) << key;
}

TEST_P(DemuxedFiles, StreamsSinglePacketsInTheOrderOfTheFile) {
  auto file = opened(GetParam());
  const auto elements = sync_wait(collect_packets(file, all_streams(file), {.packets = 1}));
  EXPECT_EQ(records_of(elements), records_of_ffmpeg(GetParam()));
}

TEST_P(DemuxedFiles, StreamsAsManyPacketsAsAreAskedFor) {
  auto file = opened(GetParam());
  const auto elements = sync_wait(collect_packets(file, {0}, {.packets = 7}));
  ASSERT_FALSE(elements.empty());
  for (std::size_t i = 0; i + 1 < elements.size(); ++i) EXPECT_EQ(elements[i].size(), 7U);
  EXPECT_LE(elements.back().size(), 7U);
  auto expected = records_of_ffmpeg(GetParam());
  std::erase_if(expected, [](const auto& each) { return !each.starts_with("0 "); });
  EXPECT_EQ(records_of(elements), expected);
}

// When a packet is decoded, or shown if the file does not state that.
static rational order_of(const packets& of, std::size_t i) {
  const auto dts = of[i].dts();
  return rational(dts ? *dts : of[i].pts().value()) * of.stream().time_base();
}

TEST_P(DemuxedFiles, StreamsPacketsOfADuration) {
  auto file = opened(GetParam());
  const rational limit(3, 10);
  const auto elements = sync_wait(collect_packets(file, {0}, {.duration = limit}));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const auto first = order_of(elements[i], 0);
    EXPECT_LT(order_of(elements[i], elements[i].size() - 1) - first, limit);
    if (i + 1 < elements.size()) {
      EXPECT_GE(order_of(elements[i + 1], 0) - first, limit);
    }
  }
  auto expected = records_of_ffmpeg(GetParam());
  std::erase_if(expected, [](const auto& each) { return !each.starts_with("0 "); });
  EXPECT_EQ(records_of(elements), expected);
}

// When a packet is shown, or decoded if the file states only that, as AVI does.
static rational time_of_packet(const packets& of, std::size_t i) {
  const auto pts = of[i].pts();
  return rational(pts ? *pts : of[i].dts().value()) * of.stream().time_base();
}

TEST_P(DemuxedFiles, ReadsWindowsThatBeginWithAKeyFrameAndHaveAllTheirPackets) {
  auto file = opened(GetParam());
  const auto all = sync_wait(file.read(0));
  const auto start = time_of_packet(all, 0);
  if (time_of_packet(all, all.size() - 1) < start + 1) return;  // times that repeat
  const time_window window{.begin = start + rational(7, 10), .end = start + rational(11, 10)};
  const auto part = sync_wait(file.read(0, window));
  ASSERT_FALSE(part.empty());
  EXPECT_TRUE(part[0].is_key());
  EXPECT_LT(part.size(), all.size());
  EXPECT_LE(time_of_packet(part, 0), *window.begin);
  // PCM has no inherent packets: packets behind a seek start elsewhere.
  if (all.stream().codec().starts_with("pcm")) return;
  const auto inside = records_of({part});
  for (std::size_t i = 0; i < all.size(); ++i)
    if (window.contains(time_of_packet(all, i))) {
      EXPECT_THAT(inside, testing::Contains(record_of(all[i].get())));
    }
}

TEST_P(DemuxedFiles, ReadsAllPacketsAsOftenAsItIsAsked) {
  auto file = opened(GetParam());
  auto expected = records_of_ffmpeg(GetParam());
  std::erase_if(expected, [](const auto& each) { return !each.starts_with("0 "); });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(records_of({sync_wait(file.read(0))}), expected);
}

static std::string name_of_file(const testing::TestParamInfo<demuxed_file>& info) {
  return name_of_recipe({info.param.recipe, info.index});
}
INSTANTIATE_TEST_SUITE_P(Files, DemuxedFiles, testing::ValuesIn(all_files()), name_of_file);

TEST(DemuxedFile, CollectsThePacketsOfEachStreamSeparately) {
  auto file = opened(video_and_audio());
  const auto elements = sync_wait(collect_packets(file, {0, 1}, {.packets = 10}));
  std::map<int, std::vector<packets>> by_stream;
  for (const auto& each : elements) by_stream[each.stream().index()].push_back(each);
  for (const int stream : {0, 1}) {
    auto expected = records_of_ffmpeg(video_and_audio());
    std::erase_if(expected,
                  [&](const auto& each) { return !each.starts_with(std::to_string(stream)); });
    EXPECT_EQ(records_of(by_stream[stream]), expected);
  }
  EXPECT_EQ(file.best(stream_kind::video).index(), 0);
  EXPECT_EQ(file.best(stream_kind::audio).index(), 1);
  EXPECT_EQ(file.find_best(stream_kind::subtitle), nullptr);
}

static task<std::vector<packets>> take_elements(demuxer& from, std::vector<int> streams,
                                                packet_stream_options options, std::size_t most) {
  std::vector<packets> all;
  auto elements = from.stream(std::move(streams), options);
  while (all.size() < most) {
    auto* next = co_await elements.next();
    if (next == nullptr) break;
    all.push_back(*next);
  }
  co_return all;
}

TEST(DemuxedFile, StreamsContinueWhereTheLastGeneratorEnded) {
  for (const std::size_t most : {1U, 2U, 5U}) {
    auto file = opened(video_and_audio());
    std::map<int, std::vector<packets>> by_stream;
    while (true) {
      const auto some = sync_wait(take_elements(file, {0, 1}, {.duration = rational(1, 7)}, most));
      for (const auto& each : some) by_stream[each.stream().index()].push_back(each);
      if (some.size() < most) break;
    }
    for (const int stream : {0, 1}) {
      auto expected = records_of_ffmpeg(video_and_audio());
      std::erase_if(expected,
                    [&](const auto& each) { return !each.starts_with(std::to_string(stream)); });
      EXPECT_EQ(records_of(by_stream[stream]), expected);
    }
  }
}

TEST(DemuxedFile, StreamsRestartAfterARead) {
  auto file = opened(video_and_audio());
  const auto first = sync_wait(take_elements(file, {0}, {.packets = 3}, 1));
  (void)sync_wait(file.read(1, {.begin = 1}));
  const auto again = sync_wait(take_elements(file, {0}, {.packets = 3}, 1));
  EXPECT_EQ(records_of(first), records_of(again));
}

TEST(DemuxedFile, AGeneratorOutlivesTheMoveOfItsDemuxer) {
  auto file = opened(video_and_audio());
  auto elements = file.stream(0, {.packets = 1});
  const auto moved = std::move(file);
  const auto count = [](auto& from) -> task<std::size_t> {
    std::size_t all = 0;
    while (co_await from.next()) ++all;
    co_return all;
  };
  EXPECT_EQ(sync_wait(count(elements)), 50U);
}

TEST(DemuxedFile, RefusesEmptyAndDuplicateStreamLists) {
  auto file = opened(video_and_audio());
  EXPECT_THAT([&] { (void)file.stream(std::vector<int>()); },
              ThrowsMessage<error>(HasSubstr("no stream is named")));
  EXPECT_THAT([&] { (void)file.stream(std::vector<int>{1, 1}); },
              ThrowsMessage<error>(HasSubstr("named twice")));
}

TEST(DemuxedFile, RefusesTimesThatNoTimestampHasOnlyIfTheWindowIsEmpty) {
  auto file = opened(video_and_audio());
  const auto all = sync_wait(file.read(0, {.begin = INT64_MIN, .end = INT64_MAX}));
  EXPECT_EQ(all.size(), 50U);
  EXPECT_TRUE(decode(sync_wait(file.read(0, {.begin = INT64_MAX}))).empty());
}

TEST(DemuxedFile, BytesBehindTheLastBoxAreIgnored) {
  auto text = std::string(read_bytes(video_and_audio().path()).text());
  const auto whole = demux(test::buffer_of(text), "a.mp4", stream_kind::video);
  text += "junk";
  EXPECT_EQ(demux(test::buffer_of(text), "a.mp4", stream_kind::video).size(), whole.size());
}

TEST(DemuxedFile, RefusesStreamsAndWindowsThatCannotBe) {
  auto file = opened(video_and_audio());
  EXPECT_THAT([&] { sync_wait(file.read(2)); }, ThrowsMessage<error>(HasSubstr("stream 2")));
  EXPECT_THROW(sync_wait(file.read(-1)), error);
  EXPECT_THAT([&] { sync_wait(file.read(0, {.begin = 2, .end = 1})); },
              ThrowsMessage<error>(HasSubstr("ends before it begins")));
  EXPECT_THROW(sync_wait(collect_packets(file, {0}, {.packets = 0})), error);
  EXPECT_THROW(sync_wait(collect_packets(file, {0}, {.duration = 0})), error);
  EXPECT_THROW(sync_wait(collect_packets(file, {0, 7}, {})), error);
  EXPECT_FALSE(sync_wait(file.read(0)).empty());
}

TEST(DemuxedFile, TakesTheFormatAndItsOptions) {
  const auto path = video_and_audio().path();
  const auto file = read_bytes(path);
  const demuxer named(file, path, {.format = "mov", .options = "ignore_editlist=1"});
  EXPECT_EQ(named.format(), "mov,mp4,m4a,3gp,3g2,mj2");
  EXPECT_THAT([&] { demuxer(file, path, {.options = "ignore_editlist=1:no_such=2"}); },
              ThrowsMessage<error>(HasSubstr("unknown option no_such")));
  EXPECT_THAT([&] { demuxer(file, path, {.options = "nonsense"}); },
              ThrowsMessage<error>(HasSubstr("nonsense")));
  EXPECT_THAT([&] { demuxer(file, path, {.format = "no_such_format"}); },
              ThrowsMessage<error>(HasSubstr("no_such_format")));
  EXPECT_THROW(demuxer(file, path, {.format = "matroska"}), error);
}

TEST(DemuxedFile, RefusesFormatsThatReferToOtherFiles) {
  for (const auto* format : {"hls", "concat", "sdp", "rtsp", "vobsub", "lavfi", "v4l2", "image2"})
    EXPECT_EQ(code_of([&] { demuxer(test::buffer_of("x"), "list", {.format = format}); }),
              errc::unsupported)
        << format;
}

static std::string big_endian(std::size_t value, int bytes) {
  std::string text;
  while (bytes-- > 0) text += static_cast<char>(value >> (8 * bytes));
  return text;
}

// An alias of another file: the record that QuickTime writes for a track without data in the file.
static std::string alias_of(const std::string& path) {
  const std::string levels = big_endian(1, 2) + big_endian(1, 2);
  return std::string(4 + 10 + 28 + 12 + 64 + 16, '\0') + levels + std::string(16, '\0') +
         big_endian(2, 2) + big_endian(path.size(), 2) + path + big_endian(0xffff, 2) +
         big_endian(0, 2);
}

// The file with its first track's data in another file.
static std::string with_external_data(std::string file, const std::string& path) {
  const auto alias = alias_of(path);
  const auto added = alias.size() + 8 - 12;
  const auto dref = file.find("dref");
  file.replace(dref + 12, 12, big_endian(alias.size() + 8, 4) + "alis" + alias);
  for (const auto* box : {"dref", "dinf", "minf", "mdia", "trak", "moov"}) {
    const auto at = file.rfind(box, dref) - 4;
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(file[at + i]);
    file.replace(at, 4, big_endian(size + added, 4));
  }
  return file;
}

TEST(DemuxedFile, RefusesTracksInOtherFilesByTheirNames) {
  const auto file = read_bytes(video_path(video_recipes()[0]));
  const auto external = with_external_data(std::string(file.text()), "a/other.mov");
  EXPECT_THAT([&] { demuxer(test::buffer_of(external), "a.mov"); },
              ThrowsMessage<error>(HasSubstr("refers to another one: other.mov")));
}

TEST(DemuxedFile, LetsNoOptionOpenOtherFiles) {
  const auto path = video_and_audio().path();
  EXPECT_THAT([&] { demuxer(read_bytes(path), path, {.options = "protocol_whitelist=file"}); },
              ThrowsMessage<error>(HasSubstr("protocol_whitelist")));
  format_reader opened(std::make_unique<memory_input>(read_bytes(path)), path, {});
  EXPECT_STREQ(opened.context().protocol_whitelist, "");
}

TEST(DemuxedFile, ReadsNothingMoreWhenItsRunIsStopped) {
  const auto path = video_path(video_recipe("h264.ts"));
  const auto file = read_bytes(path);
  EXPECT_EQ(error_in_a_stopped_stage([&] { demux(file, path, stream_kind::video); }),
            errc::stopped);
  std::stop_source stopped;
  format_reader opened(std::make_unique<memory_input>(file), path, {}, stopped.get_token());
  opened.read();
  stopped.request_stop();
  EXPECT_EQ(code_of([&] { opened.read(); }), errc::stopped);
}

// A transport stream without the packets of one stream that begin with the first packet of its
// `number`th PES packet and end before that of the next (ISO/IEC 13818-1, 2.4.3.2).
static std::string without_pes_packet(const std::string& file, int stream_id, int number) {
  constexpr std::size_t packet_bytes = 188;
  std::string rest;
  int starts = 0;
  for (std::size_t at = 0; at + packet_bytes <= file.size(); at += packet_bytes) {
    const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(file[at + i]); };
    const bool is_of_stream = ((byte_at(1) & 0x1f) << 8 | byte_at(2)) == stream_id;
    if (is_of_stream && (byte_at(1) & 0x40) != 0) ++starts;
    if (!is_of_stream || starts != number) rest.append(file, at, packet_bytes);
  }
  return rest;
}

// Counters repeat after 16 packets: fewer are missing. The first packet behind them is flagged,
// also where FFmpeg has read it to find parameters, and only that one.
TEST(DemuxedFile, FlagsTheGapsOfATransportStream) {
  for (const char* codec : {"aac", "libmp3lame", "mp2"}) {
    const auto path = media_directory / (std::string("gap-") + codec + ".ts");
    media_files::run("-f lavfi -i sine=r=44100:d=20 -pes_payload_size 1000 -c:a " +
                     std::string(codec) + " " + std::string(path));
    const auto whole = demux(read_bytes(path), path, stream_kind::audio);
    const std::string file(read_bytes(path).text());
    for (const int number : {4, 40}) {
      const auto cut = test::buffer_of(without_pes_packet(file, 0x100, number));
      const auto rest = demux(cut, path, stream_kind::audio);
      ASSERT_LT(rest.size(), whole.size()) << path;
      std::size_t at = 0;
      while (rest[at].pts() == whole[at].pts()) ++at;
      for (std::size_t i = 0; i < rest.size(); ++i)
        EXPECT_EQ((rest[i].get().flags & AV_PKT_FLAG_CORRUPT) != 0, i == at) << path << ", " << i;
      EXPECT_THAT([&] { decode(rest); }, ThrowsMessage<error>(HasSubstr("are missing")));
      std::uint64_t damaged = 0;
      decode(rest, {.damage = damage_policy::tolerate}, &damaged);
      EXPECT_EQ(damaged, 1U) << path;
    }
  }
}

TEST(DemuxedFile, RefusesBytesOfNoFormat) {
  EXPECT_THROW(demuxer(buffer(), "empty"), error);
  EXPECT_THAT([] { demuxer(test::buffer_of(std::string(1000, 'x')), "x.bin"); },
              ThrowsMessage<error>(HasSubstr("x.bin")));
}

}  // namespace lade::media::demuxed_files_test
