#include "../../../cuda/nvdec/known_colours.hpp"

#include "../../../cuda/nvdec/clip_decoder.hpp"
#include "../../../cuda/on_cpu_pool.hpp"

#include <lade/buffer.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coded_videos.hpp"
#include "fake_gpu.hpp"
#include "host_clips.hpp"

namespace lade::cuda::known_colours_test {

using media::media_recipe;

static media::video opened(const buffer& bytes) { return media::video(bytes, "video"); }
static media::video opened(const media_recipe& recipe) {
  return opened(media::read_bytes(media::video_path(recipe)));
}

// Empty if they are refused.
static std::optional<picture_colours> ask(known_colours& known, const media::video& of,
                                          std::int64_t number = 0) {
  try {
    return known.of(of, std::array{number});
  } catch (const error&) {
    return std::nullopt;
  }
}

static std::optional<picture_colours> colours_that_are_not_known(const media::video& of,
                                                                 std::int64_t number = 0) {
  known_colours none({});
  return ask(none, of, number);
}

static std::vector<media_recipe> all_recipes() {
  std::vector<media_recipe> all;
  for (const auto& each : media::video_recipes()) all.push_back(each);
  for (const auto& videos :
       {coloured_videos(), contradictory_videos(), sited_videos(), deep_videos()})
    for (const auto& each : videos) all.push_back(each.recipe);
  return all;
}

TEST(KnownColours, AreThoseOfTheKeyFrame) {
  known_colours known({});
  for (int time = 0; time < 2; ++time)
    for (const auto& recipe : all_recipes()) {
      const auto video = opened(recipe);
      EXPECT_EQ(ask(known, video), colours_that_are_not_known(video)) << recipe;
    }
}

TEST(KnownColours, OfVideosThatDifferInTheirPicturesNeedOneKeyFrame) {
  const std::vector<std::vector<media_recipe>> groups{
      {{"h264.mp4", "-c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p"},
       {"h264-hue.mp4", "-vf hue=h=90 -c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p"},
       {"h264-dark.mp4", "-vf hue=b=-3 -c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p"}},
      {{"h264.ts", "-c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p"},
       {"h264-hue.ts", "-vf hue=h=90 -c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p"}},
      {{"hevc.mp4",
        "-c:v libx265 -x265-params log-level=none:keyint=14:bframes=3 -pix_fmt yuv420p"},
       {"hevc-hue.mp4",
        "-vf hue=h=90 -c:v libx265 -x265-params log-level=none:keyint=14:bframes=3 -pix_fmt "
        "yuv420p"}},
      {{"vp9-plain.webm", "-c:v libvpx-vp9 -g 12 -b:v 200k -cpu-used 8"},
       {"vp9-hue.webm", "-vf hue=h=90 -c:v libvpx-vp9 -g 12 -b:v 200k -cpu-used 8"}},
      {{"av1.mp4", "-c:v libsvtav1 -g 12 -preset 12 -pix_fmt yuv420p"},
       {"av1-hue.mp4", "-vf hue=h=90 -c:v libsvtav1 -g 12 -preset 12 -pix_fmt yuv420p"}},
  };
  for (const auto& videos : groups) {
    known_colours known({});
    for (const auto& recipe : videos) {
      const auto video = opened(recipe);
      for (std::int64_t number = 0; number < video.size(); number += 13)
        EXPECT_TRUE(ask(known, video, number));
    }
    EXPECT_EQ(known.decoded(), 1u) << videos.front();
  }
}

static task<bool> write_clip(detail::clip_decoder& by, sample of) {
  random draw(3, 1);
  const auto chosen = by.open(of, draw);
  const auto& spec = by.cpu().spec();
  const auto on = by.take_stream();
  const device_block memory(by.memory(), spec.bytes(), on);
  const tensor into(spec, memory.slice(0, spec.bytes()));
  const bool by_gpu = co_await by.write(chosen.first, chosen.second, draw, into, on);
  by.give_back(on);
  co_return by_gpu;
}

TEST(KnownColours, AreThoseOfAllClipsOfADecoder) {
  fake_gpu gpu;
  const fake_kernels kernels;
  runtime runtime({.threads = 2});
  detail::clip_decoder decoder({.sampling = {.frames = 2}, .width = 32, .height = 24}, {});
  for (int clip = 0; clip < 3; ++clip)
    EXPECT_TRUE(sync_wait(runtime, on_cpu_pool(write_clip(decoder, sample_of("h264.mp4")))));
  EXPECT_EQ(decoder.key_frames_for_colours(), 1u);
}

TEST(KnownColours, OfVideosThatDifferInStatedColoursDiffer) {
  known_colours known({});
  std::vector<picture_colours> colours;
  for (const auto& video : coloured_videos())
    if (const auto found = ask(known, opened(video.recipe))) colours.push_back(*found);
  ASSERT_EQ(colours.size(), coloured_videos().size());
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(colours[i], colours[k]) << i << " and " << k;
}

TEST(KnownColours, OfContainersThatDifferInTheirMatrixDiffer) {
#define LADE_IN_MATRIX(matrix) \
  "-i {} -c copy -color_primaries bt709 -color_trc bt709 -colorspace " matrix
  known_colours known({});
  const auto in_2020 =
      ask(known, opened({"h264-in-matrix-2020.mp4", LADE_IN_MATRIX("bt2020nc"), "h264.mp4"}));
  const auto in_601 =
      ask(known, opened({"h264-in-matrix-601.mp4", LADE_IN_MATRIX("smpte170m"), "h264.mp4"}));
#undef LADE_IN_MATRIX
  ASSERT_TRUE(in_2020 && in_601);
  EXPECT_NE(*in_2020, *in_601);
}

TEST(KnownColours, OtherCodecsDecodeEachKeyFrame) {
  for (const auto* file : {"vp8.webm", "mpeg2.mkv"}) {
    known_colours known({});
    const auto video = opened(media::video_recipe(file));
    for (int time = 0; time < 3; ++time) EXPECT_TRUE(ask(known, video));
    EXPECT_EQ(known.decoded(), 3u);
  }
}

// From its start code on.
static std::vector<std::byte> sequence_set_of(const buffer& file) {
  constexpr std::array begins{std::byte{0}, std::byte{0}, std::byte{1}, std::byte{0x67}};
  constexpr std::array ends{std::byte{0}, std::byte{0}, std::byte{1}, std::byte{0x68}};
  const auto bytes = file.bytes();
  const auto first = std::search(bytes.begin(), bytes.end(), begins.begin(), begins.end());
  return {first, std::search(first, bytes.end(), ends.begin(), ends.end())};
}

// The same video, whose later groups of pictures state other colours in headers of the same size.
TEST(KnownColours, ThatChangeOnTheWayAreThoseOfEachKeyFrame) {
#define LADE_RANGE(full) \
  "-c:v libx264 -g 12 -bf 0 -x264-params colormatrix=bt709:fullrange=" full " -pix_fmt yuv420p"
  const auto file = media::read_bytes(media::video_path({"h264-off.ts", LADE_RANGE("off")}));
  const auto from = sequence_set_of(file);
  const auto to =
      sequence_set_of(media::read_bytes(media::video_path({"h264-on.ts", LADE_RANGE("on")})));
#undef LADE_RANGE
  ASSERT_EQ(from.size(), to.size());
  ASSERT_NE(from, to);
  const auto all = file.bytes();
  auto at = std::search(all.begin(), all.end(), from.begin(), from.end()) + 1;
  at = std::search(at, all.end(), from.begin(), from.end());
  ASSERT_NE(at, all.end());
  std::ranges::copy(to, at);
  const auto video = opened(file);
  known_colours known({});
  for (const std::int64_t number : {0, 12, 24}) {
    const auto found = ask(known, video, number);
    EXPECT_EQ(found, colours_that_are_not_known(video, number));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->full_range, number == 12);
  }
}

}  // namespace lade::cuda::known_colours_test
