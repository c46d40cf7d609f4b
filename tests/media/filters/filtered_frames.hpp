// The frames that the tests of filters take, and their bytes, to compare them with the ffmpeg
// program.

#pragma once

#include "../av/media_files.hpp"

#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/frame.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/imgutils.h>
}

namespace lade::media {

// 50 frames of 178 x 98 in yuv420p, 25 of them a second.
inline constexpr media_recipe filtered_video{"filtered.mkv", "-c:v ffv1 -pix_fmt yuv420p"};

// Two channels of 88,200 samples in s16, 44,100 of them a second.
inline constexpr media_recipe filtered_audio{"filtered.wav", "-c:a pcm_s16le"};

inline std::vector<frame> video_frames() {
  const auto path = video_path(filtered_video);
  return decode(demux(read_bytes(path), path, stream_kind::video));
}
inline std::vector<frame> audio_frames() {
  const auto path = audio_path(filtered_audio);
  return decode(demux(read_bytes(path), path, stream_kind::audio));
}

// The bytes of pictures one after the other, as ffmpeg writes "rawvideo".
inline std::string pictures(const std::vector<frame>& frames) {
  std::string all;
  for (const auto& each : frames) {
    const auto& from = each.get();
    const auto format = static_cast<AVPixelFormat>(from.format);
    const int bytes = av_image_get_buffer_size(format, from.width, from.height, 1);
    std::vector<std::uint8_t> picture(static_cast<std::size_t>(bytes));
    av_image_copy_to_buffer(picture.data(), bytes, from.data, from.linesize, format, from.width,
                            from.height, 1);
    all.append(picture.begin(), picture.end());
  }
  return all;
}

// The samples of a plane: of interleaved frames, all of them.
inline std::string sounds(const std::vector<frame>& frames, int plane = 0) {
  std::string all;
  for (const auto& each : frames) {
    const auto samples = each.plane(plane);
    all.append(reinterpret_cast<const char*>(samples.bytes()), samples.spec().bytes());
  }
  return all;
}

// EXPECT_EQ would print megabytes.
inline void expect_same(const std::string& got, const std::string& expected) {
  EXPECT_EQ(got.size(), expected.size());
  EXPECT_FALSE(expected.empty());
  EXPECT_TRUE(got == expected);
}

}  // namespace lade::media
