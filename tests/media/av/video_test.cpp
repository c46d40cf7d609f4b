#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/map.hpp>
#include <lade/media/av/clip.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/video.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>

#include "../../support/buffer_of.hpp"
#include "../../support/seed.hpp"
#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::media::video_test {

static std::vector<frame_digest> digests_of(const std::vector<frame>& frames) {
  std::vector<frame_digest> digests;
  for (const auto& each : frames) digests.push_back(digest_of(each));
  return digests;
}

class SampleFrames : public testing::TestWithParam<media_recipe> {
 protected:
  std::string path_ = video_path(GetParam());
  buffer file_ = read_bytes(path_);
};

TEST_P(SampleFrames, IndexHasTheFramesThatDecodingAllReturns) {
  const video opened(file_, path_);
  const auto expected = frames_of_ffmpeg(path_, "v:0");
  ASSERT_EQ(opened.size(), static_cast<std::int64_t>(expected.size()));
  for (std::int64_t i = 0; i < opened.size(); ++i)
    EXPECT_EQ(opened.index().time(i), expected[static_cast<std::size_t>(i)].time);
}

TEST_P(SampleFrames, OfRandomNumbersEqualThoseOfDecodingAll) {
  const video opened(file_, path_);
  const auto expected = frames_of_ffmpeg(path_, "v:0");
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 12; ++round) {
    std::vector<std::int64_t> numbers;
    const auto count = 1 + random() % 6;
    for (std::uint64_t i = 0; i < count; ++i)
      numbers.push_back(static_cast<std::int64_t>(random() % expected.size()));
    const auto frames = opened.frames(numbers);
    ASSERT_EQ(frames.size(), numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i)
      EXPECT_EQ(digest_of(frames[i]), expected[static_cast<std::size_t>(numbers[i])])
          << "frame " << numbers[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Files, SampleFrames, testing::ValuesIn(video_recipes()), name_of_recipe);

TEST(Video, WithoutTimesHasTheFramesInTheirOrder) {
  for (const auto& recipe : untimed_recipes()) {
    const auto path = video_path(recipe);
    const video opened(read_bytes(path), path);
    const auto expected = frames_of_ffmpeg(path, "v:0");
    ASSERT_EQ(opened.size(), static_cast<std::int64_t>(expected.size())) << recipe;
    for (std::int64_t i = opened.size(); i-- > 0;)
      EXPECT_EQ(digest_of(opened.frames(std::vector{i})[0]).md5,
                expected[static_cast<std::size_t>(i)].md5)
          << recipe << ", frame " << i;
  }
}

TEST(Video, WithoutTimesHasThoseOfItsFrameRate) {
  const auto path = video_path(untimed_recipes()[2]);
  const video opened(read_bytes(path), path);
  for (std::int64_t i = 0; i < opened.size(); ++i)
    EXPECT_EQ(opened.index().time(i), rational(i, 25));
  EXPECT_EQ(opened.index().end(), rational(2));
}

static video open_recipe(std::string_view file) {
  const auto path = video_path(video_recipe(file));
  return video(read_bytes(path), path);
}

// One group of pictures of 50 frames, of which every other one or more is a B-frame.
TEST(Video, SelectionDecodesUpToTheLastSelectedFrame) {
  const auto opened = open_recipe("h264-long-gop.mp4");
  selection_statistics counted;
  opened.frames(std::vector<std::int64_t>{3, 4}, {}, &counted);
  EXPECT_EQ(counted.ranges, 1U);
  EXPECT_LE(counted.packets, 10U);
}

TEST(Video, SelectionSkipsFramesThatNobodyNeeds) {
  const auto opened = open_recipe("h264-long-gop.mp4");
  selection_statistics counted;
  opened.frames(std::vector<std::int64_t>{45}, {}, &counted);
  EXPECT_GE(counted.packets, 40U);
  EXPECT_LE(counted.frames, 36U);
}

// 300 frames of which every 250th is a key frame, most of them B-frames.
static video open_long_video() {
  const std::string path = media_directory / "long.mp4";
  if (!std::filesystem::exists(path))
    media_files::run(
        "-f lavfi -i testsrc2=size=178x98:rate=25:duration=12 -c:v libx264 -g 250 -bf 3 "
        "-sc_threshold 0 -pix_fmt yuv420p " +
        path);
  return video(read_bytes(path), path);
}

static selection_statistics statistics_of(const video& of,
                                          const std::vector<std::int64_t>& numbers) {
  selection_statistics counted;
  of.frames(numbers, {}, &counted);
  return counted;
}

TEST(Video, SelectionOfALongGroupOfPicturesDecodesWhatItNeeds) {
  const auto opened = open_long_video();
  ASSERT_EQ(opened.size(), 300);
  const auto contiguous = statistics_of(opened, {100, 101, 102, 103});
  EXPECT_LE(contiguous.packets, 112U);
  EXPECT_LE(contiguous.frames, 70U);
  random draw(1);
  const auto even = sample_clip(opened.index(), {.position = clip_position::spread}, draw);
  EXPECT_LE(statistics_of(opened, even).frames, 180U);
  const clip_sampling three{.frames = 4, .clips = 3, .position = clip_position::random};
  const auto clips = sample_clip(opened.index(), three, draw);
  EXPECT_LE(statistics_of(opened, clips).packets, 300U);  // not three times
}

// Every second or third picture is one that no other needs.
TEST(Video, SelectionSkipsFramesThatNobodyNeedsOfEachCodecThatHasThem) {
  for (const auto& recipe :
       {video_recipe("h264-long-gop.mp4"),
        {"skip-hevc.mp4",
         "-c:v libx265 -x265-params log-level=none:keyint=50:bframes=2:b-pyramid=0 "
         "-pix_fmt yuv420p"},
        {"skip-hevc.mkv",
         "-c:v libx265 -x265-params log-level=none:keyint=50:bframes=2:b-pyramid=0 -pix_fmt "
         "yuv420p"},
        {"skip-mpeg1.mkv", "-c:v mpeg1video -g 50 -bf 2"},
        {"skip-mpeg2.ts", "-c:v mpeg2video -g 50 -bf 2"},
        {"skip-mpeg2.mkv", "-c:v mpeg2video -g 50 -bf 2"},
        {"skip-mpeg4.mp4", "-c:v mpeg4 -g 50 -bf 2"}}) {
    const auto path = video_path(recipe);
    const video opened(read_bytes(path), path);
    EXPECT_FALSE(opened.index().is_sequential()) << recipe;
    const auto last = opened.size() - 3;
    const auto counted = statistics_of(opened, {last});
    EXPECT_GE(counted.packets, 45U) << recipe;
    EXPECT_LE(counted.frames, counted.packets * 3 / 5) << recipe;
    EXPECT_EQ(digest_of(opened.frames(std::vector{last})[0]),
              frames_of_ffmpeg(path, "v:0").at(static_cast<std::size_t>(last)))
        << recipe;
  }
}

TEST(Video, SelectionStartsAtTheKeyFrameBefore) {
  const auto opened = open_recipe("h264.mp4");  // groups of 12
  selection_statistics counted;
  opened.frames(std::vector<std::int64_t>{25, 49}, {}, &counted);
  EXPECT_EQ(counted.ranges, 2U);
  EXPECT_LE(counted.packets, 6U);
}

TEST(Video, FramesAtTimesAreThoseThatAreShown) {
  const auto opened = open_recipe("late-start.mp4");  // 25 frames per second, from 3 s on
  const auto frames = opened.frames_at(std::vector<rational>{3, rational(3039, 1000), 4});
  EXPECT_EQ(frames[0].time(), rational(3));
  EXPECT_EQ(frames[1].time(), rational(3));
  EXPECT_EQ(frames[2].time(), rational(4));
  EXPECT_THROW(opened.frames_at(std::vector<rational>{rational(299, 100)}), error);
  EXPECT_THROW(opened.frames_at(std::vector<rational>{5}), error);
}

// The number of the frame of the ffmpeg program that is shown at a time.
static std::size_t shown_at(const std::vector<frame_digest>& frames, const rational& time) {
  std::size_t shown = 0;
  while (shown + 1 < frames.size() && *frames[shown + 1].time <= time) ++shown;
  return shown;
}

// At the beginning of each frame, right before its end, and in between; also in the gap of a file.
TEST(Video, FramesAtTimesOfVariableRatesAndGapsAreThoseOfTheFfmpegProgram) {
  for (const char* file : {"h264-variable.mkv", "h264-gap.mp4", "h264-cut.mp4", "vp8.webm"}) {
    const auto path = video_path(video_recipe(file));
    const video opened(read_bytes(path), path);
    const auto expected = frames_of_ffmpeg(path, "v:0");
    std::vector<rational> times;
    for (std::size_t i = 0; i + 1 < expected.size(); ++i) {
      const auto begin = *expected[i].time;
      const auto length = *expected[i + 1].time - begin;
      for (const auto& part : {rational(0), rational(1, 3), rational(999, 1'000)})
        times.push_back(begin + length * part);
    }
    times.push_back(*expected.back().time);
    const auto frames = opened.frames_at(times);
    ASSERT_EQ(frames.size(), times.size()) << file;
    for (std::size_t i = 0; i < times.size(); ++i)
      EXPECT_EQ(digest_of(frames[i]), expected[shown_at(expected, times[i])])
          << file << " at " << to_string(times[i]);
    const auto before = *expected[0].time - rational(1, 1'000);
    EXPECT_THROW(opened.frames_at(std::vector{before}), error) << file;
    EXPECT_THROW(opened.frames_at(std::vector{opened.index().end()}), error) << file;
  }
}

TEST(Video, AFrameBeforeAGapIsShownUntilTheNext) {
  const auto opened = open_recipe("h264-gap.mp4");  // nothing begins from 0.5 s to 1.4 s
  const auto frames = opened.frames_at(std::vector<rational>{rational(13, 10), rational(1, 2)});
  EXPECT_EQ(frames[0].time(), rational(12, 25));
  EXPECT_EQ(frames[1].time(), rational(12, 25));
}

TEST(Video, WhoseTimesGoBackHasTheFramesOfDecodingAll) {
  const auto path = joined_recordings();
  const auto file = read_bytes(path);
  const auto all = decode(demux(file, path, stream_kind::video));
  const video opened(file, path);
  EXPECT_TRUE(opened.index().is_sequential());
  ASSERT_EQ(opened.size(), static_cast<std::int64_t>(all.size()));
  for (std::int64_t i = 0; i < opened.size(); i += 7)
    EXPECT_EQ(digest_of(opened.frames(std::vector{i})[0]),
              digest_of(all[static_cast<std::size_t>(i)]));
}

// A file that counts the bytes that are read of it.
class counting_reader final : public byte_reader {
 public:
  counting_reader(buffer file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const override { return file_.size(); }
  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    const auto rest = file_.bytes().subspan(std::min<std::size_t>(offset, file_.size()));
    const auto count = std::min(rest.size(), into.size());
    std::copy_n(rest.begin(), count, into.begin());
    bytes_ += count;
    co_return count;
  }
  using byte_reader::read_at;

  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  buffer file_;
  std::string name_;
  mutable std::atomic<std::uint64_t> bytes_ = 0;
};

// A copy of a stream without timestamps, made of "{}" by ffmpeg.
struct timeless_copy {
  const char* from;      // file
  const char* encoding;  // arguments that make it
  const char* copying;   // arguments that copy it
  const char* to;

  std::string path() const {
    const std::string source = media_directory / from;
    const std::string target = media_directory / to;
    media_files::run(std::string(moving) + " " + encoding + " " + source);
    std::string arguments = copying;
    media_files::run(arguments.replace(arguments.find("{}"), 2, source) + " " + target);
    return target;
  }
};

static void expect_frames_of_decoding_all(const video& opened, const buffer& file) {
  const auto all = decode(demux(file, opened.name(), stream_kind::video));
  ASSERT_EQ(opened.size(), static_cast<std::int64_t>(all.size()));
  for (std::int64_t i = 0; i < opened.size(); i += 3)
    EXPECT_EQ(digest_of(opened.frames(std::vector{i})[0]).md5,
              digest_of(all[static_cast<std::size_t>(i)]).md5)
        << opened.name() << ", frame " << i;
}

TEST(Video, WhoseTimesAreThoseOfDecodingHasTheFramesOfDecodingAll) {
  const char* h264 = "-c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p";
  for (const auto& copy :
       {timeless_copy{"t.avi", h264, "-i {} -c copy", "t-h264-avi.mp4"},
        {"t.h264", h264, "-r 25 -i {} -c copy", "t-h264.mp4"},
        {"t.avi", h264, "-fflags +genpts -i {} -c copy", "t-h264.mkv"},
        {"t.hevc", "-c:v libx265 -x265-params log-level=none -pix_fmt yuv420p",
         "-r 25 -i {} -c copy", "t-hevc.mp4"},
        {"u.avi", "-c:v mpeg4 -g 12 -bf 2", "-i {} -c copy", "t-mpeg4.mp4"},
        {"t.m2v", "-c:v mpeg2video -g 12 -bf 2", "-r 25 -i {} -c copy", "t-mpeg2.mp4"}}) {
    const auto path = copy.path();
    const auto file = read_bytes(path);
    const video opened(file, path);
    EXPECT_TRUE(opened.index().is_sequential()) << path;
    expect_frames_of_decoding_all(opened, file);
    runtime runs;
    const auto from = std::make_shared<const memory_reader>(file, path);
    EXPECT_TRUE(sync_wait(runs, video::open(from)).index().is_sequential()) << path;
  }
}

// Only the first packet has the palette.
TEST(Video, WithAPaletteHasTheFramesOfDecodingAll) {
  for (const auto* file : {"palette.avi", "palette.mov"}) {
    const auto path = video_path({file, "-c:v rawvideo -pix_fmt pal8"});
    const auto content = read_bytes(path);
    const video opened(content, path);
    EXPECT_EQ(opened.frames(std::vector<std::int64_t>{9})[0].pixel_format(), "pal8");
    expect_frames_of_decoding_all(opened, content);
  }
}

TEST(Video, WithoutBFramesNeedNotBeDecodedFromItsBeginning) {
  for (const auto& recipe :
       {media_recipe{"plain-h264.mp4", "-c:v libx264 -g 12 -bf 0 -pix_fmt yuv420p"},
        {"plain-hevc.mp4",
         "-c:v libx265 -g 12 -x265-params bframes=0:log-level=none -pix_fmt yuv420p"},
        {"plain-h264.mkv", "-c:v libx264 -g 12 -bf 0 -pix_fmt yuv420p"},
        {"plain-hevc.mkv",
         "-c:v libx265 -g 12 -x265-params bframes=0:log-level=none -pix_fmt yuv420p"},
        {"plain-h264.ts", "-c:v libx264 -g 12 -bf 0 -pix_fmt yuv420p"},
        {"plain-mpeg4.mp4", "-c:v mpeg4 -g 12 -bf 0"},
        {"plain-mpeg4.avi", "-c:v mpeg4 -g 12 -bf 0"},
        {"plain-mpeg2.ts", "-c:v mpeg2video -g 12 -bf 0"}}) {
    const auto path = video_path(recipe);
    const auto file = read_bytes(path);
    const video opened(file, path);
    EXPECT_FALSE(opened.index().is_sequential()) << path;
    expect_frames_of_decoding_all(opened, file);
  }
}

// The demuxer decrypts the packets: those of the file are others.
TEST(Video, AnEncryptedVideoHasTheFramesOfThePlainOne) {
  const auto plain = video_path(video_recipe("h264.mp4"));
  const std::string path = media_directory / "encrypted.mp4";
  media_files::run("-i " + plain +
                   " -encryption_scheme cenc-aes-ctr -encryption_key "
                   "00112233445566778899aabbccddeeff -encryption_kid "
                   "ffeeddccbbaa99887766554433221100 -c copy " +
                   path);
  const auto file = read_bytes(path);
  const std::vector<std::int64_t> numbers{0, 17, 49};
  const auto expected = video(read_bytes(plain), plain).frames(numbers);
  const video_options options{
      .demuxing = {.options = "decryption_key=00112233445566778899aabbccddeeff"}};
  runtime runs;
  const auto from = std::make_shared<const counting_reader>(file, path);
  for (const auto& opened :
       {video(file, path, options), sync_wait(runs, video::open(from, options)),
        video(file, path, index_video(file, path, options), options.demuxing)}) {
    const auto frames = sync_wait(runs, opened.fetch(numbers)).frames(numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      EXPECT_EQ(digest_of(frames[i]), digest_of(expected[i])) << "frame " << numbers[i];
  }
  EXPECT_THROW(video(file, path).frames(numbers), error);
}

TEST(Video, ThatIsRefreshedPartByPartHasTheFramesOfDecodingAll) {
  for (const auto& recipe : refreshed_recipes()) {
    const auto path = video_path(recipe);
    const video opened(read_bytes(path), path);
    const auto expected = frames_of_ffmpeg(path, "v:0");
    ASSERT_EQ(opened.size(), static_cast<std::int64_t>(expected.size())) << recipe;
    for (std::int64_t i = 0; i < opened.size(); ++i)
      EXPECT_EQ(digest_of(opened.frames(std::vector{i})[0]), expected[static_cast<std::size_t>(i)])
          << recipe << ", frame " << i;
  }
}

TEST(Video, ThatIsRefreshedPartByPartStartsDecodingAtIdrPictures) {
  const auto opened = open_recipe("refreshed-idr.mp4");
  std::vector<std::int64_t> keys;
  for (std::int64_t i = 0; i < opened.size(); ++i)
    if (opened.index().is_key(i)) keys.push_back(i);
  EXPECT_EQ(keys, (std::vector<std::int64_t>{0, 25}));
}

// Headers of MP4 do not state that, and a kept index may have been made of them.
TEST(Video, ThatIsRefreshedPartByPartIsExactByRanges) {
  runtime runs;
  for (const auto* name : {"refreshed.mp4", "refreshed-b.mp4", "refreshed-idr.mp4"}) {
    const auto path = video_path(video_recipe(name));
    const auto file = read_bytes(path);
    const auto expected = frames_of_ffmpeg(path, "v:0");
    const auto remote =
        sync_wait(runs, video::open(std::make_shared<const counting_reader>(file, path)));
    const video again(file, path, remote.index());
    for (std::int64_t i = 0; i < remote.size(); i += 7) {
      const std::vector<std::int64_t> numbers{std::min(i + 9, remote.size() - 1), i};
      const auto fetched = sync_wait(runs, remote.fetch(numbers));
      for (const auto* each : {&fetched, &again}) {
        const auto frames = each->frames(numbers);
        EXPECT_EQ(digest_of(frames[0]), expected[static_cast<std::size_t>(numbers[0])]) << name;
        EXPECT_EQ(digest_of(frames[1]), expected[static_cast<std::size_t>(i)]) << name;
      }
    }
  }
}

// Headers do not state how many frames are missing at the beginning, so numbers would be wrong.
TEST(Video, ThatBeginsWithAPartialRefreshIsRefusedByRanges) {
  const auto path = video_path(video_recipe("refreshed-cut.mp4"));
  runtime runs;
  const auto from = std::make_shared<const counting_reader>(read_bytes(path), path);
  const auto remote = sync_wait(runs, video::open(from));
  EXPECT_THAT([&] { sync_wait(runs, remote.fetch({remote.size() - 1})); },
              testing::ThrowsMessage<error>(testing::HasSubstr("first picture is no key frame")));
}

// Without its box of sync samples, an MP4 file says that decoding can start at all of them.
TEST(Video, OfHevcStartsDecodingAtRandomAccessPointsOnly) {
  const auto path =
      video_path({"plain-hevc.mp4",
                  "-c:v libx265 -g 12 -x265-params bframes=0:log-level=none -pix_fmt yuv420p"});
  std::string bytes(read_bytes(path).text());
  const auto at = bytes.find("stss");
  ASSERT_NE(at, std::string::npos);
  const auto file = test::buffer_of(bytes.replace(at, 4, "free"));
  const video opened(file, path);
  EXPECT_FALSE(opened.index().is_key(1));
  EXPECT_TRUE(opened.index().is_key(12));
  expect_frames_of_decoding_all(opened, file);
}

// Parameter sets in the headers say so.
TEST(Video, WithoutBFramesIsReadByRangesAsOthersAre) {
  for (const auto& recipe :
       {media_recipe{"plain-h264.mp4", "-c:v libx264 -g 12 -bf 0 -pix_fmt yuv420p"},
        {"plain-422.mp4", "-c:v libx264 -g 12 -bf 0 -pix_fmt yuv422p10le"},
        {"plain-scaled.mp4", "-c:v libx264 -g 12 -bf 0 -x264-params cqm=jvt -pix_fmt yuv420p"},
        {"plain-hevc.mp4",
         "-c:v libx265 -g 12 -x265-params bframes=0:log-level=none -pix_fmt yuv420p"}}) {
    const auto path = video_path(recipe);
    const auto file = read_bytes(path);
    const auto from = std::make_shared<const counting_reader>(file, path);
    runtime runs;
    const auto opened = sync_wait(runs, video::open(from));
    EXPECT_LT(from->bytes(), file.size() / 2) << path;
    EXPECT_FALSE(opened.index().is_sequential());
  }
}

TEST(Video, WhoseTimesGoBackHasNoFramesAtTimes) {
  const auto path = joined_recordings();
  const video opened(read_bytes(path), path);
  random draw(1);
  for (const auto end : {clip_end::loop, clip_end::repeat_last, clip_end::shorten})
    EXPECT_THAT(
        [&] {
          sample_clip(opened.index(),
                      {.frames = 500, .position = clip_position::first, .fps = 10, .end = end},
                      draw);
        },
        testing::ThrowsMessage<error>(testing::HasSubstr("its times go back")));
  EXPECT_THROW(opened.frames_at(std::vector<rational>{1}), error);
  EXPECT_EQ(sample_clip(opened.index(), {.frames = 3, .position = clip_position::first}, draw),
            (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(Video, IsOfTheStreamThatIsChosen) {
  const auto path = two_videos();
  const auto file = read_bytes(path);
  EXPECT_EQ(video(file, path).stream().index(), 0);
  const video second(file, path, {.stream = 1});
  EXPECT_EQ(second.size(), 10);
  EXPECT_EQ(digest_of(second.frames(std::vector<std::int64_t>{7})[0]),
            frames_of_ffmpeg(path, "v:1").at(7));
  EXPECT_THROW(video(file, path, {.stream = 2}), error);  // audio
  EXPECT_THROW(video(file, path, {.stream = 3}), error);
}

TEST(Video, ATimeFarFromItIsRefusedByItsName) {
  const auto opened = open_recipe("h264.mp4");
  for (const auto& time : {rational(INT64_MAX), rational(INT64_MIN), rational(INT64_MAX, 7)})
    EXPECT_THAT([&] { opened.frames_at(std::vector{time}); },
                testing::ThrowsMessage<error>(testing::HasSubstr("h264.mp4")));
}

TEST(Video, ANumberThatItDoesNotHaveIsRefused) {
  const auto opened = open_recipe("h264.mp4");
  EXPECT_THROW(opened.frames(std::vector<std::int64_t>{50}), error);
  EXPECT_THROW(opened.frames(std::vector<std::int64_t>{-1}), error);
}

class ReadFrames : public SampleFrames {};

TEST_P(ReadFrames, ByRangesEqualThoseOfTheFileInMemory) {
  const auto from = std::make_shared<const counting_reader>(file_, path_);
  runtime runs;
  const auto remote = sync_wait(runs, video::open(from));
  const video whole(file_, path_);
  ASSERT_EQ(remote.size(), whole.size());
  for (std::int64_t first = 0; first + 20 < whole.size(); first += 9) {
    const std::vector<std::int64_t> numbers{first, first + 1, first + 20};
    const auto fetched = sync_wait(runs, remote.fetch(numbers));
    const auto frames = fetched.frames(numbers);
    const auto expected = whole.frames(numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      EXPECT_EQ(digest_of(frames[i]), digest_of(expected[i])) << "frame " << numbers[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Files, ReadFrames, testing::ValuesIn(video_recipes()), name_of_recipe);

TEST(Video, ByRangesReadsTheHeadersAndThePacketsOfTheFrames) {
  const media_recipe large{"large.mp4", "-vf scale=1280:720 -c:v libx264 -g 12 -pix_fmt yuv420p"};
  const auto path = video_path(large);
  const auto file = read_bytes(path);
  const auto from = std::make_shared<const counting_reader>(file, path);
  runtime runs;
  const auto opened = sync_wait(runs, video::open(from));
  std::uint64_t media = 0;
  for (const auto& each : opened.index().packets()) media += each.size;
  EXPECT_LE(from->bytes(), file.size() - media + 512);
  const auto headers = from->bytes();
  sync_wait(runs, opened.fetch({24, 25, 26}));
  std::uint64_t needed = 0;
  for (const auto& range : opened.index().ranges(std::vector<std::int64_t>{24, 25, 26}))
    for (auto i = range.first; i < range.last; ++i) needed += opened.index().packets()[i].size;
  EXPECT_EQ(from->bytes() - headers, needed);
  EXPECT_EQ(opened.bytes_read(), from->bytes());
}

// So that later epochs read the packets of their frames only, of any container whose packets lie in
// one piece.
TEST(Video, WithAKnownIndexReadsTheSelectedPacketsOnly) {
  runtime runs;
  for (const char* name : {"h264.mp4", "hevc-closed.mkv", "vp8.webm", "av1-10.webm", "mpeg4.avi"}) {
    const auto path = video_path(video_recipe(name));
    const auto file = read_bytes(path);
    const auto index = packet_index::parse(index_video(file, path).serialise(), "kept");
    ASSERT_TRUE(index.has_positions()) << name;
    const auto from = std::make_shared<const counting_reader>(file, path);
    auto opened = sync_wait(runs, video::open(from, index));
    EXPECT_EQ(from->bytes(), 0U) << name;
    const std::vector<std::int64_t> numbers{2, 3};
    opened = sync_wait(runs, opened.fetch(numbers));
    EXPECT_LT(from->bytes(), file.size() / 2) << name;
    EXPECT_EQ(opened.bytes_read(), from->bytes()) << name;
    const auto frames = opened.frames(numbers);
    const auto expected = video(file, path).frames(numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      EXPECT_EQ(digest_of(frames[i]), digest_of(expected[i])) << name;
  }
}

// A directory of indexes, and a file whose index it may keep.
class KeptIndex : public testing::Test {
 protected:
  KeptIndex() {
    std::filesystem::copy_file(video_path(video_recipe("vp8.webm")), path_);
    file_ = read_bytes(path_);
  }

  // Returns how many bytes of the file are read to open it.
  std::uint64_t bytes_to_open() {
    opened_ = sync_wait(runs_, open_with_directory(path_, directory_));
    return opened_->bytes_read();
  }

  static task<video> open_with_directory(std::string path, std::string directory) {
    const auto from = co_await io::open_reader(path);
    const video_options options{.index_directory = directory};
    co_return co_await video::open(from, options);
  }

  std::vector<std::filesystem::path> kept() const {
    std::vector<std::filesystem::path> found;
    for (const auto& each : std::filesystem::directory_iterator(directory_))
      found.push_back(each.path());
    return found;
  }

  testing_support::temp_dir files_;
  const std::string directory_ = files_ / "indexes";
  const std::string path_ = files_ / "a.webm";
  buffer file_;
  runtime runs_;
  std::optional<video> opened_;
};

TEST_F(KeptIndex, IsUsedByTheNextCall) {
  EXPECT_GE(bytes_to_open(), file_.size());
  EXPECT_EQ(kept().size(), 1U);
  EXPECT_EQ(bytes_to_open(), 0U);
  const std::vector<std::int64_t> numbers{7, 3};
  const auto frames = sync_wait(runs_, opened_->fetch(numbers)).frames(numbers);
  const auto expected = video(file_, path_).frames(numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(digest_of(frames[i]), digest_of(expected[i]));
}

TEST_F(KeptIndex, OfAFileThatWasModifiedIsNotUsed) {
  bytes_to_open();
  std::filesystem::last_write_time(
      path_, std::filesystem::last_write_time(path_) + std::chrono::seconds(1));
  EXPECT_GE(bytes_to_open(), file_.size());
}

// Restores the working directory.
class working_directory {
 public:
  explicit working_directory(const std::filesystem::path& path) {
    std::filesystem::current_path(path);
  }
  ~working_directory() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
};

// Of two processes with other working directories, or of one that changes it.
TEST_F(KeptIndex, OfARelativePathIsOfTheFileThatItNames) {
  const std::filesystem::path other = files_ / "other";
  std::filesystem::create_directory(other);
  std::filesystem::copy_file(path_, other / "a.webm");
  std::filesystem::last_write_time(other / "a.webm", std::filesystem::last_write_time(path_));
  bytes_to_open();
  {
    const working_directory there(other);
    sync_wait(runs_, open_with_directory("a.webm", directory_));
    EXPECT_EQ(kept().size(), 2U);
  }
  const working_directory here(other.parent_path());
  const auto again = sync_wait(runs_, open_with_directory("other/../a.webm", directory_));
  EXPECT_EQ(again.bytes_read(), 0U);
  EXPECT_EQ(kept().size(), 2U);
}

TEST_F(KeptIndex, RemovesWhatKilledWritersLeft) {
  std::filesystem::create_directory(directory_);
  const auto now = std::filesystem::file_time_type::clock::now();
  const auto leave = [&](const char* name, int hours) {
    const auto path = directory_ + "/" + name;
    std::ofstream(path) << "x";
    std::filesystem::last_write_time(path, now - std::chrono::hours(hours));
  };
  leave("0.lade-video-index.partial-1-2-3", 25);
  leave("1.lade-video-index.partial-1-2-3", 23);
  leave("2.lade-video-index", 25);
  leave("other.partial-1-2-3", 25);
  bytes_to_open();
  std::vector<std::string> left;
  for (const auto& each : kept()) left.push_back(each.filename().string());
  EXPECT_EQ(left.size(), 4U);  // and the index that was written
  EXPECT_THAT(left, testing::Not(testing::Contains("0.lade-video-index.partial-1-2-3")));
}

TEST_F(KeptIndex, ThatIsDamagedIsReplaced) {
  bytes_to_open();
  std::filesystem::resize_file(kept().at(0), 100);
  EXPECT_GE(bytes_to_open(), file_.size());
  EXPECT_EQ(bytes_to_open(), 0U);
}

// The file that was opened is another than that of its name.
TEST_F(KeptIndex, OfAFileThatIsReplacedWhileItIsOpenIsNotThatOfTheNewOne) {
  const auto replace = [](std::string path, std::string other,
                          std::string directory) -> task<video> {
    const auto from = co_await io::open_reader(path);
    std::filesystem::rename(other, path);
    const video_options options{.index_directory = directory};
    co_return co_await video::open(from, options);
  };
  const auto other = files_ / "b.webm";
  std::filesystem::copy_file(path_, other);
  std::filesystem::last_write_time(
      other, std::filesystem::last_write_time(path_) + std::chrono::seconds(1));
  sync_wait(runs_, replace(path_, other, directory_));
  EXPECT_GE(bytes_to_open(), file_.size());
}

TEST_F(KeptIndex, IsNotMadeForReadersThatDoNotReportChanges) {
  const auto from = std::make_shared<const counting_reader>(file_, path_);
  sync_wait(runs_, video::open(from, {.index_directory = directory_}));
  EXPECT_EQ(kept().size(), 0U);
}

TEST_F(KeptIndex, OfADirectoryThatCannotBeCreatedIsAnError) {
  const auto missing = files_ / "no/indexes";
  EXPECT_THAT([&] { sync_wait(runs_, open_with_directory(path_, missing)); },
              testing::ThrowsMessage<error>(testing::HasSubstr(missing)));
}

TEST(Video, AFrameThatHasNotBeenFetchedIsRefused) {
  const auto in = open_recipe("h264.mp4");
  const auto path = in.name();
  const auto from = std::make_shared<const counting_reader>(read_bytes(path), path);
  runtime runs;
  const auto opened = sync_wait(runs, video::open(from));
  EXPECT_THROW(opened.frames(std::vector<std::int64_t>{0}), error);
  EXPECT_THROW(sync_wait(runs, opened.fetch({50})), error);
}

// Packets of MPEG-TS do not lie in one piece: the video has copies of them.
TEST(Video, PacketsThatItKeepsCountToTheBudgetOfTheRun) {
  const auto path = video_path(
      {"large.ts", "-vf scale=356:196,noise=alls=60:allf=t -c:v mpeg2video -q:v 2 -g 12"});
  const auto file = read_bytes(path);
  const auto index = index_video(file, path);
  ASSERT_FALSE(index.has_positions());
  std::uint64_t packets = 0;
  for (const auto& each : index.packets()) packets += each.size;
  ASSERT_GT(packets, 2U << 20);
  const auto kept = [&](auto open) {
    runtime where({.threads = 1});
    std::optional<video> opened;
    for (auto& each :
         where.run(from(std::vector<sample>(1, sample(path).with_data(file))) | map(open)))
      opened = std::move(each);
    const auto bytes = where.memory().stats().used_bytes;
    opened.reset();
    EXPECT_EQ(where.memory().stats().used_bytes, 0U);
    return bytes;
  };
  EXPECT_GE(kept([](const sample& in) { return video(in.data(), in.key()); }), packets);
  EXPECT_GE(kept([index](const sample& in) { return video(in.data(), in.key(), index); }), packets);
}

// Frames are repeated, left out, and shown before earlier ones; edits begin at key frames, and not.
TEST(Video, WithTwoEditsHasTheFramesOfTheFfmpegProgram) {
  int number = 0;
  for (const auto& edits : std::vector<std::vector<video_edit>>{{{25, 0}, {30, 5}},
                                                                {{25, 0}, {20, 12}},
                                                                {{10, 0}, {20, 29}},
                                                                {{10, 0}, {12, 36}},
                                                                {{20, 24}, {20, 0}},
                                                                {{7, 15}, {7, 15}, {20, 15}}}) {
    const auto path = edited_video("edits" + std::to_string(++number) + ".mp4", edits);
    const auto file = read_bytes(path);
    const auto expected = frames_of_ffmpeg(path, "v:0");
    EXPECT_EQ(digests_of(decode(demux(file, path, stream_kind::video))), expected) << path;
    const video opened(file, path);
    ASSERT_EQ(opened.size(), static_cast<std::int64_t>(expected.size())) << path;
    for (std::int64_t i = 0; i < opened.size(); ++i) {
      EXPECT_EQ(opened.index().time(i), expected[static_cast<std::size_t>(i)].time) << path;
      EXPECT_EQ(digest_of(opened.frames(std::vector{i})[0]), expected[static_cast<std::size_t>(i)])
          << path << ", frame " << i;
    }
    std::vector<std::int64_t> all(expected.size());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(digests_of(opened.frames(all)), expected) << path;
    runtime runs;
    const auto remote =
        sync_wait(runs, video::open(std::make_shared<const counting_reader>(file, path)));
    EXPECT_EQ(digests_of(sync_wait(runs, remote.fetch(all)).frames(all)), expected) << path;
  }
}

// The file with a number at four bytes behind a mark, in little-endian order.
static buffer with_number(const buffer& file, std::string_view mark, std::size_t behind,
                          std::uint32_t number) {
  buffer copy(file.size());
  std::copy_n(file.data(), file.size(), copy.data());
  const auto at = file.text().find(mark);
  EXPECT_NE(at, std::string_view::npos);
  std::memcpy(copy.data() + at + behind, &number, sizeof number);
  return copy;
}

// The header of the file (avih) and that of the stream (strh) state how many frames there are, in
// their fields dwTotalFrames and dwLength.
TEST(Video, WhoseHeaderStatesAnotherNumberOfFramesHasThoseThatAreThere) {
  for (const char* name : {"mpeg4.avi", "h264.avi", "mjpeg.avi"}) {
    const auto path = video_path(video_recipe(name));
    const auto expected = frames_of_ffmpeg(path, "v:0");
    ASSERT_EQ(expected.size(), 50U);
    for (const std::uint32_t stated : {7U, 5'000U}) {
      auto file = with_number(read_bytes(path), "avih", 8 + 16, stated);
      file = with_number(file, "strh", 8 + 32, stated);
      const video opened(file, path);
      EXPECT_EQ(opened.stream().stated_frames(), stated) << name;
      EXPECT_EQ(opened.size(), 50) << name;
      const std::vector<std::int64_t> numbers{0, 6, 7, 49};
      const auto frames = opened.frames(numbers);
      for (std::size_t i = 0; i < numbers.size(); ++i)
        EXPECT_EQ(digest_of(frames[i]), expected[static_cast<std::size_t>(numbers[i])])
            << name << ", frame " << numbers[i];
      expect_frames_of_decoding_all(opened, file);
      random draw(1);
      EXPECT_EQ(sample_clip(opened.index(), {.frames = 2, .position = clip_position::spread}, draw),
                (std::vector<std::int64_t>{12, 37}));
    }
  }
}

}  // namespace lade::media::video_test
