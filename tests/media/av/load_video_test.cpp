#include <lade/error.hpp>
#include <lade/media/av/convert.hpp>
#include <lade/media/av/load_video.hpp>
#include <lade/runtime.hpp>

#include "../../support/mounted_store.hpp"
#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <stop_token>
#include <string>
#include <vector>

namespace lade::media {

// 50 frames of 178 x 98, 25 per second.
static std::string loaded_path() { return video_path(video_recipes()[0]); }

static bool same_elements(const tensor& a, const tensor& b) {
  return a.spec() == b.spec() && std::memcmp(a.bytes(), b.bytes(), a.spec().bytes()) == 0;
}

TEST(LoadVideo, HasTheFramesOfTheWindowAndTheirTimes) {
  runtime runs;
  const auto loaded =
      sync_wait(runs, load_video(loaded_path(), {.window = {.begin = 1, .end = rational(6, 5)}}));
  EXPECT_EQ(loaded.frames().shape(), (dimensions{5, 98, 178, 3}));
  EXPECT_EQ(loaded.times().front(), rational(1));
  EXPECT_EQ(loaded.times().back(), rational(29, 25));
  const video whole(read_bytes(loaded_path()));
  const auto frames = whole.frames(std::vector<std::int64_t>{25, 26, 27, 28, 29});
  for (std::size_t i = 0; i < frames.size(); ++i)
    EXPECT_TRUE(same_elements(loaded.frames()[static_cast<std::int64_t>(i)], to_tensor(frames[i])));
}

TEST(LoadVideo, OfAFileWithoutPositionsIsTheSame) {
  runtime runs;
  const auto loaded = sync_wait(runs, load_video(video_path(video_recipe("mpeg2.ts"))));
  EXPECT_EQ(loaded.frames().shape(), (dimensions{50, 98, 178, 3}));
}

TEST(LoadVideo, CountsDamageThatIsTolerated) {
  const auto path = video_path(video_recipe("hevc-closed.mkv"));
  const auto file = read_bytes(path);
  const auto cut = media_directory / "cut.mkv";
  std::ofstream(cut, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()),
             static_cast<std::streamsize>(file.size() / 2));
  runtime runs;
  EXPECT_THROW(sync_wait(runs, load_video(cut)), error);
  const auto loaded =
      sync_wait(runs, load_video(cut, {.decoding = {.damage = damage_policy::tolerate}}));
  EXPECT_GT(loaded.times().size(), 8U);
  EXPECT_LT(loaded.times().size(), 50U);
  EXPECT_GE(loaded.damaged(), 1U);
  EXPECT_EQ(sync_wait(runs, load_video(path)).damaged(), 0U);
}

TEST(LoadVideo, AWindowWithoutFramesIsAnError) {
  runtime runs;
  EXPECT_THROW(sync_wait(runs, load_video(loaded_path(), {.window = {.begin = 5}})), error);
}

TEST(LoadVideo, EndsWhenItIsStopped) {
  runtime runs;
  std::stop_source stopping;
  stopping.request_stop();
  try {
    sync_wait(runs, load_video(loaded_path()), stopping.get_token());
    FAIL() << "it has ended without an error";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::stopped);
  }
}

// The options and their texts end before the task starts.
TEST(LoadClip, CopiesTheTextsOfItsOptions) {
  runtime runs;
  const auto later = [](std::string decoder) {
    return load_clip(
        loaded_path(),
        {.sampling = {.frames = 2}, .width = 8, .height = 8, .decoding = {.decoder = decoder}});
  };
  EXPECT_EQ(sync_wait(runs, later(std::string("h264"))).shape()[0], 2);
  EXPECT_THROW((void)later("no_such_decoder_of_a_long_name"), error);
}

TEST(LoadVideo, CopiesTheTextsOfItsOptions) {
  runtime runs;
  const auto later = [](std::string decoder) {
    return load_video(loaded_path(), {.decoding = {.decoder = decoder}});
  };
  EXPECT_EQ(sync_wait(runs, later(std::string("h264"))).times().size(), 50U);
  EXPECT_THAT([&] { sync_wait(runs, later("no_such_decoder_of_a_long_name")); },
              testing::ThrowsMessage<error>(testing::HasSubstr("no_such_decoder_of_a_long_name")));
}

TEST(LoadClip, EndsWhenItIsStopped) {
  runtime runs;
  std::stop_source stopping;
  stopping.request_stop();
  try {
    sync_wait(runs, load_clip(loaded_path(), {.width = 8, .height = 8}), stopping.get_token());
    FAIL() << "it has ended without an error";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::stopped);
  }
}

TEST(LoadClip, IsWhatDecodeClipMakesOfTheFile) {
  runtime runs;
  const clip_options options{.sampling = {.frames = 3}, .width = 24, .height = 16};
  const auto loaded = sync_wait(runs, load_clip(loaded_path(), options, random(5)));
  const auto in = sample(loaded_path()).with_data(read_bytes(loaded_path()));
  EXPECT_TRUE(same_elements(loaded, decode_clip(options)(in, random(5))));
}

static void put(test::mounted_store& store, const std::string& url, const std::string& path) {
  store->put(url, std::string(read_bytes(path).text()));
}

TEST(LoadVideo, EndsWithAStopAtAnyRead) {
  test::mounted_store store("stopped-video://");
  put(store, "stopped-video://a.mp4", loaded_path());
  put(store, "stopped-video://a.ts", video_path(video_recipe("mpeg2.ts")));
  test::expect_stop_at_any_request(store, [] { return load_video("stopped-video://a.mp4"); });
  test::expect_stop_at_any_request(store, [] { return load_video("stopped-video://a.ts"); });
}

TEST(LoadClip, EndsWithAStopAtAnyRead) {
  test::mounted_store store("stopped-clip://");
  put(store, "stopped-clip://a.mp4", loaded_path());
  put(store, "stopped-clip://a.ts", video_path(video_recipe("mpeg2.ts")));
  for (const char* url : {"stopped-clip://a.mp4", "stopped-clip://a.ts"})
    test::expect_stop_at_any_request(store,
                                     [url] { return load_clip(url, {.width = 8, .height = 8}); });
}

TEST(LoadVideo, OfAUrlIsThatOfTheFile) {
  runtime runs;
  test::mounted_store store("videos://");
  put(store, "videos://a.mp4", loaded_path());
  const auto loaded = sync_wait(runs, load_video("videos://a.mp4"));
  const auto expected = sync_wait(runs, load_video(loaded_path()));
  EXPECT_EQ(loaded.times(), expected.times());
  EXPECT_TRUE(same_elements(loaded.frames(), expected.frames()));
  EXPECT_THAT([&] { sync_wait(runs, load_video("videos://b.mp4")); },
              testing::ThrowsMessage<error>(testing::HasSubstr("videos://b.mp4")));
}

}  // namespace lade::media
