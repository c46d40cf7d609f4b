#include <lade/byte_reader.hpp>
#include <lade/error.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/runtime.hpp>
#include <lade/sleep.hpp>
#include <lade/sync_wait.hpp>

#include "../../support/mounted_store.hpp"
#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

extern "C" {
#include <libavcodec/codec_par.h>
}

namespace lade::media::demuxer_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

static const media_recipe both_kinds{
    "both.mp4",
    "-f lavfi -i aevalsrc=0.4*sin(660*t):s=44100:d=2 -c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p "
    "-c:a aac -metadata title=both -t 2"};

static std::string both_path() { return video_path(both_kinds); }

// What identifies a packet.
static std::vector<std::pair<int, std::int64_t>> stamps_of(const packets& of) {
  std::vector<std::pair<int, std::int64_t>> stamps;
  for (const auto& each : of) stamps.emplace_back(of.stream().index(), each.dts().value_or(-1));
  return stamps;
}

TEST(Demuxer, ListsStreamsAsTheFileStatesThem) {
  const demuxer opened(read_bytes(both_path()), "both.mp4");
  ASSERT_EQ(opened.streams().size(), 2U);
  const auto& video = opened.best(stream_kind::video);
  EXPECT_EQ(video.codec(), "h264");
  EXPECT_EQ(video.width(), 178);
  EXPECT_EQ(video.height(), 98);
  EXPECT_EQ(video.frame_rate(), rational(25));
  EXPECT_EQ(video.stated_frames(), 50);
  EXPECT_EQ(video.duration(), rational(2));
  EXPECT_EQ(video.name(), "both.mp4, stream 0 (h264)");
  const auto& audio = opened.best(stream_kind::audio);
  EXPECT_EQ(audio.codec(), "aac");
  EXPECT_EQ(audio.sample_rate(), 44'100);
  EXPECT_EQ(audio.channels(), 1);
  EXPECT_EQ(opened.find_best(stream_kind::subtitle), nullptr);
  EXPECT_THROW((void)opened.best(stream_kind::subtitle), error);
  EXPECT_THAT(opened.metadata(), testing::Contains(testing::Pair("title", "both")));
  EXPECT_EQ(opened.format(), "mov,mp4,m4a,3gp,3g2,mj2");
}

TEST(Demuxer, StreamsPacketsInElementsOfANumberOrADuration) {
  demuxer opened(read_bytes(both_path()), "both.mp4");
  const auto all = demux(read_bytes(both_path()), "both.mp4", stream_kind::video);
  std::vector<std::pair<int, std::int64_t>> stamps;
  auto by_number = opened.stream(0, {.packets = 7});
  std::size_t elements = 0;
  sync_wait([](auto& from, auto& to, auto& count) -> task<> {
    while (auto element = co_await from.next()) {
      EXPECT_LE(element->size(), 7U);
      for (const auto& each : stamps_of(*element)) to.push_back(each);
      ++count;
    }
  }(by_number, stamps, elements));
  EXPECT_EQ(stamps, stamps_of(all));
  EXPECT_EQ(elements, 8U);

  demuxer again(read_bytes(both_path()), "both.mp4");
  auto by_time = again.stream(0, {.duration = rational(1, 2)});
  std::vector<std::size_t> sizes;
  sync_wait([](auto& from, auto& to) -> task<> {
    while (auto element = co_await from.next()) to.push_back(element->size());
  }(by_time, sizes));
  EXPECT_EQ(sizes, (std::vector<std::size_t>{13, 13, 13, 11}));
}

TEST(Demuxer, StreamsSeveralStreamsAtOnce) {
  demuxer opened(read_bytes(both_path()), "both.mp4");
  auto all = opened.stream(std::vector<int>{0, 1}, {.packets = 5});
  std::vector<std::size_t> counts(2);
  sync_wait([](auto& from, auto& to) -> task<> {
    while (auto element = co_await from.next())
      to[static_cast<std::size_t>(element->stream().index())] += element->size();
  }(all, counts));
  EXPECT_EQ(counts[0], 50U);
  EXPECT_EQ(counts[1], demux(read_bytes(both_path()), "b", stream_kind::audio).size());
}

TEST(Demuxer, WhatCannotWorkIsNamed) {
  const auto file = read_bytes(both_path());
  EXPECT_THAT([&] { demuxer(file, "a.mp4", {.format = "no_such_format"}); },
              ThrowsMessage<error>(HasSubstr("no_such_format")));
  EXPECT_THAT([&] { demuxer(file, "a.mp4", {.options = "no_such_option=1"}); },
              ThrowsMessage<error>(HasSubstr("no_such_option")));
  EXPECT_THAT([&] { demuxer(file, "a.mp4", {.options = "novalue"}); },
              ThrowsMessage<error>(HasSubstr("key=value")));
  demuxer opened(file, "a.mp4");
  EXPECT_THAT([&] { sync_wait(opened.read(2)); }, ThrowsMessage<error>(HasSubstr("stream 2")));
  EXPECT_THROW(sync_wait(opened.read(0, {.begin = 2, .end = 1})), error);
}

// FFmpeg states the pixel format of H.264 and others, and the sample format of audio, only once it
// has decoded some of them.
TEST(Demuxer, DecodesNothingOfAFileThatStatesItsParameters) {
  for (const char* name :
       {"h264.mp4", "hevc.mp4", "h264-fragmented.mp4", "vp8.webm", "av1.mp4", "hevc-closed.mkv"}) {
    const auto path = video_path(video_recipe(name));
    EXPECT_EQ(demuxer(read_bytes(path), path).best(stream_kind::video).parameters().format, -1)
        << name;
  }
  for (const auto& recipe : audio_recipes()) {
    const std::string_view name = recipe.file;
    // MP3 and MPEG-TS state too little, and the header of FLAC states even that.
    if (name.ends_with(".mp3") || name.ends_with(".ts") || name.ends_with(".flac")) continue;
    const auto path = audio_path(recipe);
    EXPECT_EQ(demuxer(read_bytes(path), path).best(stream_kind::audio).parameters().format, -1)
        << name;
  }
}

TEST(Demuxer, FilesThatReferToOthersAreRefused) {
  struct other_file {
    const char* name;
    std::string text;
  };
  for (const auto& each :
       {other_file{"list.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\n/etc/passwd\n"},
        other_file{"list.ffconcat", "ffconcat version 1.0\nfile '/etc/passwd'\n"},
        other_file{"live.mpd",
                   "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" "
                   "profiles=\"urn:mpeg:dash:profile:isoff-on-demand:2011\"></MPD>"},
        other_file{"call.sdp",
                   "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\n"
                   "m=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n"}}) {
    buffer content(each.text.size());
    std::copy_n(each.text.data(), each.text.size(), reinterpret_cast<char*>(content.data()));
    const auto open = [&] { demuxer(content, each.name); };
    EXPECT_THAT(open,
                ThrowsMessage<error>(testing::AllOf(HasSubstr(each.name), HasSubstr("refer"))));
  }
}

// A file whose reads complete on the reactor, a little later. Fails or never answers if asked to.
class later_reader final : public byte_reader {
 public:
  enum class after { end, fail, hang };

  later_reader(buffer file, std::string name, std::uint64_t bytes, after what)
      : file_(std::move(file)), name_(std::move(name)), left_(bytes), what_(what) {}
  later_reader(buffer file, std::string name)
      : later_reader(std::move(file), std::move(name), UINT64_MAX, after::end) {}

  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const override { return file_.size(); }
  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    co_await sleep(std::chrono::microseconds(10));
    if (left_.fetch_sub(into.size()) < into.size() || left_ > UINT64_MAX / 2 + file_.size()) {
      if (what_ == after::fail) throw error(errc::timed_out, "read " + name_);
      if (what_ == after::hang) {
        hangs_ = true;
        co_await sleep(std::chrono::hours(1));
      }
    }
    const auto rest = file_.bytes().subspan(std::min<std::size_t>(offset, file_.size()));
    const auto count = std::min(rest.size(), into.size());
    std::copy_n(rest.begin(), count, into.begin());
    co_return count;
  }
  using byte_reader::read_at;

  bool hangs() const noexcept { return hangs_; }

 private:
  buffer file_;
  std::string name_;
  mutable std::atomic<std::uint64_t> left_;
  after what_;
  mutable std::atomic<bool> hangs_ = false;
};

static task<packets> read_window(std::shared_ptr<const byte_reader> from, time_window window) {
  auto opened = co_await demuxer::open(std::move(from));
  const int stream = opened.best(stream_kind::video).index();
  co_return co_await opened.read(stream, window);
}

TEST(Demuxer, ReadsTheSamePacketsFromASlowReader) {
  for (const auto kind : {reactor_kind::automatic, reactor_kind::fallback}) {
    runtime runs({.threads = 1, .reactor = kind});
    for (const auto& recipe : video_recipes()) {
      const auto path = video_path(recipe);
      const auto file = read_bytes(path);
      const time_window window{.begin = rational(1, 2), .end = rational(3, 2)};
      const auto slow =
          sync_wait(runs, read_window(std::make_shared<const later_reader>(file, path), window));
      EXPECT_EQ(stamps_of(slow), stamps_of(demux(file, path, stream_kind::video, window))) << path;
    }
  }
}

TEST(Demuxer, PassesOnWhatItsReaderThrows) {
  runtime runs({.threads = 1});
  const auto file = read_bytes(both_path());
  for (const std::uint64_t bytes : {0U, 40'000U, 70'000U}) {
    const auto from =
        std::make_shared<const later_reader>(file, "slow.mp4", bytes, later_reader::after::fail);
    try {
      sync_wait(runs, read_window(from, {}));
      ADD_FAILURE() << "no error after " << bytes << " bytes";
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::timed_out);
    }
  }
}

static task<> stop_when_it_hangs(std::shared_ptr<const later_reader> from,
                                 std::stop_source stopping) {
  while (!from->hangs()) co_await sleep(std::chrono::microseconds(100));
  stopping.request_stop();
}

TEST(Demuxer, IsStoppedWhileItsReaderDoesNotAnswer) {
  runtime runs({.threads = 2});
  const auto file = read_bytes(both_path());
  for (const std::uint64_t bytes : {0U, 40'000U, 70'000U}) {
    const auto from =
        std::make_shared<const later_reader>(file, "slow.mp4", bytes, later_reader::after::hang);
    std::stop_source stopping;
    std::jthread stopper([&] { sync_wait(runs, stop_when_it_hangs(from, stopping)); });
    try {
      sync_wait(runs, read_window(from, {}), stopping.get_token());
      ADD_FAILURE() << "no error after " << bytes << " bytes";
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::stopped);
    }
  }
}

TEST(Demuxer, OfASlowReaderNeedsARuntime) {
  const auto from = std::make_shared<const later_reader>(read_bytes(both_path()), "slow.mp4");
  EXPECT_THROW(sync_wait(demuxer::open(from)), error);
  EXPECT_THROW(sync_wait(demuxer::open(std::shared_ptr<const byte_reader>())), error);
}

TEST(Demuxer, CountsTheBytesThatItReads) {
  const auto file = read_bytes(both_path());
  demuxer opened(file, "both.mp4");
  const auto before = opened.bytes_read();
  EXPECT_GT(before, 0U);
  sync_wait(opened.read(0));
  EXPECT_GT(opened.bytes_read(), before);
  EXPECT_LE(opened.bytes_read(), 2 * file.size() + (64 << 10));
}

static task<packets> read_video_of(std::string path) {
  auto file = co_await demuxer::open(std::move(path));
  co_return co_await file.read(file.best(stream_kind::video).index());
}

TEST(Demuxer, OpensPathsAndUrls) {
  runtime runs;
  test::mounted_store store("demuxed://");
  store->put("demuxed://both.mp4", std::string(read_bytes(both_path()).text()));
  const auto expected = stamps_of(demux(read_bytes(both_path()), "both", stream_kind::video));
  EXPECT_EQ(stamps_of(sync_wait(runs, read_video_of(both_path()))), expected);
  const auto remote = sync_wait(runs, read_video_of("demuxed://both.mp4"));
  EXPECT_EQ(stamps_of(remote), expected);
  EXPECT_THAT(remote.stream().name(), HasSubstr("demuxed://both.mp4"));
  EXPECT_THAT([&] { sync_wait(runs, read_video_of("demuxed://none.mp4")); },
              ThrowsMessage<error>(HasSubstr("demuxed://none.mp4")));
  EXPECT_THAT([&] { sync_wait(runs, read_video_of("no-store://both.mp4")); },
              ThrowsMessage<error>(HasSubstr("no-store://both.mp4")));
}

}  // namespace lade::media::demuxer_test
