#include <lade/media/av/convert.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>

#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace lade::media {

// The RGB pixels that swscale makes of a frame at full size. Chroma is sited left, in 1/256
// of a luma sample; swscale reads it exactly where it writes planes.
static int largest_difference(const tensor& ours, const std::vector<std::uint8_t>& expected) {
  if (ours.spec().bytes() != expected.size()) return 256;
  int worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, std::abs(ours.data<std::uint8_t>()[i] - expected[i]));
  return worst;
}

static std::vector<std::uint8_t> swscale_rgb(const std::string& input, bool half_height) {
  const auto raw = media_directory / "swscale.rgb";
  media_files::run(input +
                   " -vf scale=in_h_chr_pos=0:in_v_chr_pos=" + (half_height ? "128" : "-513") +
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
  const auto expected = swscale_rgb(
      "-f rawvideo -video_size 176x96 -pixel_format " + format + " -i " + path, half_height);
  EXPECT_LE(largest_difference(ours, expected), 2);
}

INSTANTIATE_TEST_SUITE_P(Formats, ConvertFrame,
                         testing::Values("yuv420p", "yuv422p", "yuv444p", "yuv440p", "yuv411p",
                                         "yuv420p10le", "yuv422p12le", "yuv444p16le", "nv12",
                                         "nv21", "p010le", "gray", "gray10le", "gray16le", "gbrp",
                                         "gbrp10le", "rgb24", "bgr24", "rgba", "bgra", "yuva420p"),
                         [](const auto& made) { return std::string(made.param); });

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
  EXPECT_LE(largest_difference(ours, swscale_rgb("-i " + path, false)), 2);
}

INSTANTIATE_TEST_SUITE_P(Degrees, TurnFrame, testing::Values(0, 90, 180, 270));

TEST(ConvertFrame, AFormatThatIsNotHandledIsNamed) {
  const auto path = media_directory / "mono.nut";
  media_files::run(std::string(moving) + " -frames:v 1 -c:v rawvideo -pix_fmt monow " + path);
  const auto frames = decode(demux(read_bytes(path), path, stream_kind::video));
  EXPECT_THAT([&] { to_tensor(frames.at(0)); },
              testing::ThrowsMessage<error>(testing::HasSubstr("monow")));
}

}  // namespace lade::media
