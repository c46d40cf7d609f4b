#include "filtered_frames.hpp"

#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/media/filters/filter_graph.hpp>
#include <lade/media/filters/filter_text.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

extern "C" {
#include <libavfilter/avfilter.h>
#include <libavutil/opt.h>
}

namespace lade::media::filter_graph_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(FilterGraph, ReturnsThePicturesOfTheFfmpegProgram) {
  expect_same(pictures(filter_frames(video_frames(), "hflip,negate")),
              output_of_ffmpeg("-i " + video_path(filtered_video) +
                               " -vf hflip,negate -fps_mode passthrough -f rawvideo -"));
}

TEST(FilterGraph, ReturnsTheSamplesOfTheFfmpegProgram) {
  for (const std::string text : {"volume=0.5", "asetnsamples=1000"})
    expect_same(sounds(filter_frames(audio_frames(), text + ",aformat=sample_fmts=flt")),
                output_of_ffmpeg("-i " + audio_path(filtered_audio) + " -af " + text +
                                 " -c:a pcm_f32le -f f32le -"));
}

TEST(FilterGraph, JoinsSeveralInputs) {
  filter_graph graph("[a][b]hstack[out]");
  ASSERT_EQ(graph.inputs().size(), 2U);
  EXPECT_EQ(graph.inputs()[1].label, "b");
  EXPECT_EQ(graph.outputs()[0].label, "out");
  const auto frames = video_frames();
  std::vector<frame> joined;
  for (const auto& each : frames) {
    graph.send(each, 0);
    graph.send(each, 1);
    while (auto next = graph.receive()) joined.push_back(std::move(*next));
  }
  graph.finish();
  while (auto next = graph.receive()) joined.push_back(std::move(*next));
  const auto path = video_path(filtered_video);
  expect_same(pictures(joined), output_of_ffmpeg("-i " + path + " -i " + path +
                                                 " -filter_complex '[0:v][1:v]hstack' "
                                                 "-fps_mode passthrough -f rawvideo -"));
}

TEST(FilterGraph, HasSeveralOutputs) {
  filter_graph graph("split[a][b];[b]vflip[c]");
  ASSERT_EQ(graph.outputs().size(), 2U);
  const auto frames = video_frames();
  graph.send(frames[0]);
  graph.finish();
  const auto plain = graph.receive(0);
  const auto flipped = graph.receive(1);
  ASSERT_TRUE(plain && flipped);
  const bool first_is_plain = graph.outputs()[0].label == "a";
  EXPECT_EQ(pictures({first_is_plain ? *plain : *flipped}), pictures({frames[0]}));
  EXPECT_EQ(pictures({first_is_plain ? *flipped : *plain}),
            pictures(filter_frames(std::vector{frames[0]}, "vflip")));
}

TEST(FilterGraph, MakesPicturesOfAudio) {
  const auto pictured = filter_frames(audio_frames(), "showwavespic=s=160x60");
  ASSERT_EQ(pictured.size(), 1U);
  EXPECT_EQ(pictured[0].kind(), stream_kind::video);
  EXPECT_EQ(pictured[0].width(), 160);
  expect_same(pictures(pictured),
              output_of_ffmpeg("-i " + audio_path(filtered_audio) +
                               " -filter_complex showwavespic=s=160x60 -f rawvideo -"));
}

TEST(FilterGraph, IsUsedForOneStreamAfterAnother) {
  const auto frames = video_frames();
  filter_graph graph("scale=32:32");
  const auto expected = pictures(filter_frames(frames, "scale=32:32"));
  for (int round = 0; round < 2; ++round) {
    std::vector<frame> all;
    for (const auto& each : frames) graph.send(each);
    graph.finish();
    while (auto next = graph.receive()) all.push_back(std::move(*next));
    expect_same(pictures(all), expected);
  }
  EXPECT_EQ(graph.rebuilds(), 0U);
}

TEST(FilterGraph, AChangeOfFormatRebuildsItAndLosesNoFrame) {
  const auto frames = video_frames();
  const auto smaller = filter_frames(frames, "scale=90:50");
  filter_graph graph("scale=32:32");
  for (const auto& each : frames) graph.send(each);
  for (const auto& each : smaller) graph.send(each);
  graph.finish();
  std::size_t count = 0;
  while (auto next = graph.receive()) {
    EXPECT_EQ(next->width(), 32);
    ++count;
  }
  EXPECT_EQ(count, frames.size() + smaller.size());
  EXPECT_EQ(graph.rebuilds(), 1U);
}

// What a graph makes of two streams that follow each other without an end between them.
static std::vector<frame> filter_joined(filter_graph& graph, const std::vector<frame>& first,
                                        const std::vector<frame>& second) {
  for (const auto& each : first) graph.send(each);
  for (const auto& each : second) graph.send(each);
  graph.finish();
  std::vector<frame> all;
  while (auto next = graph.receive()) all.push_back(std::move(*next));
  return all;
}

// The filters hold all frames to their end.
TEST(FilterGraph, PicturesOfAnotherFormatColourOrTimeBaseStartANewStream) {
  const auto frames = video_frames();
  for (const std::string change : {"format=yuv444p", "scale=90:98", "scale=178:50", "settb=1/90000",
                                   "setparams=range=pc", "setparams=colorspace=bt2020nc"}) {
    const auto changed = filter_frames(frames, change);
    filter_graph graph("reverse");
    const auto all = filter_joined(graph, frames, changed);
    EXPECT_EQ(graph.rebuilds(), 1U) << change;
    ASSERT_EQ(all.size(), 2 * frames.size()) << change;
    expect_same(pictures(all), pictures(filter_frames(frames, "reverse")) +
                                   pictures(filter_frames(changed, "reverse")));
    for (std::size_t i = 0; i < frames.size(); ++i)
      EXPECT_EQ(all[frames.size() + i].time(), frames[i].time()) << change;
  }
}

TEST(FilterGraph, SamplesOfAnotherFormatRateOrChannelsStartANewStream) {
  const auto frames = filter_frames(audio_frames(), "aformat=sample_fmts=flt");
  for (const std::string change :
       {"aformat=sample_fmts=s16", "aresample=16000,aformat=sample_fmts=flt,asettb=1/44100",
        "aformat=channel_layouts=mono:sample_fmts=flt"}) {
    const auto changed = filter_frames(frames, change);
    filter_graph graph("areverse");
    const auto all = filter_joined(graph, frames, changed);
    EXPECT_EQ(graph.rebuilds(), 1U) << change;
    expect_same(sounds(all), sounds(filter_frames(frames, "areverse")) +
                                 sounds(filter_frames(changed, "areverse")));
  }
}

// Formats with and without chroma of fewer rows and columns, in planes and packed.
static constexpr std::array pixel_formats_to_filter{
    "yuv420p", "yuv422p", "yuv444p", "yuv411p",     "yuv410p", "yuv440p", "nv12", "nv21",
    "p010le",  "rgb24",   "gray",    "yuv420p10le", "gbrp",    "bgra",    "pal8", "yuyv422"};

// The first frame of the video in a pixel format, 178 x 98.
static std::vector<frame> picture_of_format(std::string_view format) {
  return filter_frames(std::vector{video_frames()[0]}, pixel_format_filter(format));
}

TEST(FilterGraph, PicturesAreScaledToExactlyTheSizeOfAnyFormat) {
  for (const std::string format : pixel_formats_to_filter)
    for (const auto fit : {scale_fit::stretch, scale_fit::pad, scale_fit::crop})
      for (const auto& [width, height] :
           {std::pair{33, 97}, {1, 1}, {7, 500}, {224, 2}, {64, 48}, {178, 98}, {179, 99}}) {
        const auto text = scale_filter({.width = width, .height = height, .fit = fit});
        const auto scaled = filter_frames(picture_of_format(format), text);
        ASSERT_EQ(scaled.size(), 1U) << format << " " << text;
        EXPECT_EQ(scaled[0].width(), width) << format << " " << text;
        EXPECT_EQ(scaled[0].height(), height) << format << " " << text;
      }
}

TEST(FilterGraph, PaddedPicturesHaveExactlyTheSizeOfAnyFormat) {
  for (const std::string format : pixel_formats_to_filter) {
    const auto padded =
        filter_frames(picture_of_format(format),
                      filter_chain({crop_filter({.x = 0, .y = 0, .width = 176, .height = 96}),
                                    pad_filter({.x = 4, .y = 8, .width = 183, .height = 107})}));
    EXPECT_EQ(padded[0].width(), 183) << format;
    EXPECT_EQ(padded[0].height(), 107) << format;
  }
}

static std::string luma_of(const frame& of, int x, int y, int width, int height) {
  std::string rows;
  for (int row = y; row < y + height; ++row)
    rows.append(reinterpret_cast<const char*>(of.plane(0)[row].bytes()) + x,
                static_cast<std::size_t>(width));
  return rows;
}

static int bright_pixels(const std::string& line) {
  return static_cast<int>(std::count_if(
      line.begin(), line.end(), [](char each) { return static_cast<unsigned char>(each) > 200; }));
}

// The most bright pixels of a row and of a column.
static std::pair<int, int> bright_lengths(const frame& of) {
  std::pair<int, int> most;
  for (int y = 0; y < of.height(); ++y)
    most.first = std::max(most.first, bright_pixels(luma_of(of, 0, y, of.width(), 1)));
  for (int x = 0; x < of.width(); ++x)
    most.second = std::max(most.second, bright_pixels(luma_of(of, x, 0, 1, of.height())));
  return most;
}

TEST(FilterGraph, AFittedPictureIsSeenUpToItsLastColumnAndRow) {
  struct fitted {
    std::pair<int, int> from, to, exact;
  };
  for (const std::string format : {"yuv444p", "yuv422p", "yuv420p", "yuv411p"})
    for (const auto& each :
         {fitted{{64, 64}, {225, 113}, {113, 113}}, fitted{{64, 64}, {113, 225}, {113, 113}},
          fitted{{64, 64}, {63, 63}, {63, 63}}, fitted{{64, 2}, {24, 24}, {24, 1}},
          fitted{{64, 2}, {1, 1}, {1, 1}}}) {
      const auto text = filter_chain(
          {crop_filter({.x = 0, .y = 0, .width = each.from.first, .height = each.from.second}),
           "lutyuv=y=235",
           scale_filter(
               {.width = each.to.first, .height = each.to.second, .fit = scale_fit::pad})});
      const auto scaled = filter_frames(picture_of_format(format), text);
      const int columns = format == "yuv444p" ? 1 : format == "yuv411p" ? 4 : 2;
      const int rows = format == "yuv420p" ? 2 : 1;
      const auto whole = [](int length, int samples) {
        return (length + samples - 1) / samples * samples;
      };
      const std::pair expected{std::min(whole(each.exact.first, columns), each.to.first),
                               std::min(whole(each.exact.second, rows), each.to.second)};
      EXPECT_EQ(bright_lengths(scaled[0]), expected) << format << " " << text;
    }
}

TEST(FilterGraph, PartsAreExactlyThoseThatAreAskedFor) {
  for (const std::string format : {"yuv420p", "nv12", "yuv444p", "gray", "yuv422p"}) {
    const auto source = picture_of_format(format);
    for (const auto& part : {picture_area{.x = 10, .y = 4, .width = 33, .height = 21},
                             picture_area{.x = 0, .y = 0, .width = 178, .height = 98},
                             picture_area{.x = 162, .y = 90, .width = 16, .height = 8},
                             picture_area{.x = 176, .y = 96, .width = 1, .height = 1}}) {
      const auto text = crop_filter(part);
      const auto cropped = filter_frames(source, text);
      ASSERT_EQ(cropped[0].width(), part.width) << format << " " << text;
      ASSERT_EQ(cropped[0].height(), part.height) << format << " " << text;
      EXPECT_TRUE(luma_of(cropped[0], 0, 0, part.width, part.height) ==
                  luma_of(source[0], part.x, part.y, part.width, part.height))
          << format << " " << text;
    }
  }
}

TEST(FilterGraph, PaddedPicturesLieWhereTheyAreAskedFor) {
  for (const std::string format : {"yuv420p", "yuv444p", "gray"}) {
    const auto source = picture_of_format(format);
    const auto padded =
        filter_frames(source, pad_filter({.x = 6, .y = 2, .width = 185, .height = 101}));
    EXPECT_TRUE(luma_of(padded[0], 6, 2, 178, 98) == luma_of(source[0], 0, 0, 178, 98)) << format;
  }
}

TEST(FilterGraph, PartsBeyondThePictureOrBetweenItsChromaAreRefused) {
  const auto refuse = [](const std::string& format, const std::string& text) {
    try {
      (void)filter_frames(picture_of_format(format), text);
      ADD_FAILURE() << format << " " << text;
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), std::errc::invalid_argument);
      EXPECT_THAT(refused.what(), HasSubstr(text));
    }
  };
  constexpr int most = std::numeric_limits<int>::max();
  for (const std::string format : {"yuv420p", "yuv444p", "nv12", "rgb24"}) {
    refuse(format, crop_filter({.x = 164, .y = 0, .width = 16, .height = 16}));
    refuse(format, crop_filter({.x = 0, .y = 84, .width = 16, .height = 16}));
    refuse(format, crop_filter({.x = 0, .y = 0, .width = 179, .height = 16}));
    refuse(format, crop_filter({.x = most, .y = 0, .width = 16, .height = 16}));
    refuse(format, pad_filter({.x = 0, .y = 0, .width = 177, .height = 98}));
    refuse(format, pad_filter({.x = 4, .y = 0, .width = 181, .height = 98}));
    refuse(format, pad_filter({.x = 0, .y = 4, .width = 178, .height = 100}));
    refuse(format, pad_filter({.x = most, .y = 0, .width = 200, .height = 100}));
  }
  refuse("yuv420p", crop_filter({.x = 1, .y = 0, .width = 16, .height = 16}));
  refuse("yuv420p", crop_filter({.x = 0, .y = 1, .width = 16, .height = 16}));
  refuse("nv12", crop_filter({.x = 3, .y = 0, .width = 16, .height = 16}));
  refuse("yuv411p", crop_filter({.x = 2, .y = 0, .width = 16, .height = 16}));
  refuse("yuv411p", pad_filter({.x = 0, .y = 0, .width = 200, .height = 100}));
  refuse("yuv410p", pad_filter({.x = 0, .y = 0, .width = 200, .height = 100}));
  refuse("yuv420p", pad_filter({.x = 1, .y = 0, .width = 200, .height = 100}));
  refuse("yuv422p", pad_filter({.x = 1, .y = 0, .width = 200, .height = 100}));
}

TEST(FilterGraph, FramesKeepTheirTimes) {
  const auto frames = video_frames();
  const auto filtered = filter_frames(frames, "hflip");
  ASSERT_EQ(filtered.size(), frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) EXPECT_EQ(filtered[i].time(), frames[i].time());
}

TEST(FilterGraph, FiltersKnowTimesThatPacketsDoNotState) {
  std::size_t guessed = 0;
  for (const auto& recipe : untimed_recipes()) {
    const auto path = video_path(recipe);
    const auto frames = decode(demux(read_bytes(path), path, stream_kind::video));
    const auto later = filter_frames(frames, "setpts=PTS+5");
    ASSERT_EQ(later.size(), frames.size()) << recipe;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const auto time = frames[i].time();
      if (!time) continue;
      EXPECT_EQ(later[i].time(), *time + rational(5) * frames[i].time_base()) << recipe;
      if (frames[i].get().pts == AV_NOPTS_VALUE) ++guessed;
    }
  }
  EXPECT_GT(guessed, 0U);
}

TEST(FilterGraph, FiltersKnowTheShapeOfPixels) {
  const auto wide = filter_frames(std::vector{video_frames()[0]}, "setsar=4/3");
  ASSERT_EQ(wide.at(0).sample_aspect(), rational(4, 3));
  EXPECT_EQ(filter_frames(wide, "setsar=sar*2").at(0).sample_aspect(), rational(8, 3));
}

static void expect_no_graph(const std::string& text, const std::string& filter,
                            const std::string& why) {
  EXPECT_THAT([&] { filter_graph graph(text); },
              ThrowsMessage<error>(AllOf(HasSubstr(filter), HasSubstr(why))))
      << text;
}

TEST(FilterGraph, UnknownFiltersAndOptionsAreRefusedByName) {
  expect_no_graph("scale=8:8,sharpest", "the filter sharpest", "no filter of this name");
  expect_no_graph("hflip,scale=colour=red", "the filter scale", "\"colour=red\"");
  expect_no_graph("hflip,crop=w=8:nosuch=1", "the filter crop", "nosuch");
  expect_no_graph("", "filter", "");
  expect_no_graph("nullsrc=s=8x8", "nullsrc", "needs an input");
}

TEST(FilterGraph, FiltersThatCouldOpenFilesAreRefusedHoweverTheyAreWritten) {
  for (const std::string text :
       {"movie=a.mp4", "mo'vi'e=a.mp4", "m\\ovie=a.mp4", "[x] movie@y=a.mp4 [z]",
        "hflip;movie=a.mp4", "sws_flags=area; movie=a.mp4", "subtitles=a.srt", "ass=a.ass",
        "amovie=a.wav", "drawtext=fontfile=a.ttf", "lut3d=a.cube", "hflip,[a][b]psnr=a.log",
        "metadata=print:file=a.txt", "nnedi=weights=a.bin", "asr=hmm=a", "fieldhint=hint=a.txt",
        "[a][b]paletteuse=debug_kdtree=a.dot", "curves=psfile=a.acv",
        "[a]hflip[b];\n movie = a.mp4"})
    if (text != "asr=hmm=a" || avfilter_get_by_name("asr") != nullptr)  // which newer ones lack
      expect_no_graph(text, "", "could open files");
}

// FFmpeg's descriptions of a filter's options that are texts.
static std::string descriptions_of_texts(const AVFilter& filter) {
  std::string all;
  if (filter.priv_class == nullptr) return all;
  const AVOption* option = nullptr;
  const void* object = &filter.priv_class;
  while ((option = av_opt_next(object, option)) != nullptr) {
    const int type = static_cast<int>(option->type) & 0xffff;
    if (type != AV_OPT_TYPE_STRING && type != AV_OPT_TYPE_DICT) continue;
    all.append("|").append(option->name);
    all.append(": ").append(option->help != nullptr ? option->help : "");
  }
  return all;
}

static bool is_refused_for_resources(const std::string& filter) {
  try {
    (void)filter_graph(filter);
  } catch (const error& failure) {
    return std::string_view(failure.what()).find("could open files") != std::string_view::npos;
  } catch (const std::bad_alloc&) {  // FFmpeg's error for some options that are missing
  }
  return false;
}

// By FFmpeg's descriptions, which lade does not look at.
TEST(FilterGraph, EveryFilterWhoseOptionsSpeakOfFilesOrSocketsIsRefused) {
  const std::regex words("file|path|director|librar|plugin|socket|address|\\b(model|ur[il])\\b",
                         std::regex::icase);
  std::size_t speaking = 0;
  for (const auto& name : ffmpeg_filters()) {
    const auto texts = descriptions_of_texts(*avfilter_get_by_name(name.c_str()));
    if (!std::regex_search(texts, words)) continue;
    ++speaking;
    EXPECT_TRUE(is_refused_for_resources(name)) << name << " has the options " << texts;
  }
  EXPECT_GT(speaking, 20U);
  for (const char* name : {"movie", "amovie", "nnedi"}) EXPECT_TRUE(is_refused_for_resources(name));
}

TEST(FilterGraph, UsualFiltersAreNotRefused) {
  for (const char* name :
       {"aecho",     "aeval",        "aformat",   "afade",    "amix",    "anull",   "aresample",
        "asetpts",   "atempo",       "boxblur",   "concat",   "crop",    "eq",      "fade",
        "format",    "fps",          "geq",       "highpass", "hue",     "lowpass", "lut",
        "overlay",   "pad",          "pan",       "rotate",   "scale",   "select",  "setpts",
        "setsar",    "tile",         "transpose", "trim",     "unsharp", "volume",  "xstack",
        "showwaves", "showspectrum", "zoompan"})
    EXPECT_FALSE(is_refused_for_resources(name)) << name;
}

TEST(FilterGraph, FiltersOfFfmpegCanBeListed) {
  const auto names = ffmpeg_filters();
  EXPECT_THAT(names, testing::IsSupersetOf({"scale", "volume", "movie"}));
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
}

TEST(FilterGraph, AGraphWithoutEndIsAnError) {
  const std::vector one{video_frames()[0]};
  EXPECT_THAT(
      [&] { filter_frames(one, "loop=-1:1", {.max_frames = 50}); },
      ThrowsMessage<error>(AllOf(HasSubstr("loop=-1:1"), HasSubstr("more than 50 frames"))));
  EXPECT_THAT([&] { filter_frames(one, "loop=-1:1"); },
              ThrowsMessage<error>(HasSubstr("more than 100001 frames")));
  EXPECT_EQ(filter_frames(one, "loop=49:1", {.max_frames = 50}).size(), 50U);
  EXPECT_THROW(filter_frames(one, "loop=50:1", {.max_frames = 50}), error);
  filter_graph graph("loop=-1:1");
  graph.send(one[0]);
  graph.finish();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(graph.receive());
  EXPECT_THAT([&] { graph.send(one[0]); },
              ThrowsMessage<error>(HasSubstr("the graph does not end")));
}

TEST(FilterGraph, WordsOfFfmpegArePartOfTheErrorAndNothingIsPrinted) {
  const auto frames = video_frames();
  testing::internal::CaptureStderr();
  expect_no_graph("scale=w=nosuch(1):h=8", "scale", "nosuch(1)");
  expect_no_graph("[a]hflip[b", "[a]hflip[b", "Invalid argument (");
  EXPECT_THAT([&] { filter_frames(frames, "crop=w=9999:h=8"); },
              ThrowsMessage<error>(HasSubstr("(Invalid too big or non positive size")));
  EXPECT_EQ(filter_frames(frames, "scale=8:8,showinfo").size(), frames.size());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(FilterGraph, FramesCountForTheBudgetOfTheRunWhoseStageReceivesThem) {
  const auto frames = video_frames();
  runtime where({.threads = 1});
  const auto filtered =
      from(std::vector<int>(1)) | map([&](int) { return filter_frames(frames, "scale=640:480"); });
  const std::size_t expected = frames.size() * 640 * 480 * 3 / 2;
  {
    std::vector<frame> kept;
    for (auto& each : where.run(filtered)) kept = std::move(each);
    ASSERT_EQ(kept.size(), frames.size());
    EXPECT_GE(where.memory().stats().used_bytes, expected);
    EXPECT_LE(where.memory().stats().used_bytes, 2 * expected);
    const auto again = filter_frames(kept, "hflip");
    EXPECT_GE(where.memory().stats().used_bytes, expected);
  }
  EXPECT_EQ(where.memory().stats().used_bytes, 0U);
}

TEST(FilterGraph, EndsBetweenTwoFramesWhenItsRunIsStopped) {
  const auto frames = video_frames();
  EXPECT_EQ(error_in_a_stopped_stage([&] { filter_frames(frames, "hflip"); }), errc::stopped);
}

TEST(FilterGraph, MisuseIsRefused) {
  filter_graph graph("hflip");
  const auto audio = audio_frames();
  EXPECT_THAT([&] { graph.send(audio[0]); }, ThrowsMessage<error>(HasSubstr("takes video")));
  EXPECT_THAT([&] { graph.send(audio[0], 1); }, ThrowsMessage<error>(HasSubstr("has 1 inputs")));
  EXPECT_THAT([&] { graph.receive(1); }, ThrowsMessage<error>(HasSubstr("has 1 outputs")));
  filter_graph two("[a][b]hstack");
  two.send(video_frames()[0], 0);
  two.finish(0);
  EXPECT_THAT([&] { two.send(video_frames()[0], 0); },
              ThrowsMessage<error>(HasSubstr("input 0 has finished")));
  EXPECT_THAT([&] { two.finish(); }, ThrowsMessage<error>(HasSubstr("had no frame")));
}

}  // namespace lade::media::filter_graph_test
