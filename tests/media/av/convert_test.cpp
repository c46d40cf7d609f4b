#include <lade/media/av/convert.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/muxer.hpp>
#include <lade/media/av/video.hpp>

#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace lade::media::convert_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

// The RGB pixels that swscale makes of a frame at full size. Chroma is sited left, in 1/256
// of a luma sample; swscale reads it exactly where it writes planes.
static int largest_difference(const tensor& ours, const std::vector<std::uint8_t>& expected) {
  if (ours.spec().bytes() != expected.size()) return 256;
  int worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, std::abs(ours.data<std::uint8_t>()[i] - expected[i]));
  return worst;
}

// Where the chroma of a picture lies that has a row of it for two rows of luma, and for each.
static constexpr const char* left_of_two_rows = "in_h_chr_pos=0:in_v_chr_pos=128";
static constexpr const char* left_of_each_row = "in_h_chr_pos=0:in_v_chr_pos=-513";

static std::vector<std::uint8_t> swscale_rgb(const std::string& input, const std::string& options) {
  const auto raw = media_directory / "swscale.rgb";
  media_files::run(input + " -vf scale=" + options +
                   ":out_range=full:flags=bilinear+accurate_rnd+full_chroma_int+full_chroma_inp,"
                   "format=gbrp -f rawvideo " +
                   raw);
  const auto planes = read_bytes(raw);
  std::vector<std::uint8_t> pixels(planes.size());
  for (std::size_t i = 0; i < planes.size() / 3; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      pixels[3 * i + c] =
          std::to_integer<std::uint8_t>(planes.data()[(c + 2) % 3 * planes.size() / 3 + i]);
  return pixels;
}

class ConvertFrame : public testing::TestWithParam<const char*> {};

TEST_P(ConvertFrame, IsWithinTwoLevelsOfSwscale) {
  const std::string format = GetParam();
  const auto path = media_directory / (format + ".raw");
  media_files::run(std::string(moving) + " -vf scale=176:96 -frames:v 1 -pix_fmt " + format +
                   " -f rawvideo " + path);
  const auto options = "video_size=176x96:pixel_format=" + format;
  const auto frames = decode(demux(read_bytes(path), path, stream_kind::video, {},
                                   {.format = "rawvideo", .options = options}));
  ASSERT_EQ(frames.size(), 1U);
  ASSERT_EQ(frames[0].pixel_format(), format);
  const auto ours = to_tensor(frames[0]);
  const bool half_height = format.find("420") != format.npos || format.find("440") != format.npos ||
                           format == "nv12" || format == "nv21" || format == "p010le";
  const auto expected =
      swscale_rgb("-f rawvideo -video_size 176x96 -pixel_format " + format + " -i " + path,
                  half_height ? left_of_two_rows : left_of_each_row);
  EXPECT_LE(largest_difference(ours, expected), 2);
}

INSTANTIATE_TEST_SUITE_P(Formats, ConvertFrame,
                         testing::Values("yuv420p", "yuv422p", "yuv444p", "yuv440p", "yuv411p",
                                         "yuv420p10le", "yuv422p12le", "yuv444p16le", "nv12",
                                         "nv21", "p010le", "gray", "gray10le", "gray16le", "gbrp",
                                         "gbrp10le", "rgb24", "bgr24", "rgba", "bgra", "yuva420p"),
                         [](const auto& made) { return std::string(made.param); });

// One picture without losses, in a stream that states how its colours are to be read.
static std::string tagged_path(const std::string& format, const std::string& tags) {
  auto path = media_directory / "tagged.mp4";
  media_files::run(std::string(moving) + " -frames:v 1 -vf scale=176:96 -c:v libx264 -qp 0 " +
                   "-pix_fmt " + format + " -x264-params " + tags + " " + path);
  return path;
}

static frame only_frame_of(const std::string& path) {
  auto frames = decode(demux(read_bytes(path), path, stream_kind::video));
  EXPECT_EQ(frames.size(), 1U);
  return frames.at(0);
}

class TaggedColours
    : public testing::TestWithParam<std::tuple<const char*, const char*, const char*>> {};

TEST_P(TaggedColours, AreWithinTwoLevelsOfSwscale) {
  const auto [matrix, range, format] = GetParam();
  const bool full = range == std::string_view("pc");
  const auto path = tagged_path(
      format, std::string("colormatrix=") + matrix + (full ? ":fullrange=on" : ":fullrange=off"));
  const auto one = only_frame_of(path);
  EXPECT_EQ(one.colour().matrix, matrix);
  EXPECT_EQ(one.colour().range, range);
  const bool half_height = std::string_view(format).find("420") != std::string_view::npos;
  const auto expected =
      swscale_rgb("-i " + path, half_height ? left_of_two_rows : left_of_each_row);
  // swscale reads samples of full range and 10 bits as multiples of 1/1020 instead of 1/1023: it is
  // up to 1.3 above exact arithmetic.
  const bool wide = one.pixel_format() == "yuv420p10le";
  EXPECT_LE(largest_difference(to_tensor(one), expected), full && wide ? 3 : 2);
}

INSTANTIATE_TEST_SUITE_P(All, TaggedColours,
                         testing::Combine(testing::Values("bt709", "smpte170m", "bt470bg",
                                                          "bt2020nc"),
                                          testing::Values("tv", "pc"),
                                          testing::Values("yuv420p", "yuv444p", "yuv420p10le")),
                         [](const auto& of) {
                           return std::string(std::get<0>(of.param)) + std::get<1>(of.param) +
                                  std::get<2>(of.param);
                         });

// How x264 counts the places of chroma, and swscale measures them.
struct stated_siting {
  int location;
  const char* positions;
};

class TaggedSiting : public testing::TestWithParam<stated_siting> {};

TEST_P(TaggedSiting, IsWithinTwoLevelsOfSwscale) {
  const auto path = tagged_path("yuv420p", "chromaloc=" + std::to_string(GetParam().location));
  const auto expected = swscale_rgb("-i " + path, GetParam().positions);
  EXPECT_LE(largest_difference(to_tensor(only_frame_of(path)), expected), 2);
}

INSTANTIATE_TEST_SUITE_P(Places, TaggedSiting,
                         testing::Values(stated_siting{0, "in_h_chr_pos=0:in_v_chr_pos=128"},
                                         stated_siting{1, "in_h_chr_pos=128:in_v_chr_pos=128"},
                                         stated_siting{2, "in_h_chr_pos=0:in_v_chr_pos=0"},
                                         stated_siting{3, "in_h_chr_pos=128:in_v_chr_pos=0"},
                                         stated_siting{4, "in_h_chr_pos=0:in_v_chr_pos=256"},
                                         stated_siting{5, "in_h_chr_pos=128:in_v_chr_pos=256"}));

// Raw pictures state nothing about their colours.
struct untagged_size {
  const char* size;
  const char* matrix;  // as swscale calls it
  const char* other;
};

class UntaggedColours : public testing::TestWithParam<untagged_size> {};

TEST_P(UntaggedColours, AreThoseOfTheSize) {
  const std::string size = GetParam().size;
  const auto path = media_directory / "untagged.raw";
  media_files::run("-f lavfi -i testsrc2=size=" + size +
                   " -frames:v 1 -pix_fmt yuv420p -f rawvideo " + path);
  const auto options = "video_size=" + size + ":pixel_format=yuv420p";
  const auto frames = decode(demux(read_bytes(path), path, stream_kind::video, {},
                                   {.format = "rawvideo", .options = options}));
  const auto ours = to_tensor(frames.at(0));
  const auto difference = [&](const char* matrix) {
    return largest_difference(
        ours, swscale_rgb("-f rawvideo -video_size " + size + " -pixel_format yuv420p -i " + path,
                          std::string(left_of_two_rows) + ":in_color_matrix=" + matrix));
  };
  EXPECT_LE(difference(GetParam().matrix), 2);
  EXPECT_GT(difference(GetParam().other), 2);
}

INSTANTIATE_TEST_SUITE_P(Sizes, UntaggedColours,
                         testing::Values(untagged_size{"1280x96", "bt709", "bt601"},
                                         untagged_size{"1278x96", "bt601", "bt709"},
                                         untagged_size{"176x578", "bt709", "bt601"},
                                         untagged_size{"176x576", "bt601", "bt709"}),
                         [](const auto& of) { return "Of" + std::string(of.param.size); });

// The ffmpeg program turns frames as their stream says.
class TurnFrame : public testing::TestWithParam<int> {};

TEST_P(TurnFrame, EqualsTheFfmpegProgram) {
  const auto upright = media_directory / "upright.mp4";
  const auto path = media_directory / ("turned" + std::to_string(GetParam()) + ".mp4");
  media_files::run(std::string(moving) + " -frames:v 1 -c:v libx264 -pix_fmt yuv444p " + upright);
  std::string copy = turned_copy;
  copy.replace(copy.find("90"), 2, std::to_string(GetParam()));
  media_files::run(copy.replace(copy.find("{}"), 2, upright) + " " + path);
  const auto frames = decode(demux(read_bytes(path), path, stream_kind::video));
  EXPECT_EQ(frames.at(0).stream().orientation().degrees % 180, GetParam() % 180);
  const auto ours = to_tensor(frames.at(0));
  const bool sideways = GetParam() % 180 == 90;
  EXPECT_EQ(ours.shape()[0], sideways ? 178 : 98);
  EXPECT_LE(largest_difference(ours, swscale_rgb("-i " + path, left_of_each_row)), 2);
}

INSTANTIATE_TEST_SUITE_P(Degrees, TurnFrame, testing::Values(0, 90, 180, 270));

static frame first_frame_of(const std::string& path) {
  return video(read_bytes(path), path).frames(std::vector<std::int64_t>{0})[0];
}

class MirrorFrame : public testing::TestWithParam<int> {};

TEST_P(MirrorFrame, EqualsTheFfmpegProgram) {
  const auto upright = media_directory / "upright.mkv";
  const auto path = media_directory / ("mirrored" + std::to_string(GetParam()) + ".mp4");
  media_files::run(std::string(moving) + " -frames:v 1 -c:v libx264 -pix_fmt yuv444p " + upright);
  const auto packets = demux(read_bytes(upright), upright, stream_kind::video);
  muxer to(path);
  to.set_orientation(to.add(packets.stream()), {.degrees = GetParam(), .mirrored = true});
  for (const auto& each : packets) to.write(0, each);
  to.finish();
  const auto ours = to_tensor(first_frame_of(path));
  EXPECT_LE(largest_difference(ours, swscale_rgb("-i " + path, left_of_each_row)), 2);
}

INSTANTIATE_TEST_SUITE_P(Degrees, MirrorFrame, testing::Values(0, 90, 180, 270));

// The rotated file has the packets of the other one.
TEST(TurnFrame, AFrameThatIsNotToBeTurnedIsAsItIsStored) {
  const auto stored = to_tensor(first_frame_of(video_path(video_recipe("h264.mp4"))));
  const auto sideways = first_frame_of(video_path(video_recipe("h264-rotated.mov")));
  EXPECT_EQ(to_tensor(sideways).shape(), (dimensions{178, 98, 3}));
  const auto unturned = to_tensor(sideways, {.orient = false});
  ASSERT_EQ(unturned.shape(), stored.shape());
  EXPECT_EQ(std::memcmp(unturned.bytes(), stored.bytes(), stored.spec().bytes()), 0);
  const tensor slot(stored.spec());
  write_frame(sideways, {.width = 178, .height = 98, .orient = false}, slot);
  EXPECT_EQ(std::memcmp(slot.bytes(), stored.bytes(), stored.spec().bytes()), 0);
}

// Raw pictures of a format, 64 x 48.
static std::string raw_path(const std::string& format, const std::string& filter = "null") {
  const auto path = media_directory / (format + ".raw");
  media_files::run("-f lavfi -i testsrc2=size=64x48:rate=5:duration=1 -vf " + filter +
                   ",format=" + format + " -f rawvideo " + path);
  return path;
}

static frame raw_frame(const std::string& format, const std::string& filter = "null") {
  const auto path = raw_path(format, filter);
  const auto options = "video_size=64x48:pixel_format=" + format;
  const video opened(read_bytes(path), path,
                     {.demuxing = {.format = "rawvideo", .options = options}});
  return opened.frames(std::vector<std::int64_t>{0})[0];
}

class FramePlanes : public testing::TestWithParam<const char*> {};

TEST_P(FramePlanes, AreThoseThatTheFfmpegProgramWrites) {
  const auto planes = planes_to_tensor(raw_frame(GetParam()));
  const auto expected = read_bytes(raw_path(GetParam()));
  ASSERT_EQ(planes.spec().bytes() * 5, expected.size());
  EXPECT_EQ(std::memcmp(planes.bytes(), expected.data(), planes.spec().bytes()), 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, FramePlanes,
                         testing::Values("yuv420p", "yuv422p", "yuv444p", "nv12", "nv21", "p010le",
                                         "yuv420p10le", "yuv422p12le", "yuv444p16le", "gray",
                                         "gray16le", "rgb24", "bgr24", "rgba", "gbrp"),
                         [](const auto& of) { return std::string(of.param); });

TEST(FramePlanes, HaveTheShapeOfTheirFormat) {
  const auto shape_of = [](const char* format) { return planes_spec(raw_frame(format)); };
  EXPECT_EQ(shape_of("nv12"), (tensor_spec{element_type::u8, {72, 64}}));
  EXPECT_EQ(shape_of("p010le"), (tensor_spec{element_type::u16, {72, 64}}));
  EXPECT_EQ(shape_of("yuv422p"), (tensor_spec{element_type::u8, {96, 64}}));
  EXPECT_EQ(shape_of("yuv444p"), (tensor_spec{element_type::u8, {3, 48, 64}}));
  EXPECT_EQ(shape_of("rgba"), (tensor_spec{element_type::u8, {48, 64, 4}}));
  EXPECT_EQ(shape_of("gray16le"), (tensor_spec{element_type::u16, {48, 64}}));
}

TEST(FramePlanes, ThatDoNotFillWholeRowsAreRefused) {
  EXPECT_THAT([] { planes_spec(first_frame_of(video_path(video_recipe("vp9-odd.webm")))); },
              ThrowsMessage<error>(HasSubstr("whole rows")));
  const auto some = raw_frame("nv12");
  EXPECT_THAT([&] { write_planes(some, tensor(element_type::u8, {48, 64})); },
              ThrowsMessage<error>(HasSubstr("instead of contiguous u8[72, 64]")));
}

TEST(ConvertFrame, KeepsAlphaForRgba) {
  const auto with_alpha = raw_frame("rgba", "format=rgba,geq=r=X:g=Y:b=X+Y:a=3*X");
  const auto rgba = to_tensor(with_alpha, {.colour = image_colour::rgba});
  const auto rgb = to_tensor(with_alpha);
  const auto stored = planes_to_tensor(with_alpha);
  ASSERT_EQ(rgba.shape(), (dimensions{48, 64, 4}));
  const auto* pixels = rgba.data<std::uint8_t>();
  for (std::int64_t i = 0; i < 48 * 64; ++i) {
    EXPECT_EQ(pixels[4 * i + 3], stored.data<std::uint8_t>()[4 * i + 3]);
    for (std::int64_t c = 0; c < 3; ++c)
      EXPECT_EQ(pixels[4 * i + c], rgb.data<std::uint8_t>()[3 * i + c]);
  }
  const auto opaque = to_tensor(first_frame_of(video_path(video_recipe("h264.mp4"))),
                                {.colour = image_colour::rgba});
  EXPECT_EQ(opaque.data<std::uint8_t>()[3], 255);
}

// A picture whose pixels are twice as wide as they are high.
TEST(ConvertFrame, ScalesPixelsThatAreNotSquareAsTheyAreShown) {
  const std::string path = media_directory / "wide-pixels.mp4";
  media_files::run(std::string(moving) + " -t 0.2 -vf setsar=2 -c:v libx264 -pix_fmt yuv420p " +
                   path);
  const auto wide = first_frame_of(path);
  EXPECT_EQ(to_tensor(wide).shape(), (dimensions{98, 178, 3}));
  EXPECT_EQ(to_tensor(wide, {.square_pixels = true}).shape(), (dimensions{98, 356, 3}));
  // The middle of a resize to 232 x 64, in which 356 x 98 has its proportions.
  const auto cropped = to_tensor(wide, {.width = 64,
                                        .height = 64,
                                        .fit = image_fit::centre_crop,
                                        .shorter_side = 64,
                                        .square_pixels = true});
  const auto whole = to_tensor(wide, {.width = 232, .height = 64});
  for (std::int64_t y = 0; y < 64; ++y)
    for (std::int64_t x = 0; x < 64 * 3; ++x)
      ASSERT_NEAR(cropped.data<std::uint8_t>()[y * 64 * 3 + x],
                  whole.data<std::uint8_t>()[(y * 232 + 84) * 3 + x], 1);
}

TEST(ConvertFrame, OfOneSideOnlyIsRefused) {
  const auto some = first_frame_of(video_path(video_recipe("h264.mp4")));
  EXPECT_THAT([&] { to_tensor(some, {.width = 80}); },
              ThrowsMessage<error>(HasSubstr("width and height")));
}

TEST(ConvertFrame, AFormatThatIsNotHandledIsNamed) {
  const auto path = media_directory / "mono.nut";
  media_files::run(std::string(moving) + " -frames:v 1 -c:v rawvideo -pix_fmt monow " + path);
  const auto frames = decode(demux(read_bytes(path), path, stream_kind::video));
  EXPECT_THAT([&] { to_tensor(frames.at(0)); },
              testing::ThrowsMessage<error>(testing::HasSubstr("monow")));
}

}  // namespace lade::media::convert_test
