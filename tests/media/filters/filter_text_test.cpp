#include "filtered_frames.hpp"

#include <lade/error.hpp>
#include <lade/media/filters/filter_graph.hpp>
#include <lade/media/filters/filter_text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace lade::media::filter_text_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(FilterText, FiltersAreJoinedByCommas) {
  EXPECT_EQ(filter_chain({"hflip", "", rate_filter(rational(30'000, 1001))}),
            "hflip,fps=30000/1001");
  EXPECT_EQ(filter_chain({}), "");
}

TEST(FilterText, WindowsAreInMicroseconds) {
  EXPECT_EQ(trim_filter({.begin = rational(1, 2), .end = rational(3)}),
            "trim=start=500000us:end=3000000us,setpts=PTS-STARTPTS");
  EXPECT_EQ(audio_trim_filter({.end = rational(1)}), "atrim=end=1000000us,asetpts=PTS-STARTPTS");
}

TEST(FilterText, ValuesThatCannotWorkAreRefused) {
  const auto refused = [](auto make, const char* why) {
    EXPECT_THAT([&] { make(); }, ThrowsMessage<error>(HasSubstr(why)));
  };
  refused([] { rate_filter(0); }, "1/1000000 to 1000000");
  refused([] { scale_filter({.width = 0, .height = 8}); }, "1 to 32768");
  refused([] { crop_filter({.x = -1, .y = 0, .width = 8, .height = 8}); }, "below 0");
  refused([] { trim_filter({.begin = 3, .end = 1}); }, "ends before it begins");
  refused([] { audio_trim_filter({.begin = 3, .end = 1}); }, "ends before it begins");
  refused([] { pixel_format_filter("rgb24,movie=a.mp4"); }, "a name of FFmpeg");
  refused([] { channel_layout_filter(""); }, "a name of FFmpeg");
  refused([] { frame_count_filter(0); }, "above 0");
  refused([] { sample_count_filter(-1); }, "above 0");
  refused([] { sample_rate_filter(0); }, "above 0");
  refused([] { scale_filter({.width = 8, .height = 8, .fit = scale_fit{3}}); },
          "fit is no value of scale_fit");
  refused([] { scale_filter({.width = 8, .height = 8, .algorithm = scale_algorithm{5}}); },
          "algorithm is no value of scale_algorithm");
}

TEST(FilterText, RatesThatFfmpegCannotHoldAreRefused) {
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  for (const auto& rate : {rational(largest), rational(1, largest), rational(1'000'001),
                           rational(1, 1'000'001), rational(2'147'483'648, 2'147'483'647)})
    EXPECT_THAT([&] { rate_filter(rate); },
                ThrowsMessage<error>(HasSubstr("make the filter fps: frames per second must be "
                                               "1/1000000 to 1000000 and have terms of 31 bits")))
        << to_string(rate);
  EXPECT_EQ(rate_filter(rational(1, 1'000'000)), "fps=1/1000000");
  EXPECT_EQ(rate_filter(rational(2'147'483'647, 100'000'000)), "fps=2147483647/100000000");
}

TEST(FilterText, TimesThatFfmpegCannotHoldAreRefused) {
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
  for (const auto& time : {rational(largest), rational(lowest), rational(1'000'000'000'001)})
    for (const auto& window : {time_window{.begin = time}, time_window{.end = time}})
      for (const auto make : {trim_filter, audio_trim_filter}) try {
          (void)make(window);
          ADD_FAILURE() << to_string(time);
        } catch (const error& refused) {
          EXPECT_EQ(refused.code(), errc::invalid_argument);
          EXPECT_THAT(refused.what(), HasSubstr("trim: times must be within 10^12 seconds of 0"));
        }
  EXPECT_EQ(trim_filter({.end = rational(1'000'000'000'000)}),
            "trim=end=1000000000000000000us,setpts=PTS-STARTPTS");
}

// The text of a builder, and hand-written options of the ffmpeg program for the same pictures.
struct video_case {
  std::string text;
  std::string by_hand;  // options of the ffmpeg program
  std::size_t frames = 50;
  int width = 178;
  int height = 98;

  friend std::ostream& operator<<(std::ostream& out, const video_case& of) {
    return out << of.text;
  }
};

class VideoFilterText : public testing::TestWithParam<video_case> {};

TEST_P(VideoFilterText, MakesThePicturesOfAHandWrittenTextInFfmpeg) {
  const auto& expected = GetParam();
  const auto filtered = filter_frames(video_frames(), expected.text);
  EXPECT_EQ(filtered.size(), expected.frames);
  for (const auto& each : filtered) {
    EXPECT_EQ(each.width(), expected.width);
    EXPECT_EQ(each.height(), expected.height);
  }
  expect_same(pictures(filtered),
              output_of_ffmpeg("-i " + video_path(filtered_video) + " " + expected.by_hand +
                               " -fps_mode passthrough -f rawvideo -"));
}

INSTANTIATE_TEST_SUITE_P(Rates, VideoFilterText,
                         testing::Values(video_case{rate_filter(10), "-vf fps=10", 20},
                                         video_case{rate_filter(60), "-vf fps=60", 120},
                                         video_case{rate_filter(rational(30'000, 1001)),
                                                    "-vf fps=ntsc", 60}));

// Frame i begins at i / 25.
INSTANTIATE_TEST_SUITE_P(
    Parts, VideoFilterText,
    testing::Values(
        video_case{trim_filter({.begin = rational(1, 2), .end = rational(1)}),
                   "-vf 'select=between(n\\,13\\,24)'", 12},
        video_case{trim_filter({.begin = rational(3, 2)}), "-vf 'select=gte(n\\,38)'", 12},
        video_case{trim_filter({.end = rational(1, 3)}), "-frames:v 9", 9},
        video_case{trim_filter({.begin = rational(-1), .end = rational(1)}), "-frames:v 25", 25},
        video_case{trim_filter({}), "", 50}, video_case{frame_count_filter(7), "-frames:v 7", 7},
        video_case{frame_count_filter(1), "-frames:v 1", 1}));

static std::string scale_text(scale_algorithm algorithm) {
  return scale_filter({.width = 64, .height = 48, .algorithm = algorithm});
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, VideoFilterText,
    testing::Values(video_case{scale_text(scale_algorithm::bilinear),
                               "-vf scale=64:48:flags=bilinear+accurate_rnd", 50, 64, 48},
                    video_case{scale_text(scale_algorithm::bicubic),
                               "-vf scale=64:48:flags=bicubic+accurate_rnd", 50, 64, 48},
                    video_case{scale_text(scale_algorithm::area),
                               "-vf scale=64:48:flags=area+accurate_rnd", 50, 64, 48},
                    video_case{scale_text(scale_algorithm::lanczos),
                               "-vf scale=64:48:flags=lanczos+accurate_rnd", 50, 64, 48},
                    video_case{scale_text(scale_algorithm::nearest),
                               "-vf scale=64:48:flags=neighbor+accurate_rnd", 50, 64, 48},
                    video_case{scale_filter({.width = 64, .height = 48}),
                               "-vf scale=64:48:flags=bicubic+accurate_rnd", 50, 64, 48}));

// A picture of 178 x 98 has 33 x 18, 64 x 35, 116 x 64 and 176 x 97 pixels by its proportions,
// rounded up to whole samples of chroma where it is padded. Its place is one of a sample of chroma.
INSTANTIATE_TEST_SUITE_P(
    Fits, VideoFilterText,
    testing::Values(
        video_case{scale_filter({.width = 200, .height = 60, .fit = scale_fit::stretch}),
                   "-vf scale=200:60:flags=bicubic+accurate_rnd", 50, 200, 60},
        video_case{scale_filter({.width = 64, .height = 64, .fit = scale_fit::pad}),
                   "-vf scale=64:36:flags=bicubic+accurate_rnd,pad=64:64:0:14", 50, 64, 64},
        video_case{scale_filter({.width = 33, .height = 97, .fit = scale_fit::pad}),
                   "-vf scale=34:18:flags=bicubic+accurate_rnd,pad=36:98:0:38,"
                   "crop=33:97:0:0:exact=1",
                   50, 33, 97},
        video_case{scale_filter({.width = 300, .height = 98, .fit = scale_fit::pad}),
                   "-vf scale=178:98:flags=bicubic+accurate_rnd,pad=300:98:60:0", 50, 300, 98},
        video_case{scale_filter({.width = 64, .height = 64, .fit = scale_fit::crop}),
                   "-vf scale=116:64:flags=bicubic+accurate_rnd,crop=64:64:26:0", 50, 64, 64},
        video_case{scale_filter({.width = 33, .height = 97, .fit = scale_fit::crop}),
                   "-vf scale=176:97:flags=bicubic+accurate_rnd,crop=33:97:70:0:exact=1", 50, 33,
                   97},
        video_case{scale_filter({.width = 178, .height = 40, .fit = scale_fit::crop}),
                   "-vf scale=178:98:flags=bicubic+accurate_rnd,crop=178:40:0:28", 50, 178, 40},
        video_case{scale_filter({.width = 64,
                                 .height = 64,
                                 .algorithm = scale_algorithm::area,
                                 .fit = scale_fit::pad}),
                   "-vf scale=64:36:flags=area+accurate_rnd,pad=64:64:0:14", 50, 64, 64},
        video_case{scale_filter({.width = 64,
                                 .height = 64,
                                 .algorithm = scale_algorithm::lanczos,
                                 .fit = scale_fit::crop}),
                   "-vf scale=116:64:flags=lanczos+accurate_rnd,crop=64:64:26:0", 50, 64, 64}));

INSTANTIATE_TEST_SUITE_P(
    Areas, VideoFilterText,
    testing::Values(video_case{crop_filter({.x = 10, .y = 4, .width = 32, .height = 20}),
                               "-vf crop=32:20:10:4", 50, 32, 20},
                    video_case{crop_filter({.x = 10, .y = 4, .width = 33, .height = 21}),
                               "-vf crop=33:21:10:4:exact=1", 50, 33, 21},
                    video_case{pad_filter({.x = 4, .y = 2, .width = 201, .height = 121}),
                               "-vf pad=204:124:4:2,crop=201:121:0:0:exact=1", 50, 201, 121},
                    video_case{pad_filter({.x = 2, .y = 4, .width = 200, .height = 120}),
                               "-vf pad=200:120:2:4", 50, 200, 120}));

INSTANTIATE_TEST_SUITE_P(
    Chains, VideoFilterText,
    testing::Values(video_case{
        filter_chain({rate_filter(5), "", scale_filter({.width = 32, .height = 32}),
                      pixel_format_filter("gray")}),
        "-vf fps=5,scale=32:32:flags=bicubic+accurate_rnd -pix_fmt gray", 10, 32, 32}));

TEST(FilterText, FramesOfAConstantRateAreShownAtItsMultiples) {
  const auto filtered = filter_frames(video_frames(), rate_filter(10));
  for (std::size_t i = 0; i < filtered.size(); ++i)
    EXPECT_EQ(filtered[i].time(), rational(static_cast<std::int64_t>(i), 10));
}

TEST(FilterText, TimesOfAWindowBeginAtZero) {
  const time_window window{.begin = rational(1, 2), .end = rational(1)};
  const auto seen = filter_frames(video_frames(), trim_filter(window));
  for (std::size_t i = 0; i < seen.size(); ++i)
    EXPECT_EQ(seen[i].time(), rational(static_cast<std::int64_t>(i), 25));
  EXPECT_EQ(filter_frames(audio_frames(), audio_trim_filter(window))[0].time(), rational(0));
}

TEST(FilterText, PixelsStaySquareWherePicturesKeepTheirProportions) {
  const std::vector one{video_frames()[0]};
  const auto aspect_of = [&](scale_fit fit) {
    const auto scale = scale_filter({.width = 64, .height = 48, .fit = fit});
    return filter_frames(one, filter_chain({"setsar=1", scale}))[0].sample_aspect();
  };
  EXPECT_EQ(aspect_of(scale_fit::pad), 1);
  EXPECT_EQ(aspect_of(scale_fit::crop), 1);
  EXPECT_EQ(aspect_of(scale_fit::stretch), rational(178, 98) / rational(64, 48));
}

TEST(FilterText, PixelFormatsAreThoseThatTheFfmpegProgramConvertsTo) {
  for (const std::string format : {"rgb24", "gray", "nv12", "yuv444p", "yuv420p10le"}) {
    const auto filtered = filter_frames(video_frames(), pixel_format_filter(format));
    ASSERT_EQ(filtered.size(), 50U) << format;
    EXPECT_EQ(filtered[0].pixel_format(), format);
    expect_same(pictures(filtered),
                output_of_ffmpeg("-i " + video_path(filtered_video) + " -pix_fmt " + format +
                                 " -fps_mode passthrough -f rawvideo -"));
  }
}

// The text of a builder, and hand-written options of the ffmpeg program for the same samples.
struct audio_case {
  std::string text;
  std::string by_hand;  // options of the ffmpeg program
  int samples = 88'200;
  int sample_rate = 44'100;
  int channels = 2;

  friend std::ostream& operator<<(std::ostream& out, const audio_case& of) {
    return out << of.text;
  }
};

class AudioFilterText : public testing::TestWithParam<audio_case> {};

TEST_P(AudioFilterText, MakesTheSamplesOfHandWrittenOptionsInFfmpeg) {
  const auto& expected = GetParam();
  const auto filtered = filter_frames(audio_frames(), expected.text + ",aformat=sample_fmts=flt");
  int samples = 0;
  for (const auto& each : filtered) {
    samples += each.samples();
    EXPECT_EQ(each.sample_rate(), expected.sample_rate);
    EXPECT_EQ(each.channels(), expected.channels);
  }
  EXPECT_EQ(samples, expected.samples);
  expect_same(sounds(filtered), output_of_ffmpeg("-i " + audio_path(filtered_audio) + " " +
                                                 expected.by_hand + " -c:a pcm_f32le -f f32le -"));
}

INSTANTIATE_TEST_SUITE_P(
    Rates, AudioFilterText,
    testing::Values(audio_case{sample_rate_filter(16'000), "-ar 16000", 32'000, 16'000},
                    audio_case{sample_rate_filter(48'000), "-ar 48000", 96'000, 48'000}));

INSTANTIATE_TEST_SUITE_P(
    Channels, AudioFilterText,
    testing::Values(audio_case{channel_layout_filter("mono"), "-ac 1", 88'200, 44'100, 1},
                    audio_case{channel_layout_filter("5.1"), "-ac 6", 88'200, 44'100, 6}));

INSTANTIATE_TEST_SUITE_P(
    Parts, AudioFilterText,
    testing::Values(audio_case{sample_count_filter(12'345),
                               "-af atrim=start_sample=0:end_sample=12345", 12'345},
                    audio_case{sample_count_filter(1), "-af atrim=start_sample=0:end_sample=1", 1},
                    audio_case{audio_trim_filter({.begin = rational(1, 4), .end = rational(1)}),
                               "-af atrim=start_sample=11025:end_sample=44100", 33'075},
                    audio_case{audio_trim_filter({.begin = rational(1, 3)}),
                               "-af atrim=start_sample=14700", 73'500},
                    audio_case{audio_trim_filter({.end = rational(3, 2)}),
                               "-af atrim=start_sample=0:end_sample=66150", 66'150},
                    audio_case{audio_trim_filter({}), "-af anull"}));

INSTANTIATE_TEST_SUITE_P(Chains, AudioFilterText,
                         testing::Values(audio_case{filter_chain({channel_layout_filter("mono"), "",
                                                                  sample_count_filter(44'100)}),
                                                    "-ac 1 -t 1", 44'100, 44'100, 1}));

TEST(FilterText, SampleFormatsAreThoseThatTheFfmpegProgramConvertsTo) {
  struct format_case {
    std::string format;
    std::string encoder;
  };
  for (const auto& [format, encoder] :
       {format_case{"u8", "pcm_u8 -f u8"}, format_case{"s16", "pcm_s16le -f s16le"},
        format_case{"s32", "pcm_s32le -f s32le"}, format_case{"flt", "pcm_f32le -f f32le"},
        format_case{"dbl", "pcm_f64le -f f64le"}}) {
    const auto filtered = filter_frames(audio_frames(), sample_format_filter(format));
    ASSERT_FALSE(filtered.empty()) << format;
    EXPECT_EQ(filtered[0].sample_format(), format);
    expect_same(sounds(filtered),
                output_of_ffmpeg("-i " + audio_path(filtered_audio) + " -c:a " + encoder + " -"));
  }
}

TEST(FilterText, PlanarSampleFormatsHaveAPlaneForEachChannel) {
  const auto filtered = filter_frames(audio_frames(), sample_format_filter("fltp"));
  ASSERT_FALSE(filtered.empty());
  EXPECT_EQ(filtered[0].sample_format(), "fltp");
  for (int channel = 0; channel < 2; ++channel)
    expect_same(sounds(filtered, channel),
                output_of_ffmpeg("-i " + audio_path(filtered_audio) + " -af 'pan=mono|c0=c" +
                                 std::to_string(channel) + "' -c:a pcm_f32le -f f32le -"));
}

}  // namespace lade::media::filter_text_test
