#include <lade/error.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/frame.hpp>

#include "../../../media/av/window_cutter.hpp"
#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

extern "C" {
#include <libavutil/frame.h>
}

namespace lade::media::frame_test {

static std::vector<frame> frames_of(std::string_view file, stream_kind kind) {
  const auto all = kind == stream_kind::video ? video_recipes() : audio_recipes();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.file == file; });
  const auto path = kind == stream_kind::video ? video_path(*found) : audio_path(*found);
  return decode(demux(read_bytes(path), path, kind));
}

static std::vector<frame> pictures(std::string_view file) {
  return frames_of(file, stream_kind::video);
}

TEST(Frame, OfVideoKnowsItsTimeAndKind) {
  const auto frames = pictures("h264.mp4");
  EXPECT_EQ(frames[0].kind(), stream_kind::video);
  EXPECT_EQ(frames[5].time(), rational(1, 5));
  EXPECT_EQ(frames[5].duration(), rational(1, 25));
  EXPECT_TRUE(frames[0].is_key());
  EXPECT_EQ(frames[0].picture_type(), 'I');
  EXPECT_FALSE(frames[1].is_key());
  EXPECT_EQ(frames[0].pixel_format(), "yuv420p");
  EXPECT_EQ(frames[0].sample_aspect(), rational(1));
  EXPECT_FALSE(frames[0].is_interlaced());
  EXPECT_TRUE(pictures("h264-interlaced.mp4")[0].is_interlaced());
}

TEST(Frame, OfVideoKnowsItsColours) {
  const auto path = video_path({"colours.mp4",
                                "-frames:v 1 -c:v libx264 -pix_fmt yuv420p -x264-params "
                                "colormatrix=bt709:colorprim=bt470m:transfer=log100:fullrange=on"});
  const auto frames = decode(demux(read_bytes(path), path, stream_kind::video));
  const auto colour = frames.at(0).colour();
  EXPECT_EQ(colour.matrix, "bt709");
  EXPECT_EQ(colour.primaries, "bt470m");
  EXPECT_EQ(colour.transfer, "log100");
  EXPECT_EQ(colour.range, "pc");
  const auto untagged = pictures("h264.mp4")[0].colour();
  EXPECT_EQ(untagged.primaries, "unknown");
  EXPECT_EQ(untagged.transfer, "unknown");
}

// The same frame at another time of a stream that has this name.
static frame frame_at(const frame& of, std::int64_t pts, const rational& time_base) {
  av_frame moved(check_av(av_frame_clone(&of.get())));
  moved->pts = pts;
  return {std::move(moved), stream_info::of_frames("crafted.mp4", of.kind(), time_base)};
}

template <class Call>
static void expect_named_limit(Call call) {
  try {
    call();
    ADD_FAILURE();
  } catch (const error& thrown) {
    EXPECT_EQ(thrown.code(), errc::limit_exceeded);
    EXPECT_THAT(thrown.what(), testing::HasSubstr("crafted.mp4"));
  }
}

TEST(Frame, TimesThatDoNotFitAreErrorsThatNameTheStream) {
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  const auto picture = frame_at(pictures("h264.mp4")[0], largest, 7);
  expect_named_limit([&] { (void)picture.time(); });
  const auto sound = frame_at(frames_of("aac.m4a", stream_kind::audio)[0], largest, rational(1, 2));
  EXPECT_EQ(sound.time(), rational(largest, 2));
  expect_named_limit([&] { (void)sound.slice(1, 1); });
  std::vector<frame> inside;
  expect_named_limit([&] { window_cutter({.begin = 1}).append(frame(sound), inside); });
}

TEST(Frame, PlanesAreViewsOfThePicture) {
  const auto one = pictures("h264.mp4")[0];
  EXPECT_EQ(one.planes(), 3);
  EXPECT_EQ(one.plane(0).shape(), (dimensions{98, 178}));
  EXPECT_EQ(one.plane(1).shape(), (dimensions{49, 89}));
  EXPECT_EQ(one.plane(0).type(), element_type::u8);
  EXPECT_EQ(static_cast<const void*>(one.plane(0).bytes()),
            static_cast<const void*>(one.get().data[0]));
  EXPECT_THROW((void)one.plane(3), error);
}

TEST(Frame, PlanesOfDeepSamplesAreWords) {
  const auto one = pictures("h264-422-10.mkv")[0];
  EXPECT_EQ(one.plane(1).type(), element_type::u16);
  EXPECT_EQ(one.plane(1).shape(), (dimensions{98, 89}));
}

TEST(Frame, AViewKeepsTheMemoryOfItsFrame) {
  tensor plane;
  std::uint8_t first = 0;
  {
    const auto frames = pictures("h264.mp4");
    plane = frames[0].plane(0);
    first = *plane.data<std::uint8_t>();
  }
  EXPECT_EQ(*plane.data<std::uint8_t>(), first);
}

TEST(Frame, ACloneIsADeepCopy) {
  const auto one = pictures("vp9.webm")[3];
  const auto copy = one.clone();
  EXPECT_EQ(digest_of(copy), digest_of(one));
  EXPECT_NE(copy.get().data[0], one.get().data[0]);
}

TEST(Frame, OfAudioHasAPlaneForEachChannelOrOneForAll) {
  const auto planar = frames_of("aac.m4a", stream_kind::audio)[0];
  EXPECT_EQ(planar.kind(), stream_kind::audio);
  EXPECT_EQ(planar.sample_rate(), 44'100);
  EXPECT_EQ(planar.channels(), 2);
  EXPECT_EQ(planar.planes(), 2);
  EXPECT_EQ(planar.plane(1).shape(), (dimensions{planar.samples()}));
  const auto packed = frames_of("pcm.wav", stream_kind::audio)[0];
  EXPECT_EQ(packed.planes(), 1);
  EXPECT_EQ(packed.plane(0).shape(), (dimensions{packed.samples(), 2}));
  EXPECT_EQ(packed.plane(0).type(), element_type::i16);
}

TEST(Frame, ASliceOfAudioSharesTheMemoryAndHasAShiftedTime) {
  const auto whole = frames_of("flac.flac", stream_kind::audio)[1];
  const auto part = whole.slice(100, 50);
  EXPECT_EQ(part.samples(), 50);
  EXPECT_EQ(*part.time(), *whole.time() + rational(100, 44'100));
  EXPECT_EQ(part.duration(), rational(50, 44'100));
  EXPECT_EQ(part.plane(0).bytes(), whole.plane(0).slice(100, 101).bytes());
  EXPECT_THROW((void)whole.slice(0, whole.samples() + 1), error);
  EXPECT_THROW((void)whole.slice(-1, 1), error);
}

TEST(Frame, APictureHasNoSlices) { EXPECT_THROW((void)pictures("h264.mp4")[0].slice(0, 1), error); }

}  // namespace lade::media::frame_test
