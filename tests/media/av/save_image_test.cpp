#include <lade/media/av/save_image.hpp>

#include "encoded.hpp"

#include <gmock/gmock.h>

#include <cstring>

namespace lade::media {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(SaveImage, RestoresRandomPixelsOfPngBmpAndTiff) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  const auto picture = random_pictures({37, 53, 3}, seed);
  for (const char* name : {"a.png", "a.bmp", "a.tif", "b.TIFF"}) {
    const auto path = media_directory / name;
    save_image(path, picture);
    const auto decoded = rgb_of_ffmpeg(path);
    ASSERT_EQ(decoded.size(), picture.spec().bytes()) << name;
    EXPECT_EQ(std::memcmp(decoded.data(), picture.bytes(), decoded.size()), 0) << name;
  }
}

TEST(SaveImage, StaysCloseWithJpegAndWebp) {
  const auto picture = smooth_pictures(1, 96, 160)[0];
  for (const auto& [name, quality] : {std::pair{"a.jpg", 2.0}, {"a.webp", 95.0}}) {
    const auto path = media_directory / name;
    save_image(path, picture, {.quality = quality});
    const auto decoded = rgb_of_ffmpeg(path);
    ASSERT_EQ(decoded.size(), picture.spec().bytes()) << name;
    EXPECT_GT(psnr(decoded.data(), picture.data<std::uint8_t>(), decoded.size()), 36) << name;
  }
}

TEST(SaveImage, HasASmallerFileWithALowerQuality) {
  const auto picture = smooth_pictures(1, 96, 160)[0];
  for (const auto& [name, good, bad] : {std::tuple{"q.jpg", 2.0, 20.0}, {"q.webp", 95.0, 20.0}}) {
    const auto path = media_directory / name;
    save_image(path, picture, {.quality = good});
    const auto larger = std::filesystem::file_size(path);
    save_image(path, picture, {.quality = bad});
    EXPECT_LT(std::filesystem::file_size(path), larger) << name;
  }
}

TEST(SaveImage, WritesFramesOfVideosAsFfmpegConvertsThem) {
  const auto frames = frames_of_file(video_path(all_videos[0]), stream_kind::video);
  const auto path = media_directory / "frame.png";
  save_image(path, frames[3]);
  const auto decoded = rgb_of_ffmpeg(path);
  const auto expected = rgb_of_ffmpeg(video_path(all_videos[0]));
  ASSERT_EQ(decoded.size(), 178U * 98 * 3);
  EXPECT_EQ(std::memcmp(decoded.data(), expected.data() + 3 * decoded.size(), decoded.size()), 0);
}

TEST(SaveImage, RefusesWhatItCannotWrite) {
  const auto picture = random_pictures({8, 8, 3}, 1);
  const auto expect = [&](const std::string& path, const save_image_options& options,
                          const char* text) {
    EXPECT_THAT([&] { save_image(path, picture, options); }, ThrowsMessage<error>(HasSubstr(text)));
  };
  expect("a.gif", {}, "write a.gif: images are png, jpg");
  expect("a.png", {.quality = 3}, "write a.png: the encoder has no such quality");
  expect("a.png", {.options = "nosuch=1"}, "unknown option nosuch");
  expect("/nosuch/a.png", {}, "write /nosuch/a.png: No such file or directory");
  EXPECT_THAT([] { save_image("a.png", tensor(element_type::u8, {8, 8})); },
              ThrowsMessage<error>(HasSubstr("pictures are u8 [height, width, 3]")));
}

}  // namespace lade::media
