#include <lade/media/av/encoder.hpp>

#include "../../support/guarded_row.hpp"
#include "encoded.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <span>

namespace lade::media::encoder_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

// A small video with an encoder that takes everything.
static video_encode_options raw_video(std::string_view pixel_format) {
  return {.encoder = "rawvideo",
          .width = 16,
          .height = 4,
          .frame_rate = 25,
          .pixel_format = pixel_format};
}

static std::vector<std::uint8_t> encoded_bytes(video_encoder& encoder, const tensor& pictures) {
  encoder.send(pictures);
  encoder.finish();
  std::vector<std::uint8_t> bytes;
  while (auto next = encoder.receive())
    for (const auto each : next->data()) bytes.push_back(static_cast<std::uint8_t>(each));
  return bytes;
}

static video_encode_options small_video() {
  return {.encoder = "libx264", .width = 16, .height = 16, .frame_rate = 25};
}

static tensor picture_of_colour(const std::array<int, 3>& colour) {
  tensor picture(element_type::u8, {4, 16, 3});
  for (std::size_t i = 0; i < picture.spec().elements(); ++i)
    picture.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(colour[i % 3]);
  return picture;
}

// Weights of red and blue in luma: Rec. ITU-R BT.601, BT.709 and BT.2020, table of signal formats.
struct matrix_weights {
  const char* name;
  double red;
  double blue;
};

static constexpr matrix_weights bt601{"smpte170m", 0.299, 0.114};

static std::array<double, 3> expected_yuv(const matrix_weights& of, bool full,
                                          const std::array<int, 3>& rgb) {
  const double y = of.red * rgb[0] + (1 - of.red - of.blue) * rgb[1] + of.blue * rgb[2];
  const double u = (rgb[2] - y) / (2 * (1 - of.blue));
  const double v = (rgb[0] - y) / (2 * (1 - of.red));
  const double luma = full ? 1 : 219.0 / 255;
  const double chroma = full ? 1 : 224.0 / 255;
  return {y * luma + (full ? 0 : 16), u * chroma + 128, v * chroma + 128};
}

TEST(VideoEncoder, ConvertsByTheMatrixAndRangeThatItStates) {
  for (const auto& matrix :
       {bt601, matrix_weights{"bt709", 0.2126, 0.0722}, matrix_weights{"bt2020nc", 0.2627, 0.0593}})
    for (const bool full : {false, true})
      for (const auto& rgb :
           {std::array{255, 0, 0}, std::array{0, 255, 0}, std::array{0, 0, 255},
            std::array{255, 255, 255}, std::array{0, 0, 0}, std::array{12, 200, 77}}) {
        auto options = raw_video("yuv444p");
        options.colour = {.matrix = matrix.name, .range = full ? "pc" : "tv"};
        video_encoder encoder(options);
        const auto bytes = encoded_bytes(encoder, picture_of_colour(rgb));
        const auto expected = expected_yuv(matrix, full, rgb);
        ASSERT_EQ(bytes.size(), 3U * 64);
        for (std::size_t c = 0; c < 3; ++c)
          EXPECT_NEAR(bytes[c * 64], std::min(expected[c], 255.0), 1.1)
              << matrix.name << (full ? " full " : " limited ") << testing::PrintToString(rgb);
      }
}

static video_encode_options coloured_video(const char* matrix, const char* range) {
  return {.encoder = "ffv1",
          .width = 64,
          .height = 48,
          .frame_rate = 25,
          .pixel_format = "yuv444p",
          .colour = {.matrix = matrix, .primaries = "bt709", .transfer = "bt709", .range = range}};
}

TEST(VideoEncoder, ConvertsFramesOfOtherColours) {
  const auto pictures = smooth_pictures(3, 48, 64);
  const auto path = media_directory / "bt709.mkv";
  video_encoder first(coloured_video("bt709", "tv"));
  write_encoded(path, first, pictures);
  const auto again = media_directory / "bt601.mkv";
  video_encoder second(coloured_video("smpte170m", "pc"));
  muxer file(again);
  const int stream = file.add(second.stream());
  for (const auto& each : frames_of_file(path, stream_kind::video)) second.send(each);
  second.finish();
  file.write_ready(stream, second);
  file.finish();
  const auto converted = frames_of_file(again, stream_kind::video);
  ASSERT_EQ(converted.size(), 3U);
  EXPECT_EQ(converted[2].colour().matrix, "smpte170m");
  EXPECT_EQ(converted[2].colour().range, "pc");
  for (std::int64_t y = 0; y < 48; ++y)
    for (std::int64_t x = 0; x < 64; ++x) {
      const auto* rgb = pictures[2][y][x].data<std::uint8_t>();
      const auto expected = expected_yuv(bt601, true, {rgb[0], rgb[1], rgb[2]});
      for (int c = 0; c < 3; ++c)
        ASSERT_NEAR(*converted[2].plane(c)[y][x].data<std::uint8_t>(),
                    expected[static_cast<std::size_t>(c)], 2)
            << "row " << y << ", column " << x;
    }
}

TEST(VideoEncoder, PutsChromaOfHalfTheWidthAtTheLeftOfItsPixels) {
  tensor ramp(element_type::u8, {4, 16, 3});  // blue rises by 16 from pixel to pixel
  for (int i = 0; i < 64; ++i) {
    auto* pixel = ramp.data<std::uint8_t>() + std::ptrdiff_t{3} * i;
    pixel[0] = pixel[1] = 0;
    pixel[2] = static_cast<std::uint8_t>(i % 16 * 16);
  }
  video_encoder half(raw_video("yuv420p"));
  video_encoder all(raw_video("yuv444p"));
  const auto subsampled = encoded_bytes(half, ramp);
  const auto whole = encoded_bytes(all, ramp);
  for (std::size_t x = 1; x < 7; ++x)
    EXPECT_NEAR(subsampled[64 + x], whole[64 + 2 * x], 1) << "chroma sample " << x;
}

TEST(VideoEncoder, TakesRowsOfAnyStride) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  const auto wide = random_pictures({4, 40, 3}, seed);
  tensor plain(element_type::u8, {4, 16, 3});
  for (std::int64_t y = 0; y < 4; ++y)
    std::memcpy(plain.bytes() + y * 48, wide.bytes() + (3 - y) * 120 + 15, 48);
  const tensor turned(plain.spec(), {-120, 3, 1}, wide.memory(),
                      wide.bytes() + std::ptrdiff_t{3} * 120 + 15);
  video_encoder first(raw_video("yuv420p"));
  video_encoder second(raw_video("yuv420p"));
  EXPECT_EQ(encoded_bytes(first, turned), encoded_bytes(second, plain));
}

// The tensor's bytes, directly before memory that no one may read.
static tensor guarded(const tensor& from) {
  const auto* first = from.data<std::uint8_t>();
  const std::vector<std::uint8_t> bytes(first, first + from.spec().bytes());
  auto row = std::make_shared<test::guarded_row<std::uint8_t>>(bytes);
  const std::span memory(reinterpret_cast<std::byte*>(row->data()), bytes.size());
  return tensor(from.spec(), buffer(std::move(row), memory));
}

TEST(VideoEncoder, ReadsNothingBehindTheLastPixel) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  for (const std::int64_t channels : {1, 3, 4})
    for (const auto layout : {image_layout::hwc, image_layout::chw})
      for (const auto* format : {"yuv420p", "yuv444p", "yuva420p", "bgra", "gbrap", "nv12"}) {
        if (channels == 4 && std::string_view(format).find('a') == std::string_view::npos) continue;
        auto options = raw_video(format);
        options.tensor_layout = layout;
        const dimensions shape =
            layout == image_layout::hwc ? dimensions{4, 16, channels} : dimensions{channels, 4, 16};
        const auto picture = random_pictures(shape, seed);
        video_encoder plain(options);
        video_encoder last(options);
        EXPECT_EQ(encoded_bytes(last, guarded(picture)), encoded_bytes(plain, picture)) << format;
      }
}

TEST(VideoEncoder, MakesOfATensorWhatItMakesOfAFrame) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  const auto pictures = random_pictures({1, 98, 178, 3}, seed);
  const auto path = media_directory / "one.avi";
  auto options = raw_video("bgr24");
  options.width = 178;
  options.height = 98;
  video_encoder stored(options);
  write_encoded(path, stored, pictures);
  const auto frames = frames_of_file(path, stream_kind::video);
  ASSERT_EQ(frames.size(), 1U);
  for (const auto* format : {"yuv420p", "yuv422p", "yuv444p", "gbrp", "rgb0", "yuv410p"}) {
    options.pixel_format = format;
    video_encoder of_frame(options);
    video_encoder of_tensor(options);
    of_frame.send(frames[0]);
    of_frame.finish();
    std::vector<std::uint8_t> expected;
    while (auto next = of_frame.receive())
      for (const auto each : next->data()) expected.push_back(static_cast<std::uint8_t>(each));
    EXPECT_EQ(encoded_bytes(of_tensor, pictures), expected) << format;
  }
}

TEST(VideoEncoder, EncodesABatchAsItsPictures) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  const auto pictures = random_pictures({5, 4, 16, 3}, seed);
  video_encoder batch(raw_video("rgb24"));
  video_encoder single(raw_video("rgb24"));
  for (std::int64_t i = 0; i < 4; ++i) single.send(pictures[i]);
  EXPECT_EQ(encoded_bytes(single, pictures[4]), encoded_bytes(batch, pictures));
}

// How a file is encoded without loss.
struct lossless_case {
  const char* file;
  const char* encoder;
  const char* pixel_format;
  const char* options;
};

TEST(VideoEncoder, WithoutLossRestoresRandomPictures) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  const auto pictures = random_pictures({6, 98, 178, 3}, seed);
  for (const auto& each : {lossless_case{"random.mkv", "ffv1", "bgr0", ""},
                           lossless_case{"random.mov", "png", "rgb24", ""},
                           lossless_case{"random.mp4", "libx264rgb", "rgb24", "qp=0"},
                           lossless_case{"random.avi", "rawvideo", "bgr24", ""}}) {
    const auto path = media_directory / each.file;
    video_encoder encoder({.encoder = each.encoder,
                           .width = 178,
                           .height = 98,
                           .frame_rate = rational(30000, 1001),
                           .pixel_format = each.pixel_format,
                           .options = each.options});
    write_encoded(path, encoder, pictures);
    const auto decoded = rgb_of_ffmpeg(path);
    ASSERT_EQ(decoded.size(), pictures.spec().bytes()) << each.file;
    EXPECT_EQ(std::memcmp(decoded.data(), pictures.bytes(), decoded.size()), 0) << each.file;
  }
}

TEST(VideoEncoder, WithoutLossRestoresFramesAndTheirTimes) {
  for (const auto& recipe : all_videos) {
    const std::string name = recipe.file;
    if (name != "h264-444.mkv" && name != "h264-variable.mkv" && name != "h264-422-10.mkv" &&
        name != "vp9.webm" && name != "mpeg4-b.mp4" && name != "h264-open-gop.mp4")
      continue;
    const auto source = frames_of_file(video_path(recipe), stream_kind::video);
    const auto format = source[0].pixel_format();
    const bool h264 = format != "yuv420p";
    const auto path = media_directory / ("again-" + name + ".mkv");
    video_encoder encoder({.encoder = h264 ? "libx264" : "ffv1",
                           .width = source[0].width(),
                           .height = source[0].height(),
                           .frame_rate = 25,
                           .time_base = source[0].time_base(),
                           .pixel_format = format,
                           .colour = source[0].colour(),
                           .options = h264 ? "qp=0" : ""});
    muxer file(path);
    const int stream = file.add(encoder.stream());
    for (const auto& each : source) {
      encoder.send(each);
      file.write_ready(stream, encoder);
    }
    encoder.finish();
    file.write_ready(stream, encoder);
    file.finish();
    const auto again = frames_of_file(path, stream_kind::video);
    ASSERT_EQ(again.size(), source.size()) << name;
    for (std::size_t i = 0; i < source.size(); ++i)
      EXPECT_EQ(digest_of(again[i]), digest_of(source[i])) << name << " frame " << i;
  }
}

// [n, channels, height, width] of [n, height, width, channels].
static tensor channels_first(const tensor& pictures) {
  const auto& of = pictures.shape();
  tensor turned(element_type::u8, {of[0], of[3], of[1], of[2]});
  auto* out = turned.data<std::uint8_t>();
  for (std::int64_t n = 0; n < of[0]; ++n)
    for (std::int64_t c = 0; c < of[3]; ++c)
      for (std::int64_t y = 0; y < of[1]; ++y)
        for (std::int64_t x = 0; x < of[2]; ++x) *out++ = pictures[n][y][x].data<std::uint8_t>()[c];
  return turned;
}

// How tensors of some channels are encoded without loss.
struct channels_case {
  std::int64_t channels;
  const char* encoder;
  const char* pixel_format;
  const char* decoded;  // the same channels, as FFmpeg calls them
};

TEST(VideoEncoder, WithoutLossRestoresGreyRgbAndRgbaOfBothLayouts) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  for (const auto& each :
       {channels_case{1, "ffv1", "gray", "gray"}, channels_case{1, "png", "gray", "gray"},
        channels_case{3, "ffv1", "bgr0", "rgb24"}, channels_case{3, "png", "rgb24", "rgb24"},
        channels_case{3, "libx264rgb", "rgb24", "rgb24"}, channels_case{4, "ffv1", "bgra", "rgba"},
        channels_case{4, "png", "rgba", "rgba"}, channels_case{3, "png", "rgba", "rgb24"}}) {
    const bool png = each.encoder == std::string_view("png");
    const auto path = media_directory / (png ? "channels.mov" : "channels.mkv");
    const auto pictures = random_pictures({3, 26, 38, each.channels}, seed);
    const std::string expected(reinterpret_cast<const char*>(pictures.bytes()),
                               pictures.spec().bytes());
    for (const auto layout : {image_layout::hwc, image_layout::chw}) {
      video_encoder encoder(
          {.encoder = each.encoder,
           .width = 38,
           .height = 26,
           .frame_rate = 25,
           .pixel_format = each.pixel_format,
           .options = each.encoder == std::string_view("libx264rgb") ? "qp=0" : "",
           .tensor_layout = layout});
      write_encoded(path, encoder,
                    layout == image_layout::hwc ? pictures : channels_first(pictures));
      EXPECT_TRUE(output_of_ffmpeg("-i " + path + " -pix_fmt " + each.decoded + " -f rawvideo -") ==
                  expected)
          << each.encoder << " " << each.pixel_format
          << (layout == image_layout::hwc ? "" : " chw");
    }
  }
}

TEST(VideoEncoder, BothLayoutsBecomeTheSameYuvWithinALevel) {
  const auto pictures = smooth_pictures(1, 4, 16);
  auto options = raw_video("yuv420p");
  video_encoder rows(options);
  options.tensor_layout = image_layout::chw;
  video_encoder planes(options);
  const auto first = encoded_bytes(rows, pictures);
  const auto second = encoded_bytes(planes, channels_first(pictures));
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(first[i], second[i], 1) << i;
}

TEST(VideoEncoder, GreyIsOfTheFullRange) {
  tensor ramp(element_type::u8, {4, 16, 1});
  for (int i = 0; i < 64; ++i) ramp.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(4 * i);
  auto options = raw_video("yuv444p");
  video_encoder limited(options);
  const auto bytes = encoded_bytes(limited, ramp);
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_NEAR(bytes[i], 16 + static_cast<double>(4 * i) * 219 / 255, 1);
    EXPECT_EQ(bytes[64 + i], 128);
  }
}

TEST(VideoEncoder, RefusesChannelsThatDoNotFit) {
  const auto expect = [](image_layout layout, const tensor& picture, const char* text) {
    auto options = small_video();
    options.tensor_layout = layout;
    video_encoder encoder(options);
    EXPECT_THAT([&] { encoder.send(picture); }, ThrowsMessage<error>(HasSubstr(text)));
  };
  using enum image_layout;
  expect(hwc, random_pictures({16, 16, 4}, 1), "the picture has alpha, which yuv420p has not");
  expect(chw, random_pictures({4, 16, 16}, 1), "the picture has alpha, which yuv420p has not");
  expect(hwc, random_pictures({16, 16, 2}, 1), "pictures are u8 [height, width, 1, 3 or 4]");
  expect(chw, random_pictures({16, 16, 3}, 1), "pictures are u8 [1, 3 or 4, height, width]");
  expect(chw, random_pictures({3, 16, 18}, 1), "the picture is 18 x 16, not 16 x 16");
  expect(hwc, channels_first(random_pictures({1, 16, 16, 3}, 1))[0], "not u8 [3, 16, 16]");
}

TEST(VideoEncoder, EndsBetweenTwoFramesWhenItsRunIsStopped) {
  const auto pictures = random_pictures({8, 16, 16, 3}, 1);
  video_encoder encoder(small_video());
  EXPECT_EQ(error_in_a_stopped_stage([&] { encoder.send(pictures); }), errc::stopped);
}

TEST(VideoEncoder, RefusesFramesOfSound) {
  const auto sound = frames_of_file(media_files::path(all_sounds[0], sounding), stream_kind::audio);
  video_encoder encoder(small_video());
  EXPECT_THAT([&] { encoder.send(sound[0]); }, ThrowsMessage<error>(HasSubstr("the frame is")));
  const auto picture = frames_of_file(video_path(all_videos[0]), stream_kind::video);
  audio_encoder other({.encoder = "flac", .sample_rate = 44100, .channels = 2});
  EXPECT_THAT([&] { other.send(picture[0]); },
              ThrowsMessage<error>(HasSubstr("the frame is a picture")));
}

// How a file is encoded with loss, and how well.
struct lossy_case {
  const char* file;
  const char* encoder;
  std::optional<double> quality;
  std::int64_t bit_rate;
  const char* options;
  double psnr;  // in decibels
};

TEST(VideoEncoder, WithLossStaysAboveItsQuality) {
  const auto pictures = smooth_pictures(20, 96, 160);
  for (const auto& each :
       {lossy_case{"lossy.mp4", "libx264", 12, 0, "preset=veryfast", 39},
        lossy_case{"hevc.mkv", "libx265", 12, 0, "x265-params=log-level=none", 39},
        lossy_case{"lossy.webm", "libvpx-vp9", 10, 0, "cpu-used=8", 39},
        lossy_case{"av1.mp4", "libsvtav1", 10, 0, "preset=12", 38},
        lossy_case{"vp8.webm", "libvpx", {}, 2'000'000, "cpu-used=8", 36},
        lossy_case{"lossy.avi", "mpeg4", 2, 0, "", 38},
        lossy_case{"lossy.ts", "mpeg2video", 2, 0, "", 38},
        lossy_case{"h264.ts", "libx264", 12, 0, "", 39},
        lossy_case{"lossy.mov", "mjpeg", 2, 0, "", 38}}) {
    const auto path = media_directory / each.file;
    video_encoder encoder({.encoder = each.encoder,
                           .width = 160,
                           .height = 96,
                           .frame_rate = 25,
                           .bit_rate = each.bit_rate,
                           .quality = each.quality,
                           .gop = each.encoder == std::string("mjpeg") ? 1 : 10,
                           .options = each.options});
    write_encoded(path, encoder, pictures);
    const auto decoded = rgb_of_ffmpeg(path);
    ASSERT_EQ(decoded.size(), pictures.spec().bytes()) << each.file;
    EXPECT_GT(psnr(decoded.data(), pictures.data<std::uint8_t>(), decoded.size()), each.psnr)
        << each.file;
  }
}

// The encoders whose quality is a quantizer, with the best and the worst of those that are tried.
struct quantized_case {
  const char* encoder;
  double best;
  double worst;
};

static std::size_t bytes_of_frames(const video_encode_options& options,
                                   const std::vector<frame>& frames) {
  video_encoder encoder(options);
  for (const auto& each : frames) encoder.send(each);
  encoder.finish();
  std::size_t bytes = 0;
  while (auto next = encoder.receive()) bytes += next->data().size();
  return bytes;
}

TEST(VideoEncoder, AQuantizerMeansWhatItMeansToTheFfmpegProgram) {
  const auto path = media_directory / "quantized.avi";
  const auto pictures = random_pictures({6, 144, 176, 3}, 5);
  video_encoder lossless({.encoder = "ffv1",
                          .width = 176,
                          .height = 144,
                          .frame_rate = 25,
                          .pixel_format = "yuv420p"});
  write_encoded(path, lossless, pictures);
  const auto frames = frames_of_file(path, stream_kind::video);
  for (const auto& each :
       {quantized_case{"mpeg4", 2, 31}, quantized_case{"mpeg2video", 2, 31},
        quantized_case{"mpeg1video", 2, 31}, quantized_case{"mjpeg", 2, 31},
        quantized_case{"libxvid", 2, 31}, quantized_case{"h263", 2, 31},
        quantized_case{"h263p", 2, 31}, quantized_case{"flv", 2, 31}, quantized_case{"wmv1", 2, 31},
        quantized_case{"wmv2", 2, 31}, quantized_case{"msmpeg4", 2, 31},
        quantized_case{"msmpeg4v2", 2, 31}, quantized_case{"libtheora", 10, 0}}) {
    auto last = std::numeric_limits<std::size_t>::max();
    for (const double quality : {each.best, 5.0, each.worst}) {
      const video_encode_options options{.encoder = each.encoder,
                                         .width = 176,
                                         .height = 144,
                                         .frame_rate = 25,
                                         .quality = quality,
                                         .options = "strict=unofficial"};
      const auto bytes = bytes_of_frames(options, frames);
      EXPECT_LT(bytes, last) << each.encoder << " " << quality;
      last = bytes;
      const auto expected = output_of_ffmpeg(
          "-i " + path + " -c:v " + each.encoder + " -q:v " + std::to_string(quality) +
          " -threads 1 -flags +global_header -strict unofficial -pix_fmt yuv420p -f rawvideo -");
      EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(expected.size()),
                  0.02 * static_cast<double>(expected.size()))
          << each.encoder << " " << quality;
    }
  }
}

TEST(VideoEncoder, StatesItsParametersAsFfprobeReadsThem) {
  const auto path = media_directory / "parameters.mp4";
  video_encoder encoder({.encoder = "libx264",
                         .width = 128,
                         .height = 72,
                         .frame_rate = rational(30000, 1001),
                         .pixel_format = "yuv422p10le",
                         .gop = 12,
                         .b_frames = 2,
                         .colour = {.matrix = "bt2020nc",
                                    .primaries = "bt2020",
                                    .transfer = "smpte2084",
                                    .range = "pc"},
                         .sample_aspect = rational(4, 3),
                         .options = "profile=high422:x264-params=scenecut=0\\:b-adapt=0"});
  write_encoded(path, encoder, smooth_pictures(36, 72, 128));
  EXPECT_EQ(probe(path,
                  "-show_entries stream=codec_name,profile,width,height,has_b_frames,"
                  "sample_aspect_ratio,pix_fmt,color_range,color_space,color_transfer,"
                  "color_primaries,r_frame_rate,avg_frame_rate,duration_ts,nb_frames,time_base"),
            "codec_name=h264\nprofile=High 4:2:2\nwidth=128\nheight=72\nhas_b_frames=2\n"
            "sample_aspect_ratio=4:3\npix_fmt=yuv422p10le\ncolor_range=pc\n"
            "color_space=bt2020nc\ncolor_transfer=smpte2084\ncolor_primaries=bt2020\n"
            "r_frame_rate=30000/1001\navg_frame_rate=30000/1001\ntime_base=1/30000\n"
            "duration_ts=36036\nnb_frames=36\n");
  std::string kinds;
  for (const auto& each : frames_of_file(path, stream_kind::video)) kinds += each.picture_type();
  EXPECT_EQ(kinds, "IBBPBBPBBPBPIBBPBBPBBPBPIBBPBBPBBPBP");
}

TEST(VideoEncoder, FormatsThatImplyTheFullRangeAreConvertedToIt) {
  video_encoder implied(raw_video("yuvj444p"));
  auto options = raw_video("yuv444p");
  options.colour.range = "pc";
  video_encoder stated(options);
  const auto picture = picture_of_colour({12, 200, 77});
  EXPECT_EQ(encoded_bytes(implied, picture), encoded_bytes(stated, picture));
}

TEST(VideoEncoder, EndsWithoutAFrame) {
  for (const char* name :
       {"libsvtav1", "libaom-av1", "libx264", "libx265", "libvpx", "libtheora", "mpeg4", "ffv1"}) {
    auto options = small_video();
    options.width = options.height = 64;
    options.encoder = name;
    { video_encoder unused(options); }
    video_encoder finished(options);
    finished.finish();
    EXPECT_FALSE(finished.receive()) << name;
  }
}

TEST(VideoEncoder, RefusesToLoseFrames) {
  const auto refused = [](const video_encode_options& options, const tensor& pictures,
                          const char* text) {
    EXPECT_THAT(
        [&] {
          video_encoder encoder(options);
          encoder.send(pictures);
          encoder.finish();
        },
        ThrowsMessage<error>(HasSubstr(text)));
  };
  auto options = small_video();
  options.width = options.height = 64;
  options.encoder = "libxvid";
  options.b_frames = 2;
  refused(options, smooth_pictures(17, 64, 64),
          "encode video (libxvid): b_frames must be 0: the encoder has no B-frames");
  options.encoder = "libtheora";
  options.b_frames = {};
  tensor equal(element_type::u8, {3, 64, 64, 3});
  std::memset(equal.bytes(), 99, equal.spec().bytes());
  refused(options, equal, "encode video (libtheora): the packet of the picture at 1/25 s is empty");
  options.encoder = "mpeg4";
  options.options = "skip_threshold=1000000:skip_factor=1000000";
  refused(options, equal, "encode video (mpeg4): the encoder made 1 packets of 3 frames");
}

// The bits per second that an encoder makes of 4 s of noise.
static double bits_per_second(const video_encode_options& options) {
  video_encoder encoder(options);
  encoder.send(random_pictures({100, options.height, options.width, 3}, 6));
  encoder.finish();
  double bits = 0;
  while (auto next = encoder.receive()) bits += 8 * static_cast<double>(next->data().size());
  return bits / 4;
}

TEST(VideoEncoder, ReachesItsBitRate) {
  for (const auto& [encoder, extra] : {std::pair{"libx264", "preset=veryfast"},
                                       {"libvpx", "cpu-used=8:deadline=realtime"},
                                       {"mpeg4", ""},
                                       {"mpeg2video", ""},
                                       {"libxvid", ""},
                                       {"flv", ""},
                                       {"wmv2", ""}})
    for (const std::int64_t rate : {2'000'000, 4'000'000}) {
      const auto found = bits_per_second({.encoder = encoder,
                                          .width = 160,
                                          .height = 96,
                                          .frame_rate = 25,
                                          .bit_rate = rate,
                                          .options = extra});
      EXPECT_NEAR(found, static_cast<double>(rate), 0.3 * static_cast<double>(rate)) << encoder;
    }
}

// How many threads this process has.
static std::size_t threads_of_process() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(VideoEncoder, HasTheThreadsThatItsOptionsState) {
  for (const char* name : {"ffv1", "libx264", "libx264rgb", "png", "mpeg4"}) {
    for (const int threads : {1, 4}) {
      const auto before = threads_of_process();
      video_encoder encoder(
          {.encoder = name, .width = 1280, .height = 720, .frame_rate = 25, .threads = threads});
      encoder.send(smooth_pictures(2, 720, 1280));
      const auto made = threads_of_process() - before;
      if (threads == 1) {
        EXPECT_EQ(made, 0U) << name;
      } else {
        EXPECT_GE(made, 3U) << name;
        EXPECT_LE(made, 8U) << name;
      }
    }
  }
}

TEST(VideoEncoder, RefusesOptionsByName) {
  const auto expect = [](auto change, const char* text) {
    auto options = small_video();
    change(options);
    EXPECT_THAT([&] { video_encoder encoder(options); }, ThrowsMessage<error>(HasSubstr(text)));
  };
  using options = video_encode_options;
  expect([](options& o) { o.encoder = "x264"; }, "open encoder x264: FFmpeg has no such encoder");
  expect([](options& o) { o.encoder = "aac"; }, "it is one of audio");
  expect([](options& o) { o.options = "crff=3"; }, "unknown option crff");
  expect([](options& o) { o.options = "crf"; }, "options are key=value:key=value");
  expect(
      [](options& o) {
        o.quality = 20;
        o.options = "crf=3";
      },
      "the option crf is set beside the member quality");
  expect([](options& o) { o.quality = NAN; }, "quality must be from 0 (best) to 51");
  expect([](options& o) { o.width = 0; }, "width and height must be 1 to 32768");
  expect([](options& o) { o.width = 15; }, "pictures of yuv420p have an even size");
  expect([](options& o) { o.frame_rate = 0; }, "frame_rate must be above 0");
  expect([](options& o) { o.pixel_format = "yuv999p"; }, "FFmpeg has no pixel format yuv999p");
  expect([](options& o) { o.pixel_format = "rgb24"; }, "does not have the pixel format rgb24");
  expect([](options& o) { o.colour.matrix = "bt999"; }, "FFmpeg has no colour matrix bt999");
  expect([](options& o) { o.colour.matrix = "gbr"; }, "the colour matrix gbr does not fit yuv420p");
  expect([](options& o) { o.threads = 0; }, "threads must be 1 to 64");
  expect([](options& o) { o.tensor_layout = image_layout{2}; },
         "tensor_layout is no value of image_layout");
  expect([](options& o) { o.b_frames = 17; }, "b_frames must be 0 to 16");
  expect([](options& o) { o.bit_rate = -1; }, "bit_rate must not be negative");
  expect(
      [](options& o) {
        o.encoder = "ffv1";
        o.quality = 3;
      },
      "the encoder has no such quality");
  expect(
      [](options& o) {
        o.encoder = "mjpeg";
        o.b_frames = 1;
      },
      "b_frames must be 0: the encoder has no B-frames");
  expect(
      [](options& o) {
        o.encoder = "mjpeg";
        o.gop = 5;
      },
      "gop must be 1: the encoder has key frames only");
}

TEST(VideoEncoder, RefusesQualitiesOutsideOfTheRangeOfTheEncoder) {
  for (const auto& [encoder, quality, range] : {std::tuple{"mpeg4", 1.0, "from 2 (best) to 31"},
                                                {"mpeg2video", 32.0, "from 2 (best) to 31"},
                                                {"mjpeg", 90.0, "from 2 (best) to 31"},
                                                {"libxvid", 0.0, "from 2 (best) to 31"},
                                                {"libtheora", 10.5, "from 10 (best) to 0"},
                                                {"libtheora", -1.0, "from 10 (best) to 0"},
                                                {"libx264", -1.0, "from 0 (best) to 51"},
                                                {"libx264", 52.0, "from 0 (best) to 51"},
                                                {"libx265", 1e9, "from 0 (best) to 51"},
                                                {"libsvtav1", 0.0, "from 1 (best) to 63"},
                                                {"libvpx", -1.0, "from 0 (best) to 63"},
                                                {"libvpx-vp9", 64.0, "from 0 (best) to 63"},
                                                {"libwebp", 101.0, "from 100 (best) to 0"},
                                                {"libwebp", double{NAN}, "from 100 (best) to 0"}}) {
    auto options = small_video();
    options.encoder = encoder;
    options.quality = quality;
    EXPECT_THAT([&] { video_encoder opened(options); },
                ThrowsMessage<error>(HasSubstr("encode video (" + std::string(encoder) +
                                               "): quality must be " + range)))
        << quality;
  }
}

TEST(VideoEncoder, RefusesOptionsThatStateWhatMembersState) {
  for (const auto& [option, text] :
       {std::pair{"video_size=640x480", "the option video_size states what the member width and"},
        {"s=640x480", "the option s states"},
        {"pixel_format=yuv444p", "pixel_format"},
        {"time_base=1/7", "time_base"},
        {"g=5", "the option g states what the member gop states"},
        {"bf=1", "b_frames"},
        {"b=100000", "bit_rate"},
        {"threads=7", "threads"},
        {"colorspace=bt709", "colour.matrix"},
        {"chroma_sample_location=top", "is set by the encoder"},
        {"flags=+qscale", "quality"},
        {"x264-params=fps=3", "the option x264-params fps is refused"}}) {
    auto options = small_video();
    options.options = option;
    EXPECT_THAT([&] { video_encoder encoder(options); }, ThrowsMessage<error>(HasSubstr(text)))
        << option;
    options.encoder = "mpeg4";
    EXPECT_THROW(video_encoder encoder(options), error) << option;
  }
}

TEST(VideoEncoder, RefusesAGopOrBFramesThatTheEncoderIgnores) {
  const auto expect = [](const char* encoder, std::optional<int> gop, std::optional<int> b_frames,
                         const char* text) {
    const video_encode_options options{.encoder = encoder,
                                       .width = 64,
                                       .height = 64,
                                       .frame_rate = 25,
                                       .gop = gop,
                                       .b_frames = b_frames,
                                       .options = "strict=-2"};
    EXPECT_THAT([&] { video_encoder opened(options); }, ThrowsMessage<error>(HasSubstr(text)))
        << encoder;
  };
  for (const char* encoder : {"gif", "apng", "zmbv", "msvideo1"})
    expect(encoder, 3, {}, "the encoder has no gop");
  expect("vc2", 3, {}, "gop must be 1: the encoder has key frames only");
  expect("libsvtav1", 1, {}, "gop must be 2 to 1048576");
  for (const char* encoder : {"vc2", "libxvid", "libvpx", "libaom-av1", "libsvtav1", "gif", "ffv1"})
    expect(encoder, {}, 1, "b_frames must be 0: the encoder has no B-frames");
  expect("libx264", {}, -1, "b_frames must be 0 to 16");
}

TEST(VideoEncoder, RefusesABitRateBesideAQuality) {
  for (const auto& [encoder, quality] : {std::pair{"libx264", 20.0},
                                         {"libx264rgb", 20.0},
                                         {"libx265", 20.0},
                                         {"libsvtav1", 20.0},
                                         {"mpeg4", 5.0},
                                         {"mpeg2video", 5.0},
                                         {"libxvid", 5.0},
                                         {"mjpeg", 5.0},
                                         {"libtheora", 5.0}}) {
    const video_encode_options options{.encoder = encoder,
                                       .width = 64,
                                       .height = 64,
                                       .frame_rate = 25,
                                       .bit_rate = 100'000,
                                       .quality = quality};
    EXPECT_THAT([&] { video_encoder opened(options); },
                ThrowsMessage<error>(
                    HasSubstr("encode video (" + std::string(encoder) +
                              "): bit_rate and quality are both set, but the encoder uses")));
  }
}

// The size of noise.
static std::size_t bytes_of_noise(const video_encode_options& options) {
  video_encoder encoder(options);
  return encoded_bytes(encoder, random_pictures({6, 144, 176, 3}, 1)).size();
}

TEST(VideoEncoder, LimitsAQualityByABitRateWhereTheEncoderHasBoth) {
  for (const auto& [encoder, extra] : {std::pair{"libvpx", "deadline=realtime:cpu-used=8"},
                                       {"libvpx-vp9", "deadline=realtime:cpu-used=8"},
                                       {"libaom-av1", "usage=realtime:cpu-used=8"}}) {
    const auto bytes = [&](std::int64_t bit_rate, double quality) {
      return bytes_of_noise({.encoder = encoder,
                             .width = 176,
                             .height = 144,
                             .frame_rate = 25,
                             .bit_rate = bit_rate,
                             .quality = quality,
                             .options = extra});
    };
    EXPECT_LT(bytes(50'000, 10), bytes(20'000'000, 10)) << encoder;
    EXPECT_LT(bytes(20'000'000, 60), bytes(20'000'000, 10)) << encoder;
    EXPECT_NO_THROW(video_encoder({.encoder = encoder,
                                   .width = 176,
                                   .height = 144,
                                   .frame_rate = 25,
                                   .bit_rate = 50'000,
                                   .options = "crf=10"}))
        << encoder;
  }
}

TEST(VideoEncoder, RefusesABitRateThatTheEncoderIgnores) {
  for (const char* encoder :
       {"ffv1", "huffyuv", "ffvhuff", "utvideo", "magicyuv", "png", "bmp", "tiff", "rawvideo",
        "gif", "ljpeg", "prores", "prores_ks", "libwebp", "jpeg2000", "cinepak"}) {
    const video_encode_options options{
        .encoder = encoder, .width = 64, .height = 64, .frame_rate = 25, .bit_rate = 100'000};
    EXPECT_THAT([&] { video_encoder opened(options); },
                ThrowsMessage<error>(HasSubstr("encode video (" + std::string(encoder) +
                                               "): the encoder has no bit_rate")));
  }
}

// An option that a member contradicts.
struct contradicted_option {
  const char* encoder;
  const char* options;
  const char* name;
};

static void expect_contradicted(const contradicted_option& each, std::int64_t bit_rate,
                                std::optional<double> quality) {
  const video_encode_options options{.encoder = each.encoder,
                                     .width = 64,
                                     .height = 64,
                                     .frame_rate = 25,
                                     .bit_rate = bit_rate,
                                     .quality = quality,
                                     .options = each.options};
  EXPECT_THAT([&] { video_encoder opened(options); },
              ThrowsMessage<error>(HasSubstr("the option " + std::string(each.name) +
                                             " is set beside the member " +
                                             (quality ? "quality" : "bit_rate"))))
      << each.encoder << " " << each.options;
}

TEST(VideoEncoder, RefusesOptionsThatContradictItsBitRateOrQuality) {
  for (const auto& each :
       {contradicted_option{"libx264", "crf=10", "crf"},
        contradicted_option{"libx264", "qp=5", "qp"},
        contradicted_option{"libx264", "x264-params=ref=1\\:qp=5", "x264-params qp"},
        contradicted_option{"libx264", "x264opts=qp_constant=5", "x264opts qp_constant"},
        contradicted_option{"libx265", "crf=10", "crf"},
        contradicted_option{"libx265", "qp=5", "qp"},
        contradicted_option{"libx265", "x265-params=lossless=1", "x265-params lossless"},
        contradicted_option{"libvpx-vp9", "lossless=1", "lossless"},
        contradicted_option{"libsvtav1", "crf=10", "crf"},
        contradicted_option{"libsvtav1", "qp=5", "qp"},
        contradicted_option{"libaom-av1", "aom-params=cq-level=5", "aom-params cq-level"}}) {
    expect_contradicted(each, 100'000, {});
    expect_contradicted(each, 0, 20);
  }
  for (const auto& each :
       {contradicted_option{"libvpx", "crf=10", "crf"},
        contradicted_option{"libaom-av1", "aom-params=end-usage=cbr", "aom-params end-usage"},
        contradicted_option{"libsvtav1", "svtav1-params=rc=1", "svtav1-params rc"},
        contradicted_option{"libwebp", "quality=50", "quality"}})
    expect_contradicted(each, 0, 20);
  expect_contradicted({"dnxhd", "profile=dnxhr_hq", "profile"}, 100'000, {});
}

TEST(VideoEncoder, TheBestQualityTakesTheMostBytes) {
  for (const auto& [encoder, best, worse] : {std::tuple{"libx264", 0.0, 20.0},
                                             {"libx265", 0.0, 20.0},
                                             {"libsvtav1", 1.0, 20.0},
                                             {"libaom-av1", 0.0, 20.0},
                                             {"libvpx-vp9", 0.0, 20.0},
                                             {"libwebp", 100.0, 80.0}}) {
    video_encode_options options{
        .encoder = encoder, .width = 176, .height = 144, .frame_rate = 25, .quality = best};
    const auto most = bytes_of_noise(options);
    options.quality = worse;
    EXPECT_GT(most, bytes_of_noise(options)) << encoder;
    options.quality.reset();
    EXPECT_GT(most, bytes_of_noise(options)) << encoder;
  }
}

static void expect_taken(std::string_view encoder, std::string_view option,
                         std::optional<double> quality = {}) {
  auto options = small_video();
  options.width = options.height = 64;
  options.encoder = encoder;
  options.options = option;
  options.quality = quality;
  EXPECT_NO_THROW(video_encoder opened(options)) << encoder << " " << option;
}

TEST(VideoEncoder, TakesOptionsThatStateTheQualityAlone) {
  for (const auto& [encoder, option] : {std::pair{"libx264", "crf=10"},
                                        {"libx264", "qp=0"},
                                        {"libx265", "qp=5"},
                                        {"libvpx-vp9", "lossless=1"},
                                        {"libwebp", "quality=50"}})
    expect_taken(encoder, option);
}

TEST(VideoEncoder, TakesOptionsThatOverrideNothing) {
  for (const auto& [encoder, option] : {std::pair{"libvpx-vp9", "lossless=0"},
                                        {"libx265", "x265-params=lossless=0"},
                                        {"libsvtav1", "svtav1-params=film-grain=8"}})
    expect_taken(encoder, option, 20);
}

TEST(VideoEncoder, MakesOnePacketOfAnAnimation) {
  auto options = small_video();
  options.width = options.height = 64;
  options.encoder = "libwebp_anim";
  video_encoder encoder(options);
  encoder.send(smooth_pictures(5, 64, 64));
  encoder.finish();
  EXPECT_TRUE(encoder.receive());
  EXPECT_FALSE(encoder.receive());
}

TEST(VideoEncoder, RefusesOptionsThatOpenFiles) {
  const auto stats = media_directory / "stats";
  for (const auto& [encoder, option, text] :
       {std::tuple{"libx264", "flags=+pass1:stats=" + stats, "two passes, which are not offered"},
        {"libx264", "flags=512:stats=" + stats, "two passes"},
        {"libx264", "stats=" + stats, "the option stats names a file"},
        {"libx264", "x264-params=pass=1\\:stats=" + stats, "the option x264-params pass"},
        {"libx264", "x264-params=ref=1\\: 'pass'=1", "the option x264-params pass"},
        {"libx264", "x264opts=dump_yuv=" + stats, "the option x264opts dump_yuv"},
        {"libx265", "x265-params=csv=" + stats, "the option x265-params csv"},
        {"mpeg4", std::string("flags=+pass2"), "two passes"}}) {
    auto options = small_video();
    options.encoder = encoder;
    options.options = option;
    EXPECT_THAT([&] { video_encoder opened(options); }, ThrowsMessage<error>(HasSubstr(text)))
        << option;
  }
  EXPECT_FALSE(std::filesystem::exists(stats));
}

TEST(VideoEncoder, RefusesOptionsThatALibraryDoesNotKnow) {
  for (const auto& [encoder, option] : {std::pair{"libx264", "x264-params=bogus=1"},
                                        {"libx264", "x264-params=ref=many"},
                                        {"libx265", "x265-params=bogus=1"}}) {
    auto options = small_video();
    options.width = options.height = 64;
    options.encoder = encoder;
    options.options = option;
    const auto* text = std::string_view(option).ends_with("many") ? "ref" : "bogus";
    EXPECT_THAT([&] { video_encoder opened(options); }, ThrowsMessage<error>(HasSubstr(text)))
        << option;
  }
}

TEST(VideoEncoder, WordsOfFfmpegArePartOfTheErrorAndNothingIsPrinted) {
  testing::internal::CaptureStderr();
  for (const int threads : {1, 3})
    for (const char* encoder : {"libx264", "libx265", "mpeg4", "libvpx"}) {
      video_encoder opened(
          {.encoder = encoder, .width = 160, .height = 96, .frame_rate = 25, .threads = threads});
      opened.send(smooth_pictures(4, 96, 160));
      opened.finish();
    }
  auto options = small_video();
  options.options = "crf=many";
  EXPECT_THAT([&] { video_encoder opened(options); },
              ThrowsMessage<error>(HasSubstr("(Error setting option crf to value many")));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(VideoEncoder, RefusesPicturesThatDoNotFit) {
  video_encoder encoder(small_video());
  const auto expect = [&](const tensor& picture, const char* text) {
    EXPECT_THAT([&] { encoder.send(picture); }, ThrowsMessage<error>(HasSubstr(text)));
  };
  expect(random_pictures({16, 18, 3}, 1), "the picture is 18 x 16, not 16 x 16");
  expect(random_pictures({16, 16}, 1), "pictures are u8 [height, width, 1, 3 or 4]");
  expect(tensor(element_type::f32, {16, 16, 3}), "not f32 [16, 16, 3]");
  encoder.finish();
  expect(random_pictures({16, 16, 3}, 1), "the encoder has finished");
}

TEST(VideoEncoder, RefusesFramesThatGoBackInTimeOrLieBetweenItsUnits) {
  const auto path = video_path(all_videos[0]);
  const auto frames = frames_of_file(path, stream_kind::video);
  const video_encode_options options{
      .encoder = "ffv1", .width = 178, .height = 98, .frame_rate = 25};
  video_encoder encoder(options);
  encoder.send(frames[3]);
  EXPECT_THAT([&] { encoder.send(frames[3]); },
              ThrowsMessage<error>(HasSubstr("the frame at 3/25 s is not after the one before")));
  EXPECT_THAT([&] { encoder.send(frames[2]); }, ThrowsMessage<error>(HasSubstr("at 2/25 s")));
  auto coarse = options;
  coarse.frame_rate = 10;
  video_encoder slow(coarse);
  EXPECT_THAT(
      [&] { slow.send(frames[1]); },
      ThrowsMessage<error>(HasSubstr("the time 1/25 s is no multiple of the time base 1/10")));
}

TEST(VideoEncoder, RefusesTheSecondTensorWhereTheTimeBaseDoesNotFitTheRate) {
  auto options = small_video();
  options.frame_rate = 24;
  options.time_base = rational(1, 1000);
  video_encoder encoder(options);
  encoder.send(random_pictures({16, 16, 3}, 1));
  EXPECT_THAT(
      [&] { encoder.send(random_pictures({16, 16, 3}, 2)); },
      ThrowsMessage<error>(HasSubstr("the time 1/24 s is no multiple of the time base 1/1000")));
}

// Samples of the sweep, interleaved, as the ffmpeg program decodes them from a file.
static std::vector<float> encoded_samples(const std::string& path,
                                          const audio_encode_options& options,
                                          const tensor& samples) {
  audio_encoder encoder(options);
  write_encoded(path, encoder, samples);
  return samples_of_ffmpeg(path);
}

static std::vector<float> values_of(const tensor& samples) {
  return {samples.data<float>(), samples.data<float>() + samples.spec().elements()};
}

// How audio is encoded without loss.
struct lossless_audio {
  const char* file;
  const char* encoder;
  const char* sample_format;
  const char* options;
};

TEST(AudioEncoder, WithoutLossRestoresSamples) {
  const auto samples = sweep(50'000, 2);
  for (const auto& each :
       {lossless_audio{"a.flac", "flac", "", ""},
        lossless_audio{"b.flac", "flac", "s32", "bits_per_raw_sample=24"},
        lossless_audio{"a.m4a", "alac", "", ""}, lossless_audio{"b.m4a", "alac", "s32p", ""},
        lossless_audio{"16.wav", "pcm_s16le", "", ""},
        lossless_audio{"24.wav", "pcm_s24le", "", ""},
        lossless_audio{"32.wav", "pcm_s32le", "", ""},
        lossless_audio{"float.wav", "pcm_f32le", "", ""},
        lossless_audio{"16.mkv", "pcm_s16be", "", ""}}) {
    const audio_encode_options options{.encoder = each.encoder,
                                       .sample_rate = 44100,
                                       .channels = 2,
                                       .sample_format = each.sample_format,
                                       .options = each.options};
    EXPECT_EQ(encoded_samples(media_directory / each.file, options, samples), values_of(samples))
        << each.file;
  }
}

// The same samples with another type, or [channels, samples].
static tensor as_integers(const tensor& samples) {
  tensor integers(element_type::i16, samples.shape());
  for (std::size_t i = 0; i < samples.spec().elements(); ++i)
    integers.data<std::int16_t>()[i] =
        static_cast<std::int16_t>(std::lround(samples.data<float>()[i] * 0x1p15F));
  return integers;
}

template <class Sample>
static tensor as_planes(const tensor& samples) {
  const auto n = samples.shape()[0];
  const auto channels = samples.shape()[1];
  tensor planes(samples.type(), {channels, n});
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t c = 0; c < channels; ++c)
      planes.data<Sample>()[c * n + i] = samples.data<Sample>()[i * channels + c];
  return planes;
}

TEST(AudioEncoder, WithoutLossRestoresIntegersAndPlanes) {
  const auto samples = sweep(20'000, 2);
  const auto integers = as_integers(samples);
  const auto target = media_directory / "tensors.mkv";
  for (const char* encoder : {"flac", "pcm_s16le", "pcm_f32le"}) {
    audio_encode_options options{.encoder = encoder, .sample_rate = 44100, .channels = 2};
    EXPECT_EQ(encoded_samples(target, options, integers), values_of(samples)) << encoder;
    options.tensor_layout = audio_layout::planar;
    EXPECT_EQ(encoded_samples(target, options, as_planes<float>(samples)), values_of(samples));
    EXPECT_EQ(encoded_samples(target, options, as_planes<std::int16_t>(integers)),
              values_of(samples));
  }
}

TEST(AudioEncoder, RefusesOtherTensors) {
  audio_encode_options options{.encoder = "flac", .sample_rate = 44100, .channels = 2};
  const auto expect = [&](const tensor& samples, const char* text) {
    audio_encoder encoder(options);
    EXPECT_THAT([&] { encoder.send(samples); }, ThrowsMessage<error>(HasSubstr(text)));
    encoder.finish();
    EXPECT_THAT([&] { encoder.send(samples); },
                ThrowsMessage<error>(HasSubstr("the encoder has finished")));
  };
  expect(tensor(element_type::u8, {4, 2}), "samples are f32 or i16 [samples, 2]");
  expect(tensor(element_type::f32, {2, 4}), "not f32 [2, 4]");
  expect(tensor(element_type::f32, {4}), "not f32 [4]");
  options.tensor_layout = audio_layout::planar;
  expect(tensor(element_type::i16, {4, 2}), "samples are f32 or i16 [2, samples]");
}

// Signal to noise, in decibels, of what was decoded.
static double signal_to_noise(const std::vector<float>& of, const std::vector<float>& expected) {
  double signal = 0;
  double noise = 0;
  for (std::size_t i = 0; i < std::min(of.size(), expected.size()); ++i) {
    signal += expected[i] * expected[i];
    noise += (of[i] - expected[i]) * (of[i] - expected[i]);
  }
  return 10 * std::log10(signal / noise);
}

// How audio is encoded with loss, and how well.
struct lossy_audio {
  const char* file;
  const char* encoder;
  int sample_rate;
  std::int64_t bit_rate;
  std::optional<double> quality;
  double signal_to_noise;  // in decibels
  std::size_t delay = 0;   // samples of each channel before the first, which MPEG-TS does not state
};

TEST(AudioEncoder, WithLossStaysAboveItsQualityAndInTime) {
  const auto samples = sweep(50'000, 2);
  for (const auto& each : {lossy_audio{"lossy.m4a", "aac", 44100, 192'000, {}, 25},
                           lossy_audio{"aac.ts", "aac", 44100, 192'000, {}, 25, 1024},
                           lossy_audio{"lossy.mp3", "libmp3lame", 44100, 0, 2, 20},
                           lossy_audio{"lossy.ogg", "libvorbis", 44100, 0, 8, 20},
                           lossy_audio{"opus.ogg", "libopus", 48000, 192'000, {}, 20},
                           lossy_audio{"opus.webm", "libopus", 48000, 192'000, {}, 20}}) {
    const audio_encode_options options{.encoder = each.encoder,
                                       .sample_rate = each.sample_rate,
                                       .channels = 2,
                                       .bit_rate = each.bit_rate,
                                       .quality = each.quality};
    const auto decoded = encoded_samples(media_directory / each.file, options, samples);
    EXPECT_NEAR(static_cast<double>(decoded.size()), 100'000, 2 * 2 * 2048) << each.file;
    const std::vector<float> shown(decoded.begin() + static_cast<std::ptrdiff_t>(2 * each.delay),
                                   decoded.end());
    EXPECT_GT(signal_to_noise(shown, values_of(samples)), each.signal_to_noise) << each.file;
  }
}

TEST(AudioEncoder, StatesItsParametersAsFfprobeReadsThem) {
  const auto path = media_directory / "parameters.mka";
  audio_encoder encoder({.encoder = "flac",
                         .sample_rate = 48000,
                         .channels = 6,
                         .layout = "5.1(side)",
                         .sample_format = "s32",
                         .options = "bits_per_raw_sample=24"});
  write_encoded(path, encoder, sweep(48'000, 6));
  EXPECT_EQ(probe(path,
                  "-show_entries stream=codec_name,sample_fmt,sample_rate,channels,channel_layout,"
                  "bits_per_raw_sample:format=duration"),
            "codec_name=flac\nsample_fmt=s32\nsample_rate=48000\nchannels=6\n"
            "channel_layout=5.1(side)\nbits_per_raw_sample=24\nduration=1.000000\n");
}

static std::vector<std::byte> packets_of(audio_encoder& encoder) {
  std::vector<std::byte> bytes;
  while (auto next = encoder.receive())
    bytes.insert(bytes.end(), next->data().begin(), next->data().end());
  return bytes;
}

TEST(AudioEncoder, EncodesPiecesAsTheirWhole) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const auto samples = sweep(20'000, 2);
  for (const char* name : {"flac", "aac", "pcm_s16le"}) {
    const audio_encode_options options{.encoder = name, .sample_rate = 44100, .channels = 2};
    audio_encoder whole(options);
    whole.send(samples);
    whole.finish();
    audio_encoder parts(options);
    for (std::int64_t first = 0; first < 20'000;) {
      const auto end =
          std::min<std::int64_t>(20'000, first + 1 + static_cast<int>(random() % 3000));
      parts.send(samples.slice(first, end));
      first = end;
    }
    parts.finish();
    EXPECT_EQ(packets_of(parts), packets_of(whole)) << name;
  }
}

TEST(AudioEncoder, EncodesFramesAsTheirSamples) {
  const auto path = media_files::path(all_sounds[0], sounding);
  const auto frames = frames_of_file(path, stream_kind::audio);
  const auto again = media_directory / "frames.wav";
  audio_encoder encoder({.encoder = "pcm_f32le", .sample_rate = 44100, .channels = 2});
  muxer file(again);
  const int stream = file.add(encoder.stream());
  for (const auto& each : frames) encoder.send(each);
  encoder.finish();
  file.write_ready(stream, encoder);
  file.finish();
  EXPECT_EQ(samples_of_ffmpeg(again), samples_of_ffmpeg(path));
}

TEST(AudioEncoder, RefusesFramesThatDoNotFollow) {
  const auto path = media_files::path(all_sounds[0], sounding);
  const auto frames = frames_of_file(path, stream_kind::audio);
  audio_encoder encoder({.encoder = "flac", .sample_rate = 44100, .channels = 2});
  encoder.send(frames[1]);
  const auto expect = [&](const frame& next, const char* text) {
    EXPECT_THAT([&] { encoder.send(next); }, ThrowsMessage<error>(HasSubstr(text)));
  };
  expect(frames[3], "does not follow the one before, which ends at");
  expect(frames[1], "does not follow the one before, which ends at");
  encoder.send(frames[2]);
  audio_encoder other({.encoder = "flac", .sample_rate = 48000, .channels = 2});
  EXPECT_THAT(
      [&] { other.send(frames[1]); },
      ThrowsMessage<error>(HasSubstr("the frame has 2 channels of 44100 Hz, not 2 of 48000")));
}

TEST(AudioEncoder, RefusesOptionsThatStateWhatMembersState) {
  for (const char* option : {"ar=8000", "ac=1", "channel_layout=5.1", "ch_layout=mono",
                             "sample_fmt=s16", "frame_size=10", "time_base=1/7", "ab=1000"}) {
    const std::string key(option, std::strchr(option, '='));
    EXPECT_THAT(
        [&] {
          audio_encoder encoder(
              {.encoder = "aac", .sample_rate = 44100, .channels = 2, .options = option});
        },
        ThrowsMessage<error>(HasSubstr("the option " + key + " ")))
        << option;
  }
}

TEST(AudioEncoder, RefusesSamplesThatAreNotFinite) {
  for (const char* name : {"libmp3lame", "aac", "flac", "pcm_f32le"})
    for (const float bad : {NAN, INFINITY, -INFINITY, 1e30F}) {
      audio_encoder encoder({.encoder = name, .sample_rate = 44100, .channels = 2});
      auto samples = sweep(5000, 2);
      samples.data<float>()[2 * 1234 + 1] = bad;
      EXPECT_THAT([&] { encoder.send(samples); },
                  ThrowsMessage<error>(HasSubstr("sample 1234 of channel 1 is ")))
          << name << " " << bad;
      encoder.send(sweep(5000, 2));
      encoder.finish();
      EXPECT_TRUE(encoder.receive());
    }
}

TEST(AudioEncoder, RefusesSamplesOfMp3ThatWouldEndTheProcess) {
  const audio_encode_options options{
      .encoder = "libmp3lame", .sample_rate = 48000, .channels = 2, .bit_rate = 32'000};
  tensor samples(element_type::f32, {20'000, 2});
  std::mt19937 random(1);
  const auto fill = [&](float most) {
    for (std::size_t i = 0; i < samples.spec().elements(); ++i)
      samples.data<float>()[i] = random() % 2 == 0 ? most : -most;
  };
  fill(16'384);
  audio_encoder encoder(options);
  EXPECT_THAT([&] { encoder.send(samples); },
              ThrowsMessage<error>(HasSubstr("sample 0 of channel 0 is ")));
  fill(256);
  encoder.send(samples);
  encoder.finish();
  EXPECT_TRUE(encoder.receive());
}

TEST(AudioEncoder, RefusesFramesWhoseSamplesAreTooLarge) {
  const auto path = media_directory / "large.wav";
  auto samples = sweep(100, 2);
  samples.data<float>()[2 * 42] = 1e6F;
  const audio_encode_options floats{.encoder = "pcm_f32le", .sample_rate = 44100, .channels = 2};
  audio_encoder first(floats);
  write_encoded(path, first, samples);
  audio_encoder second({.encoder = "libmp3lame", .sample_rate = 44100, .channels = 2});
  EXPECT_THAT(
      [&] {
        for (const auto& each : frames_of_file(path, stream_kind::audio)) second.send(each);
      },
      ThrowsMessage<error>(HasSubstr("sample 42 of channel 0 is 1000000")));
}

TEST(AudioEncoder, RefusesOptionsByName) {
  const auto expect = [](const audio_encode_options& options, const char* text) {
    EXPECT_THAT([&] { audio_encoder encoder(options); }, ThrowsMessage<error>(HasSubstr(text)));
  };
  expect({.encoder = "libopus", .sample_rate = 44100, .channels = 2},
         "the encoder does not have the sample rate 44100, but: 48000 24000 16000 12000 8000");
  expect({.encoder = "flac", .sample_rate = 44100, .channels = 0}, "channels must be 1 to 64");
  expect({.encoder = "flac", .sample_rate = 44100, .channels = 2, .layout = "5.1"},
         "5.1 is no layout of 2 channels");
  expect({.encoder = "flac", .sample_rate = 44100, .channels = 2, .sample_format = "fltp"},
         "the encoder does not have the sample format fltp");
  expect({.encoder = "flac", .sample_rate = 44100, .channels = 2, .options = "nosuch=1"},
         "unknown option nosuch");
  expect({.encoder = "flac", .sample_rate = 44100, .channels = 2, .tensor_layout = audio_layout{2}},
         "tensor_layout is no value of audio_layout");
  expect({.encoder = "flac", .sample_rate = 44100, .channels = 2, .quality = 3},
         "the encoder has no such quality");
}

TEST(AudioEncoder, RefusesQualitiesOutsideOfTheRangeOfTheEncoder) {
  for (const auto& [encoder, quality, range] :
       {std::tuple{"libmp3lame", -1.0, "from 0 (best) to 9.999"},
        {"libmp3lame", 500.0, "from 0 (best) to 9.999"},
        {"libvorbis", -1.5, "from 10 (best) to -1"},
        {"libvorbis", 500.0, "from 10 (best) to -1"},
        {"aac", 0.0, "from 10 (best) to 0.1"},
        {"aac", -5.0, "from 10 (best) to 0.1"},
        {"aac", double{NAN}, "from 10 (best) to 0.1"}}) {
    const audio_encode_options options{
        .encoder = encoder, .sample_rate = 44100, .channels = 2, .quality = quality};
    EXPECT_THAT([&] { audio_encoder opened(options); },
                ThrowsMessage<error>(HasSubstr("encode audio (" + std::string(encoder) +
                                               "): quality must be " + range)))
        << quality;
  }
}

// The number of bytes that samples take.
static std::size_t bytes_of_samples(const audio_encode_options& options, const tensor& samples) {
  audio_encoder encoder(options);
  encoder.send(samples);
  encoder.finish();
  return packets_of(encoder).size();
}

// At 44.1 kHz.
static tensor noise_of_a_second() {
  tensor samples(element_type::f32, {44100, 1});
  std::mt19937 random(1);
  for (int i = 0; i < 44100; ++i)
    samples.data<float>()[i] = static_cast<float>(random() % 2000) / 2000 - 0.5F;
  return samples;
}

TEST(AudioEncoder, ABetterQualityTakesMoreBytes) {
  const auto noise = noise_of_a_second();
  for (const auto& [encoder, qualities] : {std::pair{"libmp3lame", std::array{0.0, 4.0, 9.5}},
                                           {"libvorbis", std::array{10.0, 3.0, -1.0}},
                                           {"aac", std::array{1.0, 0.5, 0.1}}}) {
    audio_encode_options options{.encoder = encoder, .sample_rate = 44100, .channels = 1};
    auto last = std::numeric_limits<std::size_t>::max();
    for (const double quality : qualities) {
      options.quality = quality;
      const auto bytes = bytes_of_samples(options, noise);
      EXPECT_LT(bytes, last) << encoder << " " << quality;
      last = bytes;
    }
  }
}

TEST(AudioEncoder, ReachesItsBitRate) {
  const auto noise = noise_of_a_second();
  for (const auto& [encoder, rate, sample_rate] : {std::tuple{"aac", 64'000, 44100},
                                                   {"aac", 128'000, 44100},
                                                   {"libmp3lame", 64'000, 44100},
                                                   {"libmp3lame", 192'000, 44100},
                                                   {"libopus", 48'000, 48000},
                                                   {"libopus", 128'000, 48000},
                                                   {"libvorbis", 64'000, 44100},
                                                   {"libvorbis", 128'000, 44100},
                                                   {"ac3", 96'000, 48000},
                                                   {"ac3", 192'000, 48000},
                                                   {"mp2", 96'000, 48000},
                                                   {"mp2", 192'000, 48000}}) {
    const audio_encode_options options{
        .encoder = encoder, .sample_rate = sample_rate, .channels = 1, .bit_rate = rate};
    const auto bits =
        8 * static_cast<double>(bytes_of_samples(options, noise)) * sample_rate / 44100;
    EXPECT_NEAR(bits, rate, 0.25 * rate) << encoder;
  }
}

TEST(AudioEncoder, RefusesABitRateBesideAQuality) {
  for (const char* encoder : {"libmp3lame", "libvorbis", "aac"}) {
    const audio_encode_options options{
        .encoder = encoder, .sample_rate = 44100, .channels = 2, .bit_rate = 128'000, .quality = 2};
    EXPECT_THAT([&] { audio_encoder opened(options); },
                ThrowsMessage<error>(
                    HasSubstr("encode audio (" + std::string(encoder) +
                              "): bit_rate and quality are both set, but the encoder uses")));
  }
  EXPECT_THAT(
      [] {
        audio_encoder opened({.encoder = "libmp3lame",
                              .sample_rate = 44100,
                              .channels = 2,
                              .quality = 2,
                              .options = "abr=1"});
      },
      ThrowsMessage<error>(HasSubstr("the option abr is set beside the member quality")));
}

TEST(AudioEncoder, RefusesABitRateThatTheEncoderIgnores) {
  for (const char* encoder : {"flac", "alac", "pcm_s16le", "pcm_f32le", "pcm_mulaw", "tta",
                              "wavpack", "adpcm_ima_wav", "adpcm_ms"}) {
    const audio_encode_options options{
        .encoder = encoder, .sample_rate = 44100, .channels = 1, .bit_rate = 128'000};
    EXPECT_THAT([&] { audio_encoder opened(options); },
                ThrowsMessage<error>(HasSubstr("encode audio (" + std::string(encoder) +
                                               "): the encoder has no bit_rate")));
  }
}

TEST(AudioEncoder, RefusesAQualityThatTheEncoderIgnores) {
  EXPECT_THAT(
      [] {
        audio_encoder encoder(
            {.encoder = "libshine", .sample_rate = 44100, .channels = 2, .quality = 3});
      },
      ThrowsMessage<error>(HasSubstr("the encoder has no such quality")));
}

}  // namespace lade::media::encoder_test
