#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/media/load_image.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>

#include "../support/mounted_store.hpp"
#include "images.hpp"
#include "pillow.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace lade::media::load_image_test {

static std::vector<std::string> photo_paths() {
  std::vector<std::string> paths;
  for (const auto& each : photos()) paths.push_back(each.string());
  return paths;
}

static bool same_pixels(const tensor& a, const tensor& b) {
  return a.spec() == b.spec() && std::memcmp(a.bytes(), b.bytes(), a.spec().bytes()) == 0;
}

TEST(LoadImage, IsWhatDecodeImageMakesOfTheFile) {
  runtime runs;
  const auto path = photos()[0];
  const auto loaded = sync_wait(runs, load_image(path.string(), {.width = 40, .height = 30}));
  EXPECT_TRUE(same_pixels(loaded, decode_image({.width = 40, .height = 30})(load(path))));
}

TEST(LoadImages, AreOneTensorInTheOrderOfThePaths) {
  runtime runs;
  const auto paths = photo_paths();
  const auto loaded = sync_wait(runs, load_images(paths, {.width = 40, .height = 30}, {}, 2));
  ASSERT_EQ(loaded.shape()[0], static_cast<std::int64_t>(paths.size()));
  for (std::size_t i = 0; i < paths.size(); ++i)
    EXPECT_TRUE(same_pixels(loaded[static_cast<std::int64_t>(i)],
                            sync_wait(runs, load_image(paths[i], {.width = 40, .height = 30}))));
}

TEST(LoadImage, IsOneLineInAPipeline) {
  runtime runs;
  std::size_t next = 0;
  for (const auto& loaded : runs.run(from(photo_paths()) | map([](const std::string& path) {
                                       return load_image(path, {.width = 40, .height = 30});
                                     }))) {
    const auto expected = decode_image({.width = 40, .height = 30})(load(photos()[next++]));
    EXPECT_TRUE(same_pixels(loaded, expected));
  }
  EXPECT_EQ(next, photos().size());
}

TEST(LoadImages, AreOneLineInAPipeline) {
  runtime runs;
  const std::vector<std::vector<std::string>> groups{photo_paths(), {photo_paths()[0]}};
  std::vector<std::int64_t> sizes;
  for (const auto& loaded : runs.run(from(groups) | map([](const std::vector<std::string>& paths) {
                                       return load_images(paths, {.width = 40, .height = 30});
                                     }))) {
    sizes.push_back(loaded.shape()[0]);
    EXPECT_TRUE(
        same_pixels(loaded[0], decode_image({.width = 40, .height = 30})(load(photos()[0]))));
  }
  const auto all = static_cast<std::int64_t>(photos().size());
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{all, 1}));
}

TEST(LoadImages, AFileThatIsNotThereIsNamed) {
  runtime runs;
  auto paths = photo_paths();
  paths.push_back("/no/such.jpg");
  EXPECT_THAT([&] { sync_wait(runs, load_images(paths, {.width = 8, .height = 8})); },
              testing::ThrowsMessage<error>(testing::HasSubstr("/no/such.jpg")));
}

TEST(LoadImages, WithoutASizeAreRefused) {
  runtime runs;
  EXPECT_THROW(sync_wait(runs, load_images(photo_paths(), {})), error);
  EXPECT_THROW(sync_wait(runs, load_images(photo_paths(), {.width = 8, .height = 8}, {}, 0)),
               error);
}

TEST(LoadImage, EndsWithAStopAtAnyRead) {
  test::mounted_store store("stopped-image://");
  store->put("stopped-image://a.jpg", std::string(load(photos()[0]).data().text()));
  test::expect_stop_at_any_request(store, [] { return load_image("stopped-image://a.jpg"); });
}

TEST(LoadImages, EndWithAStopAtAnyRead) {
  test::mounted_store store("stopped-images://");
  std::vector<std::string> urls;
  for (const auto& each : photos()) {
    urls.push_back("stopped-images://" + each.filename().string());
    store->put(urls.back(), std::string(load(each).data().text()));
  }
  for (const unsigned concurrency : {1U, 3U})
    test::expect_stop_at_any_request(
        store, [&] { return load_images(urls, {.width = 40, .height = 30}, {}, concurrency); });
}

}  // namespace lade::media::load_image_test
