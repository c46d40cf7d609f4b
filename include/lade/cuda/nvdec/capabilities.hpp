// Which videos the decoder of a GPU (NVDEC) can decode.

#pragma once

#include <lade/cuda/device.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace lade::cuda {

// How the samples of a video are coded. By the names of FFmpeg: "h264", "hevc", "vp8", "vp9",
// "av1", "mpeg2video".
struct video_coding {
  std::string_view codec = {};
  int bits = 8;      // of a sample: 8 to 12
  int chroma = 420;  // 400 (grey), 420, 422, 444
};

// What NVDEC of a GPU can decode of one coding. All is 0 if it can decode nothing of it.
struct video_limits {
  int engines = 0;  // of the GPU that decode this coding: an H100 has 7
  int min_width = 0;
  int min_height = 0;
  int max_width = 0;  // of coded pictures, which are up to 127 pixels larger than what is shown
  int max_height = 0;
  std::int64_t max_macroblocks = 0;  // of 16 x 16 pixels

  friend bool operator==(const video_limits&, const video_limits&) = default;
};

// Asks the driver, once for each GPU and coding. Throws error(unsupported) where there is no NVDEC,
// saying why: a missing library, an old driver. Any thread. Not yet run on a GPU.
video_limits limits_of(device on, const video_coding& coding);

// Why NVDEC cannot decode pictures of a size; empty if it can. Throws as limits_of does.
std::string why_not_decodable(device on, const video_coding& coding, int width, int height);

}  // namespace lade::cuda
