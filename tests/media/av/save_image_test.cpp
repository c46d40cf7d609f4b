#include <lade/media/av/save_image.hpp>

#include "encoded.hpp"
#include "file_size_limit.hpp"

#include <lade/media/image.hpp>
#include <lade/sample.hpp>

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <tuple>

namespace lade::media::save_image_test {

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

TEST(SaveImage, RefusesQualitiesOutsideOfTheRangeOfTheFormat) {
  const auto picture = random_pictures({8, 8, 3}, 1);
  for (const auto& [format, quality, range] : {std::tuple{"jpg", 90.0, "from 2 (best) to 31"},
                                               {"jpeg", 1.0, "from 2 (best) to 31"},
                                               {"jpg", -5.0, "from 2 (best) to 31"},
                                               {"jpg", double{NAN}, "from 2 (best) to 31"},
                                               {"webp", 101.0, "from 100 (best) to 0"},
                                               {"webp", -1.0, "from 100 (best) to 0"}}) {
    const auto quality_must_be = std::string("): quality must be ") + range;
    EXPECT_THAT([&] { (void)encode_image(picture, format, {.quality = quality}); },
                ThrowsMessage<error>(HasSubstr(quality_must_be)))
        << format << " " << quality;
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

// The first picture of a video that is to be shown in another way.
static frame turned(display_orientation how, const std::string& upright) {
  const auto packets = demux(read_bytes(upright), upright, stream_kind::video);
  const auto path = media_directory / "turned.mp4";
  muxer to(path);
  to.set_orientation(to.add(packets.stream()), how);
  for (const auto& each : packets) to.write(0, each);
  to.finish();
  return frames_of_file(path, stream_kind::video).at(0);
}

static std::string upright_video(const std::string& pixel_format) {
  const auto path = media_directory / (pixel_format + ".mkv");
  media_files::run("-f lavfi -i testsrc2=size=178x98 -frames:v 1 -c:v libx264 -pix_fmt " +
                   pixel_format + " " + path);
  return path;
}

// The ffmpeg program turns frames as their stream says.
TEST(SaveImage, WritesFramesAsTheyAreShown) {
  const auto upright = upright_video("yuv444p");
  for (const int degrees : {0, 90, 180, 270})
    for (const bool mirrored : {false, true}) {
      const auto picture = turned({.degrees = degrees, .mirrored = mirrored}, upright);
      const auto shown = output_of_ffmpeg(
          "-i " + (media_directory / "turned.mp4") +
          " -sws_flags bilinear+accurate_rnd+full_chroma_int+full_chroma_inp -pix_fmt rgb24"
          " -f rawvideo -");
      for (const auto& [format, least] :
           {std::pair{"png", 50.0}, {"bmp", 50.0}, {"jpg", 20.0}, {"webp", 20.0}}) {
        const auto written = decode_image()(sample("a").with_data(encode_image(picture, format)));
        const bool sideways = degrees % 180 == 90;
        ASSERT_EQ(written.shape(), (sideways ? dimensions{178, 98, 3} : dimensions{98, 178, 3}));
        ASSERT_EQ(written.spec().bytes(), shown.size());
        EXPECT_GT(psnr(written.data<std::uint8_t>(),
                       reinterpret_cast<const std::uint8_t*>(shown.data()), shown.size()),
                  least)
            << format << " " << degrees << (mirrored ? " mirrored" : "");
      }
    }
}

TEST(SaveImage, WritesFramesAsTheyAreStoredIfAsked) {
  const auto upright = upright_video("yuv420p");
  const auto lying = turned({.degrees = 90}, upright);
  EXPECT_EQ(encode_image(lying, "png", {.orient = false}).text(),
            encode_image(frames_of_file(upright, stream_kind::video).at(0), "png").text());
  EXPECT_NE(encode_image(lying, "png").text(),
            encode_image(lying, "png", {.orient = false}).text());
}

TEST(SaveImage, TurnsGreyAndBitsOfOnePlane) {
  const auto upright = upright_video("gray");
  for (const char* format : {"gray", "gray16be", "rgb48be", "monob", "rgba"}) {
    const auto file =
        encode_image(turned({.degrees = 90}, upright), "png", {.pixel_format = format});
    EXPECT_EQ(decode_image()(sample("a").with_data(file)).shape(), (dimensions{178, 98, 3}))
        << format;
  }
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
  expect("a.jpg", {.options = "video_size=9x9"}, "the option video_size");
  expect("a.png", {.tensor_layout = image_layout{2}}, "tensor_layout is no value of image_layout");
  expect("png", {}, "write png: images are png, jpg");
  EXPECT_THAT([] { save_image("a.png", tensor(element_type::u8, {8, 8})); },
              ThrowsMessage<error>(HasSubstr("pictures are u8 [height, width, 1, 3 or 4]")));
  EXPECT_THAT([] { save_image("a.jpg", random_pictures({8, 8, 4}, 1)); },
              ThrowsMessage<error>(HasSubstr("has alpha, which yuv420p has not")));
  EXPECT_THAT([&] { (void)encode_image(picture, "gif"); },
              ThrowsMessage<error>(HasSubstr("encode an image (gif): images are png, jpg")));
  EXPECT_THAT(
      [&] { (void)encode_image(picture, "png", {.quality = 3}); },
      ThrowsMessage<error>(HasSubstr("encode an image (png): the encoder has no such quality")));
  EXPECT_THAT([] { (void)encode_image(random_pictures({8, 8}, 1), "png"); },
              ThrowsMessage<error>(HasSubstr("encode an image (png): pictures are u8")));
  const auto path = media_files::path(all_sounds[0], sounding);
  const auto sound = frames_of_file(path, stream_kind::audio)[0];
  EXPECT_THAT([&] { (void)encode_image(sound, "png"); },
              ThrowsMessage<error>(HasSubstr("encode an image (png): the frame is audio")));
  EXPECT_THAT([&] { save_image("a.png", sound); },
              ThrowsMessage<error>(HasSubstr("write a.png: the frame is audio")));
  EXPECT_THAT([&] { save_image("/nosuch/a.png", sound); }, testing::Throws<error>());
}

static std::string bytes_of(const tensor& of) {
  return {reinterpret_cast<const char*>(of.bytes()), of.spec().bytes()};
}

TEST(SaveImage, ImagesInMemoryAreDecodedAgain) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  const auto picture = random_pictures({37, 53, 3}, seed);
  const decode_image decode;
  for (const char* format : {"png", "bmp", "tiff", "TIF"})
    EXPECT_EQ(bytes_of(decode(sample("a").with_data(encode_image(picture, format)))),
              bytes_of(picture))
        << format;
  auto webp = encode_image(picture, "webp", {.pixel_format = "bgra", .options = "lossless=1"});
  EXPECT_EQ(bytes_of(decode(sample("a").with_data(std::move(webp)))), bytes_of(picture));
  const auto smooth = smooth_pictures(1, 96, 160)[0];
  for (const char* format : {"jpeg", "jpg", "webp"}) {
    const auto decoded = decode(sample("a").with_data(encode_image(smooth, format)));
    ASSERT_EQ(decoded.shape(), smooth.shape());
    EXPECT_GT(
        psnr(decoded.data<std::uint8_t>(), smooth.data<std::uint8_t>(), smooth.spec().bytes()), 28)
        << format;
  }
}

TEST(SaveImage, GreyIsDecodedAsRgbOfEqualChannels) {
  const auto grey = random_pictures({37, 53, 1}, 1);
  for (const char* format : {"png", "bmp", "tiff"}) {
    const auto rgb = decode_image()(sample("a").with_data(encode_image(grey, format)));
    ASSERT_EQ(rgb.shape(), (dimensions{37, 53, 3}));
    for (std::int64_t i = 0; i < 37 * 53 * 3; ++i)
      ASSERT_EQ(rgb.data<std::uint8_t>()[i], grey.data<std::uint8_t>()[i / 3]) << format << i;
  }
}

TEST(SaveImage, WritesTheBytesThatEncodeImageReturns) {
  const auto picture = random_pictures({37, 53, 3}, 1);
  const auto frame = frames_of_file(video_path(all_videos[0]), stream_kind::video)[3];
  for (const std::string format : {"png", "jpg", "webp", "bmp", "tiff"}) {
    const auto path = media_directory / ("same." + format);
    save_image(path, picture);
    EXPECT_TRUE(read_bytes(path).text() == encode_image(picture, format).text()) << format;
    save_image(path, frame);
    EXPECT_TRUE(read_bytes(path).text() == encode_image(frame, format).text()) << format;
  }
}

TEST(SaveImage, ReportsADiskThatIsFullAtAnyPlaceAndLeavesTheOldImage) {
  const auto picture = random_pictures({37, 53, 3}, 1);
  const auto frame = frames_of_file(video_path(all_videos[0]), stream_kind::video)[3];
  for (const std::string format : {"png", "jpg", "webp", "bmp", "tiff"}) {
    const auto path = media_directory / ("full." + format);
    save_image(path, frame);
    const std::string old(read_bytes(path).text());
    const auto size = encode_image(picture, format).size();
    for (const auto limit : {std::size_t{0}, std::size_t{1}, size / 2, size - 1}) {
      const file_size_limit full(limit);
      EXPECT_THAT([&] { save_image(path, picture); },
                  ThrowsMessage<error>(HasSubstr("write " + path + ": File too large")))
          << limit << " of " << size;
      EXPECT_TRUE(read_bytes(path).text() == old) << format;
    }
    save_image(path, picture);
    EXPECT_EQ(std::filesystem::file_size(path), size);
  }
}

TEST(SaveImage, ReportsADeviceThatIsFull) {
  const auto picture = random_pictures({37, 53, 3}, 1);
  const auto device = media_directory / "full-device.png";
  std::filesystem::create_symlink("/dev/full", std::string(device));
  EXPECT_THAT([&] { save_image(device, picture); },
              ThrowsMessage<error>(HasSubstr("No space left on device")));
}

TEST(SaveImage, RestoresGreyRgbaAndPlanes) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  for (const auto& [format, channels, pixel_format] : {std::tuple{"png", 1, "gray"},
                                                       {"png", 4, "rgba"},
                                                       {"tif", 1, "gray"},
                                                       {"tif", 4, "rgba"},
                                                       {"png", 3, "rgb24"},
                                                       {"tif", 3, "rgb24"}}) {
    const auto planes = random_pictures({channels, 37, 53}, seed);
    tensor rows(element_type::u8, {37, 53, channels});
    for (std::int64_t i = 0; i < 37 * 53; ++i)
      for (std::int64_t c = 0; c < channels; ++c)
        rows.data<std::uint8_t>()[i * channels + c] = planes.data<std::uint8_t>()[c * 37 * 53 + i];
    const auto path = media_directory / (std::string("channels.") + format);
    const auto decoded = [&] {
      return output_of_ffmpeg("-i " + path + " -pix_fmt " + pixel_format + " -f rawvideo -");
    };
    save_image(path, rows);
    EXPECT_TRUE(decoded() == bytes_of(rows)) << format << " " << pixel_format;
    save_image(path, planes, {.tensor_layout = image_layout::chw});
    EXPECT_TRUE(decoded() == bytes_of(rows)) << format << " " << pixel_format << " chw";
  }
}

}  // namespace lade::media::save_image_test
