#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/media/av/convert.hpp>
#include <lade/media/av/load_video.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>

#include "../../support/mounted_store.hpp"
#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace lade::media::load_video_test {

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

// The bytes that all requests to a store have read.
static std::uint64_t bytes_read_of(const test::mounted_store& store) {
  std::uint64_t bytes = 0;
  for (const auto& each : store->requests()) bytes += std::stoull(each.substr(each.rfind('+') + 1));
  return bytes;
}

// A container that is read as a whole to be indexed, mounted as index-video://a.mkv.
class LoadWithAnIndex : public testing::Test {
 protected:
  LoadWithAnIndex() { put(store_, "index-video://a.mkv", path_); }

  // Returns how many bytes of the file a task reads.
  template <class T>
  std::uint64_t bytes_of(task<T> load) {
    store_->forget_requests();
    sync_wait(runs_, std::move(load));
    return bytes_read_of(store_);
  }

  const std::string path_ = video_path(video_recipe("hevc-closed.mkv"));
  const std::uint64_t size_ = std::filesystem::file_size(path_);
  testing_support::temp_dir files_;
  const std::string directory_ = files_ / "indexes";
  test::mounted_store store_{"index-video://"};
  runtime runs_;
};

TEST_F(LoadWithAnIndex, TheNextVideoReadsThePacketsOfItsWindowOnly) {
  const load_video_options options{.window = {.begin = 0, .end = rational(1, 5)},
                                   .index_directory = directory_};
  EXPECT_GE(bytes_of(load_video("index-video://a.mkv", options)), size_);
  EXPECT_LT(bytes_of(load_video("index-video://a.mkv", options)), size_ / 2);
  const auto first = sync_wait(runs_, load_video("index-video://a.mkv", options));
  const auto expected = sync_wait(runs_, load_video(path_, {.window = options.window}));
  EXPECT_EQ(first.times(), expected.times());
  EXPECT_TRUE(same_elements(first.frames(), expected.frames()));
}

TEST_F(LoadWithAnIndex, TheNextClipReadsThePacketsOfItsFramesOnly) {
  const clip_options options{.sampling = {.frames = 3, .position = clip_position::first},
                             .width = 24,
                             .height = 16,
                             .index_directory = directory_};
  EXPECT_GE(bytes_of(load_clip("index-video://a.mkv", options)), size_);
  EXPECT_LT(bytes_of(load_clip("index-video://a.mkv", options)), size_ / 2);
  const auto clip = sync_wait(runs_, load_clip("index-video://a.mkv", options));
  auto without = options;
  without.index_directory = {};
  EXPECT_TRUE(same_elements(clip, sync_wait(runs_, load_clip(path_, without))));
}

TEST(LoadVideo, IsOfTheStreamThatIsChosen) {
  const auto path = two_videos();
  runtime runs;
  const auto loaded = sync_wait(runs, load_video(path, {.stream = 1}));
  ASSERT_EQ(loaded.frames().shape(), (dimensions{10, 48, 64, 3}));
  const video second(read_bytes(path), path, {.stream = 1});
  const auto expected = to_tensor(second.frames(std::vector<std::int64_t>{7})[0]);
  EXPECT_TRUE(same_elements(loaded.frames()[7], expected));
}

// The pictures of the window are small enough, and those behind it are not.
TEST(LoadVideo, WithALaterPictureOfTooManyPixelsIsRefused) {
  runtime runs;
  const auto path = growing_video();
  load_video_options options{.window = {.begin = 0, .end = rational(1, 5)}};
  EXPECT_EQ(sync_wait(runs, load_video(path, options)).frames().shape()[0], 5);
  options.decoding.max_pixels = 64 * 48;
  EXPECT_THROW(sync_wait(runs, load_video(path, options)), error);
}

TEST(LoadVideo, IsOneLineInAPipeline) {
  const std::vector<std::string> paths{loaded_path(), video_path(video_recipe("mpeg2.ts"))};
  runtime runs;
  std::size_t next = 0;
  for (const auto& loaded :
       runs.run(from(paths) | map([](const std::string& path) { return load_video(path); }))) {
    runtime others;
    const auto expected = sync_wait(others, load_video(paths.at(next++)));
    EXPECT_EQ(loaded.times(), expected.times());
    EXPECT_TRUE(same_elements(loaded.frames(), expected.frames()));
  }
  EXPECT_EQ(next, 2U);
}

TEST(LoadClip, IsOneLineInAPipeline) {
  static constexpr clip_options options{.sampling = {.frames = 3}, .width = 24, .height = 16};
  const std::vector<std::string> paths{loaded_path(), video_path(video_recipe("mpeg2.ts"))};
  runtime runs;
  std::size_t next = 0;
  for (const auto& clip : runs.run(from(paths) | map([](const std::string& path) {
                                     return load_clip(path, options, random(3));
                                   }))) {
    const auto in = sample(paths.at(next)).with_data(read_bytes(paths.at(next)));
    EXPECT_TRUE(same_elements(clip, decode_clip(options)(in, random(3))));
    ++next;
  }
  EXPECT_EQ(next, 2U);
}

TEST(LoadVideo, TakesItsTensorFromTheMemoryOfTheRuntime) {
  runtime runs;
  {
    const auto loaded = sync_wait(runs, load_video(loaded_path()));
    EXPECT_GE(runs.memory().stats().used_bytes, loaded.frames().spec().bytes());
  }
  EXPECT_EQ(runs.memory().stats().used_bytes, 0U);
}

TEST(LoadClip, TakesItsTensorFromTheMemoryOfTheRuntime) {
  runtime runs;
  {
    const auto clip = sync_wait(runs, load_clip(loaded_path(), {.width = 96, .height = 64}));
    EXPECT_GE(runs.memory().stats().used_bytes, clip.spec().bytes());
  }
  EXPECT_EQ(runs.memory().stats().used_bytes, 0U);
}

}  // namespace lade::media::load_video_test
