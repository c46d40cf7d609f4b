#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>

#include "media_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

extern "C" {
#include <libavcodec/codec_par.h>
#include <libavutil/frame.h>
}

namespace lade::media {

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

INSTANTIATE_TEST_SUITE_P(Files, DecodeAudio, testing::ValuesIn(audio_recipes()), name_of_recipe);

}  // namespace lade::media
