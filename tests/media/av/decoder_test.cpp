#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>

#include "../../support/seed.hpp"
#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/frame.h>
}

namespace lade::media::decoder_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

// The packets of a video without one, which others refer to.
static packets without_packet(const packets& of, std::size_t missing) {
  std::vector<packet> rest;
  for (std::size_t i = 0; i < of.size(); ++i)
    if (i != missing) rest.push_back(of[i]);
  return packets(of.stream(), std::move(rest), of.window());
}

TEST(Decoder, WithoutAPictureToWhichOthersReferIsAnErrorOrCounted) {
  for (const char* name : {"h264.mp4", "hevc.mp4"}) {
    const auto path = video_path(video_recipe(name));
    const auto all = demux(read_bytes(path), path, stream_kind::video);
    const auto cut = without_packet(all, 1);  // a P-picture, behind the key frame
    EXPECT_THROW(decode(cut), error) << name;
    std::uint64_t damaged = 0;
    EXPECT_GT(decode(cut, {.damage = damage_policy::tolerate}, &damaged).size(), 30U) << name;
    EXPECT_GT(damaged, 0U) << name;
  }
}

TEST(Decoder, EndsBetweenTwoPacketsWhenItsRunIsStopped) {
  const auto path = video_path(video_recipe("h264.mp4"));
  const auto all = demux(read_bytes(path), path, stream_kind::video);
  EXPECT_EQ(error_in_a_stopped_stage([&] { decode(all); }), errc::stopped);
}

static std::vector<frame_digest> digests_of(const std::vector<frame>& frames) {
  std::vector<frame_digest> digests;
  for (const auto& each : frames) digests.push_back(digest_of(each));
  return digests;
}

class DecodeVideo : public testing::TestWithParam<media_recipe> {};

TEST_P(DecodeVideo, EqualsTheFramesOfTheFfmpegProgram) {
  const auto path = video_path(GetParam());
  const auto packets = demux(read_bytes(path), path, stream_kind::video);
  const auto frames = decode(packets);
  const auto expected = frames_of_ffmpeg(path, "v:0");
  ASSERT_GT(expected.size(), 15U);
  EXPECT_EQ(digests_of(frames), expected);
}

TEST_P(DecodeVideo, WithSeveralThreadsHasTheSameFrames) {
  const auto path = video_path(GetParam());
  const auto packets = demux(read_bytes(path), path, stream_kind::video);
  EXPECT_EQ(digests_of(decode(packets, {.threads = 4})), digests_of(decode(packets)));
}

TEST_P(DecodeVideo, OfTheSamePacketsAgainHasTheSameFrames) {
  const auto path = video_path(GetParam());
  const auto packets = demux(read_bytes(path), path, stream_kind::video);
  const auto first = digests_of(decode(packets));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(digests_of(decode(packets)), first);
}

TEST_P(DecodeVideo, OfAWindowEqualsThoseFramesOfTheWhole) {
  const auto path = video_path(GetParam());
  const auto file = read_bytes(path);
  const auto all = digests_of(decode(demux(file, path, stream_kind::video)));
  for (std::size_t first = 0; first < all.size(); first += 7) {
    const auto last = std::min(first + 5, all.size() - 1);
    const time_window window{.begin = all[first].time, .end = all[last].time};
    std::vector<frame_digest> expected;
    for (const auto& each : all)
      if (window.contains(*each.time)) expected.push_back(each);
    EXPECT_EQ(digests_of(decode(demux(file, path, stream_kind::video, window))), expected)
        << "frames from " << first;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, DecodeVideo, testing::ValuesIn(video_recipes()), name_of_recipe);

// The last two thirds of a recording, from a packet of MPEG-TS on: the parameter sets come with the
// first key frame.
static std::string cut_recording(const char* from) {
  const std::string whole = media_directory / "whole.ts";
  media_files::run("-i " + video_path(video_recipe(from)) + " -c copy " + whole);
  const auto file = read_bytes(whole);
  constexpr std::size_t packet_bytes = 188;
  const auto first = file.size() / packet_bytes / 3 * packet_bytes;
  std::string path = media_directory / (std::string(from) + ".cut.ts");
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data() + first),
             static_cast<std::streamsize>(file.size() - first));
  return path;
}

TEST(DecodeVideo, OfARecordingThatBeginsInTheMiddleIsTheSameEachTime) {
  for (const char* from : {"h264.mp4", "h264-open-gop.mp4", "hevc.mp4"}) {
    const auto path = cut_recording(from);
    const auto packets = demux(read_bytes(path), path, stream_kind::video);
    const auto expected = frames_of_ffmpeg(path, "v:0");
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(digests_of(decode(packets, {.damage = damage_policy::tolerate})), expected) << from;
  }
}

// From FFmpeg 6.1 on, frames have the side data of their streams, which a decoder keeps.
// Whether a plane of u8 is that part of another one which begins at a row and a column of it.
static bool is_part_of(const tensor& part, const tensor& whole, std::int64_t row,
                       std::int64_t column) {
  const auto begins = [](const tensor& of, std::int64_t y, std::int64_t x) {
    return of.bytes() + y * of.strides()[0] + x;
  };
  for (std::int64_t y = 0; y < part.shape()[0]; ++y)
    if (std::memcmp(begins(part, y, 0), begins(whole, row + y, column),
                    static_cast<std::size_t>(part.shape()[1])) != 0)
      return false;
  return true;
}

// The same coded pictures, of which less is shown: the first column is none that processors like
// memory to be aligned to.
TEST(DecodeVideo, OfADisplayRectangleHasTheSamplesInsideOfIt) {
  const media_recipe recipe{
      "h264-offset.mp4",
      "-i {} -c copy -bsf:v h264_metadata=crop_left=6:crop_right=14:crop_top=4:crop_bottom=14",
      "h264.mp4"};
  const auto frames_of = [](const media_recipe& of) {
    const auto path = video_path(of);
    return decode(demux(read_bytes(path), path, stream_kind::video));
  };
  const auto shown = frames_of(recipe);
  const auto whole = frames_of(video_recipe("h264.mp4"));
  ASSERT_EQ(shown.size(), whole.size());
  for (std::size_t i = 0; i < shown.size(); ++i) {
    ASSERT_EQ(shown[i].width(), 172) << i;
    ASSERT_EQ(shown[i].height(), 94) << i;
    EXPECT_TRUE(is_part_of(shown[i].plane(0), whole[i].plane(0), 4, 6)) << i;
    for (const int chroma : {1, 2})
      EXPECT_TRUE(is_part_of(shown[i].plane(chroma), whole[i].plane(chroma), 2, 3)) << i;
  }
}

TEST(DecodeVideo, FramesHaveNoOrientationOfAFileThatWasDecodedBefore) {
  const auto upright = video_path(video_recipe("h264.mp4"));
  const auto turned = media_directory / "turned.mp4";
  std::string copy = turned_copy;
  media_files::run(copy.replace(copy.find("{}"), 2, upright) + " " + turned);
  for (const auto& path : {turned, upright})
    for (const auto& each : decode(demux(read_bytes(path), path, stream_kind::video)))
      EXPECT_FALSE(path == upright &&
                   av_frame_get_side_data(&each.get(), AV_FRAME_DATA_DISPLAYMATRIX) != nullptr);
}

TEST(DecodeVideo, KeepsItsOptionsWhereADecoderIsUsedAgain) {
  const auto path = video_path(video_recipe("h264.mp4"));
  const auto packets = demux(read_bytes(path), path, stream_kind::video);
  std::size_t keys = 0;
  for (const auto& each : packets) keys += each.is_key();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(decode(packets, {.options = "skip_frame=nokey"}).size(), keys);
    EXPECT_EQ(decode(packets).size(), 50U);
  }
}

TEST(DecodeVideo, AnOptionThatTheDecoderDoesNotHaveIsRefusedByItsName) {
  const auto path = video_path(video_recipe("h264.mp4"));
  const auto packets = demux(read_bytes(path), path, stream_kind::video);
  for (const char* options : {"no_such_option=1", "skip_frame=nokey:no_such_option=1"}) {
    try {
      decode(packets, {.options = options});
      ADD_FAILURE() << "it decodes with " << options;
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::invalid_argument);
      EXPECT_THAT(refused.what(), HasSubstr("no_such_option"));
    }
  }
}

// FFmpeg chooses built-in decoders for these codecs by default.
TEST(DecodeVideo, ByADecoderThatIsNamedHasTheSameFrames) {
  int decoders = 0;
  for (const auto& [file, name] : {std::pair("vp8.webm", "libvpx"), {"vp9.webm", "libvpx-vp9"}}) {
    if (avcodec_find_decoder_by_name(name) == nullptr) continue;
    const auto path = video_path(video_recipe(file));
    const auto packets = demux(read_bytes(path), path, stream_kind::video);
    const auto named = decode(packets, {.decoder = name});
    EXPECT_EQ(digests_of(named), digests_of(decode(packets))) << name;
    ++decoders;
  }
  if (decoders == 0) GTEST_SKIP() << "FFmpeg has no decoder of libvpx";
}

TEST(DecodeVideo, OfMorePixelsThanAreAllowedIsRefusedEachTime) {
  for (const char* file : {"h264.mp4", "vp9.webm", "mpeg4.avi"}) {
    const auto path = video_path(video_recipe(file));
    const auto packets = demux(read_bytes(path), path, stream_kind::video);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(decode(packets).size(), 50U) << file;
      EXPECT_THROW(decode(packets, {.max_pixels = 97 * 178}), error) << file;
    }
  }
}

TEST(DecodeVideo, ByADecoderOfAnotherCodecIsRefused) {
  const auto path = video_path(video_recipe("h264.mp4"));
  const auto packets = demux(read_bytes(path), path, stream_kind::video);
  EXPECT_THROW(decode(packets, {.decoder = "mpeg2video"}), error);
}

// Every window of a stream has the frames of the whole whose time is in it.
static void expect_windows_of_all(const std::string& path, int windows) {
  const auto file = read_bytes(path);
  const auto all = digests_of(decode(demux(file, path, stream_kind::video)));
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < windows; ++i) {
    const rational begin(static_cast<std::int64_t>(random() % 4'000), 1'000);
    const time_window window{
        .begin = begin, .end = begin + rational(static_cast<std::int64_t>(random() % 900), 1'000)};
    std::vector<frame_digest> expected;
    for (const auto& each : all)
      if (each.time && window.contains(*each.time)) expected.push_back(each);
    std::vector<frame_digest> timed;
    for (auto& each : digests_of(decode(demux(file, path, stream_kind::video, window))))
      if (each.time) timed.push_back(std::move(each));
    EXPECT_EQ(timed, expected) << path << ", from " << to_string(*window.begin) << " to "
                               << to_string(*window.end);
  }
}

TEST(DecodeVideo, OfRandomWindowsOfAVideoThatIsRefreshedPartByPartEqualsThoseFramesOfTheWhole) {
  for (const auto& recipe : refreshed_recipes()) expect_windows_of_all(video_path(recipe), 30);
}

// NUT states no decoding times.
TEST(DecodeVideo, OfRandomWindowsOfNutEqualsThoseFramesOfTheWhole) {
  expect_windows_of_all(video_path({"b.nut", "-c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p"}), 60);
}

TEST_P(DecodeVideo, OfRandomWindowsEqualsThoseFramesOfTheWhole) {
  expect_windows_of_all(video_path(GetParam()), 30);
}

TEST(DecodeVideo, OfWindowsOfOpenGroupsOfPicturesHasAllFrames) {
  for (const char* name : {"open.ts", "open.mkv"}) {
    const std::string path = media_directory / name;
    media_files::run("-i " + video_path(video_recipe("h264-open-gop.mp4")) + " -c copy " + path);
    expect_windows_of_all(path, 60);
  }
}

TEST(DecodeVideo, OfWindowsOfFilesThatStateDecodingTimesOnlyHasAllFrames) {
  for (const char* name : {"mpeg4-b.avi", "h264-b.avi"})
    for (const auto& recipe : untimed_recipes())
      if (std::string_view(recipe.file) == name) expect_windows_of_all(video_path(recipe), 60);
}

TEST(DecodeVideo, OfWindowsOfTwoEditsHasAllFrames) {
  expect_windows_of_all(edited_video("repeated.mp4", {{25, 0}, {30, 5}}), 20);
  expect_windows_of_all(edited_video("skipped.mp4", {{10, 0}, {20, 29}}), 20);
  expect_windows_of_all(edited_video("swapped.mp4", {{20, 24}, {20, 0}}), 20);
}

// Image files are videos of one frame, or more.
TEST(DecodeVideo, OfImageFilesEqualsTheFramesOfTheFfmpegProgram) {
  for (const auto& recipe : {media_recipe{"image.png", "-frames:v 1"},
                             {"image.jpg", "-frames:v 1"},
                             {"image.webp", "-frames:v 1 -c:v libwebp"},
                             {"lossless.webp", "-frames:v 1 -c:v libwebp -lossless 1"},
                             {"grey.png", "-frames:v 1 -pix_fmt gray16be"},
                             {"image.bmp", "-frames:v 1"},
                             {"image.tiff", "-frames:v 1"},
                             {"image.gif", "-frames:v 3"}}) {
    const auto path = video_path(recipe);
    const auto frames = decode(demux(read_bytes(path), path, stream_kind::video));
    const auto expected = frames_of_ffmpeg(path, "v:0");
    ASSERT_FALSE(expected.empty()) << recipe;
    EXPECT_EQ(digests_of(frames), expected) << recipe;
  }
}

// FFmpeg's decoder of TIFF continues after damage, as it does after unknown tags.
TEST(DecodeVideo, OfADamagedTiffIsRefusedOrCounted) {
  for (const char* compression : {"packbits", "lzw", "deflate"}) {
    const std::string path = media_directory / (std::string(compression) + ".tiff");
    media_files::run(std::string(moving) + " -frames:v 1 -compression_algo " + compression + " " +
                     path);
    const auto file = read_bytes(path);
    EXPECT_EQ(decode(demux(file, path, stream_kind::video)).size(), 1U) << compression;
    std::memset(file.data() + file.size() / 4, 0xff, file.size() / 4);
    const auto damaged = demux(file, path, stream_kind::video);
    for (const int threads : {1, 2})
      EXPECT_THROW(decode(damaged, {.threads = threads}), error) << compression;
    std::uint64_t count = 0;
    decode(damaged, {.damage = damage_policy::tolerate}, &count);
    EXPECT_GE(count, 1U) << compression;
  }
}

TEST(DecodeVideo, AWindowWhoseTimesRepeatIsRefusedOrHasBothParts) {
  const auto path = joined_recordings();
  const auto file = read_bytes(path);
  const auto all = decode(demux(file, path, stream_kind::video));
  const time_window window{.begin = all[20].time(), .end = all[30].time()};
  EXPECT_THAT([&] { demux(file, path, stream_kind::video, window); },
              ThrowsMessage<error>(HasSubstr("its times go back from")));
  const auto part =
      decode(demux(file, path, stream_kind::video, window, {.damage = damage_policy::tolerate}));
  std::size_t expected = 0;
  for (const auto& each : all) expected += window.contains(*each.time());
  EXPECT_EQ(part.size(), expected);
}

TEST(DecodeVideo, OfAWindowOfAFileWhoseTimesAreTrustedReadsNoMoreThanItNeeds) {
  const std::string path = media_directory / "long.ts";
  media_files::run(
      "-f lavfi -i testsrc2=size=178x98:rate=25:duration=20 -c:v mpeg2video -q:v 2 -g 12 " + path);
  const auto file = read_bytes(path);
  std::vector<std::vector<frame_digest>> windows;
  std::vector<std::uint64_t> bytes;
  for (const bool trust : {false, true}) {
    demuxer opened(file, path, {.trust_times = trust});
    const auto start = opened.bytes_read();
    const auto begin = *opened.best(stream_kind::video).start_time();
    auto read = opened.read(opened.best(stream_kind::video).index(),
                            {.begin = begin, .end = begin + rational(1, 5)});
    runtime runs;
    windows.push_back(digests_of(decode(sync_wait(runs, std::move(read)))));
    bytes.push_back(opened.bytes_read() - start);
  }
  EXPECT_EQ(windows[0].size(), 5U);
  EXPECT_EQ(windows[1], windows[0]);
  EXPECT_GE(bytes[0], file.size());
  EXPECT_LT(bytes[1], file.size() / 2);
}

// The parts are not noticed: the window is that of the first place.
TEST(DecodeVideo, OfAWindowWhoseTimesAreTrustedIsNotLookedForInASecondPlace) {
  const auto path = joined_recordings();
  const auto file = read_bytes(path);
  const auto all = decode(demux(file, path, stream_kind::video));
  const time_window window{.begin = all[20].time(), .end = all[30].time()};
  const auto part = demux(file, path, stream_kind::video, window, {.trust_times = true});
  const std::vector<frame> expected(all.begin() + 20, all.begin() + 30);
  EXPECT_EQ(digests_of(decode(part)), digests_of(expected));
}

static std::vector<float> interleaved(const std::vector<frame>& frames) {
  std::vector<float> samples;
  for (const auto& each : frames) {
    const bool planar = each.planes() == each.channels() && each.planes() > 1;
    for (int i = 0; i < each.samples(); ++i)
      for (int c = 0; c < each.channels(); ++c) {
        const auto plane = each.plane(planar ? c : 0);
        const auto at = planar ? i : i * each.channels() + c;
        switch (plane.type()) {
          case element_type::i16:
            samples.push_back(static_cast<float>(plane.data<std::int16_t>()[at]) / 0x1p15F);
            break;
          case element_type::i32:
            samples.push_back(static_cast<float>(plane.data<std::int32_t>()[at] * 0x1p-31));
            break;
          default: samples.push_back(plane.data<float>()[at]);
        }
      }
  }
  return samples;
}

class DecodeAudio : public testing::TestWithParam<media_recipe> {};

TEST_P(DecodeAudio, EqualsTheSamplesOfTheFfmpegProgram) {
  const auto path = audio_path(GetParam());
  const auto frames = decode(demux(read_bytes(path), path, stream_kind::audio));
  EXPECT_EQ(interleaved(frames), samples_of_ffmpeg(path));
}

TEST_P(DecodeAudio, OfAFileAgainHasTheSameSamples) {
  const auto path = audio_path(GetParam());
  const auto packets = demux(read_bytes(path), path, stream_kind::audio);
  const auto first = interleaved(decode(packets));
  EXPECT_EQ(interleaved(decode(packets)), first);
}

static float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float worst = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

// Decoders whose state after a quarter of a second still depends on what came before.
static float tolerance_of(std::string_view file) {
  return file.starts_with("aac") ? 2e-5F : file.starts_with("opus") ? 3e-3F : 0;
}

TEST_P(DecodeAudio, OfAWindowHasThoseSamplesOfTheWhole) {
  const auto path = audio_path(GetParam());
  const auto file = read_bytes(path);
  const auto all = decode(demux(file, path, stream_kind::audio));
  ASSERT_FALSE(all.empty());
  const auto whole = interleaved(all);
  const int rate = all[0].sample_rate();
  // Times in Matroska are rounded, that before 0 of an encoder's padding as well.
  auto start = *all[0].time();
  if (start < 0) start = rational(-all[0].stream().parameters().initial_padding, rate);
  for (const int first : {0, 1, 4000, 22'050, 60'000}) {
    const time_window window{.begin = start + rational(first, rate),
                             .end = start + rational(first + 3'001, rate)};
    const auto part = interleaved(decode(demux(file, path, stream_kind::audio, window)));
    const std::vector<float> expected(whole.begin() + 2 * first,
                                      whole.begin() + 2 * (first + 3'001));
    EXPECT_EQ(part.size(), expected.size()) << "samples from " << first;
    EXPECT_LE(largest_difference(part, expected), tolerance_of(GetParam().file))
        << "samples from " << first;
  }
}

// The packets of a video with another version of the one that is shown at a time.
template <class F>
static packets with_changed_packet(const packets& from, const rational& time, const F& change) {
  std::vector<packet> all;
  for (const auto& each : from) {
    av_packet copy(av_packet_clone(&each.get()));
    if (rational(*each.pts()) * from.stream().time_base() == time) {
      EXPECT_GE(av_packet_make_writable(copy.get()), 0);
      change(*copy);
    }
    all.emplace_back(std::move(copy));
  }
  return {from.stream(), std::move(all), from.window()};
}

static packets packets_of_h264() {
  const auto path = video_path(video_recipe("h264.mp4"));
  return demux(read_bytes(path), path, stream_kind::video);
}

TEST(DecodeVideo, OfADamagedPacketThatIsRefusedNamesTheTime) {
  const auto damaged = with_changed_packet(packets_of_h264(), rational(6, 5), [](AVPacket& of) {
    std::memset(of.data, 0xff, static_cast<std::size_t>(of.size));
  });
  EXPECT_THAT([&] { decode(damaged); }, ThrowsMessage<error>(HasSubstr("at 1.2 s")));
}

TEST(DecodeVideo, OfADamagedPacketIsRefusedBySeveralThreads) {
  for (const char* file : {"mpeg4.avi", "mpeg4-b.mp4"}) {
    const auto path = video_path(video_recipe(file));
    const auto damaged = with_changed_packet(
        demux(read_bytes(path), path, stream_kind::video), rational(6, 5), [](AVPacket& of) {
          const auto half = of.size / 2;  // the picture's header stays
          std::memset(of.data + half, 0x55, static_cast<std::size_t>(of.size - half));
        });
    EXPECT_THROW(decode(damaged, {.threads = 2}), error) << file;
    std::uint64_t count = 0;
    EXPECT_GE(decode(damaged, {.threads = 2, .damage = damage_policy::tolerate}, &count).size(),
              49U)
        << file;
    EXPECT_GE(count, 1U) << file;
    EXPECT_THROW(decode(damaged, {.options = "threads=2"}), error) << file;
  }
}

TEST(DecodeVideo, OfAPacketThatIsFlaggedAsDamagedIsRefusedOrCounted) {
  const auto flagged = with_changed_packet(packets_of_h264(), rational(6, 5),
                                           [](AVPacket& of) { of.flags |= AV_PKT_FLAG_CORRUPT; });
  EXPECT_THAT([&] { decode(flagged); },
              ThrowsMessage<error>(AllOf(HasSubstr("at 1.2 s"), HasSubstr("is incomplete"))));
  std::uint64_t damaged = 0;
  EXPECT_EQ(decode(flagged, {.damage = damage_policy::tolerate}, &damaged).size(), flagged.size());
  EXPECT_EQ(damaged, 1U);
}

TEST(Decoder, OfSubtitlesIsRefused) {
  const auto texts = media_directory / "texts.srt";
  std::ofstream(texts) << "1\n00:00:00,000 --> 00:00:01,000\ntext\n";
  const auto path = media_directory / "texts.mkv";
  media_files::run("-i " + std::string(texts) + " -c:s srt " + std::string(path));
  const auto packets = demux(read_bytes(path), "texts.mkv", stream_kind::subtitle);
  ASSERT_EQ(packets.size(), 1U);
  try {
    decode(packets);
    FAIL() << "it decodes subtitles";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::unsupported);
  }
}

// A stage's function that holds all frames of a video at once.
struct hold_frames {
  int threads = 1;

  std::size_t operator()(const sample& video) const {
    const auto packets = demux(video.data(), "video", stream_kind::video);
    return decode(packets, {.threads = threads}).size();
  }
};

class FrameMemory : public testing::TestWithParam<int> {};

TEST_P(FrameMemory, CountsToTheBudgetOfTheRunWhoseStageDecodes) {
  const auto file = read_bytes(video_path(video_recipe("h264.mp4")));
  const auto frames = decode(demux(file, "video", stream_kind::video));
  const auto picture_bytes = static_cast<std::size_t>(frames[0].width()) *
                             static_cast<std::size_t>(frames[0].height()) * 3 / 2;
  runtime where({.threads = 2});
  const auto counts = from(std::vector<sample>(4, sample("video").with_data(file))) |
                      map(hold_frames{GetParam()}, {.concurrency = 1});
  for (const auto count : where.run(counts)) EXPECT_EQ(count, frames.size());
  const auto used = where.memory().stats();
  EXPECT_GE(used.peak_bytes, file.size() + frames.size() * picture_bytes);
  EXPECT_LE(used.peak_bytes, 8 * (file.size() + frames.size() * picture_bytes));
  EXPECT_EQ(where.memory().stats().used_bytes, 0U);
}

INSTANTIATE_TEST_SUITE_P(Threads, FrameMemory, testing::Values(1, 2));

INSTANTIATE_TEST_SUITE_P(Files, DecodeAudio, testing::ValuesIn(audio_recipes()), name_of_recipe);

}  // namespace lade::media::decoder_test
