// The videos that the decoder of a GPU (NVDEC) can decode.

#pragma once

#include <lade/cuda/device.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace lade::cuda {

// The coding of the samples of a video. Codecs have FFmpeg's names: "h264", "hevc", "vp8", "vp9",
// "av1", "mpeg2video".
struct video_coding {
  std::string_view codec = {};
  int bits = 8;      // of a sample: 8 to 12
  int chroma = 420;  // 400 (grey), 420, 422, 444
};

// The limits of a GPU's NVDEC for one coding. All members are 0 if it cannot decode the coding.
struct video_limits {
  int engines = 0;  // number of engines for this coding: an H100 has 7
  int min_width = 0;
  int min_height = 0;
  int max_width = 0;  // of coded pictures, up to 127 pixels larger than displayed ones
  int max_height = 0;
  std::int64_t max_macroblocks = 0;  // of 16 x 16 pixels

  friend bool operator==(const video_limits&, const video_limits&) = default;
};

// Returns the limits. Queries the driver once for each GPU and coding. Throws error(unsupported)
// with the reason if there is no NVDEC: a missing library, an old driver. Any thread. Not yet run
// on a GPU.
video_limits limits_of(device on, const video_coding& coding);

// Returns the reason why NVDEC cannot decode pictures of a size; empty if it can. Throws as
// limits_of does.
std::string why_not_decodable(device on, const video_coding& coding, int width, int height);

}  // namespace lade::cuda
