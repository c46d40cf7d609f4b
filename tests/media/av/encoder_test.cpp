#include <lade/media/av/encoder.hpp>

#include "encoded.hpp"

#include <gmock/gmock.h>

namespace lade::media {

TEST(VideoEncoder, WritesAFileThatFfmpegReads) {
  const auto path = media_directory / "first.mp4";
  video_encoder encoder({.encoder = "libx264",
                         .width = 178,
                         .height = 98,
                         .frame_rate = 25,
                         .quality = 12,
                         .gop = 10,
                         .b_frames = 2});
  const auto pictures = smooth_pictures(25, 98, 178);
  write_encoded(path, encoder, pictures);
  const auto decoded = rgb_of_ffmpeg(path);
  ASSERT_EQ(decoded.size(), pictures.spec().bytes());
  EXPECT_GT(psnr(decoded.data(), pictures.data<std::uint8_t>(), decoded.size()), 38);
}

}  // namespace lade::media
