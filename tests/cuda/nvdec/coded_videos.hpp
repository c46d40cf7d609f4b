// Videos whose coding, colours or display rectangle reveal wrong decoding.

#pragma once

#include <lade/cuda/nvdec/capabilities.hpp>

#include <gtest/gtest.h>

#include <cctype>
#include <ostream>
#include <string>
#include <vector>

#include "../../media/av/media_files.hpp"

namespace lade::cuda {

struct coded_video {
  media::media_recipe recipe;
  video_coding coding;

  std::string path() const { return media::video_path(recipe); }
  friend std::ostream& operator<<(std::ostream& out, const coded_video& video) {
    return out << video.recipe;
  }
};

inline std::string name_of_coded(const coded_video& of) {
  std::string name;
  for (const char each : std::string(of.recipe.file))
    if (std::isalnum(static_cast<unsigned char>(each)) != 0) name += each;
  return name;
}

// H.264 whose stream, container or both state the matrix and the range of its colours. The numbers
// are those of H.273: 1 is BT.709, 6 is BT.601, 9 is BT.2020.
inline std::vector<coded_video> coloured_videos() {
  const video_coding h264{.codec = "h264"};
#define LADE_STATED(matrix, full)                                  \
  "-i {} -c copy -bsf:v h264_metadata=matrix_coefficients=" matrix \
  ":colour_primaries=1:transfer_characteristics=1:video_full_range_flag=" full
  return {
      {{"h264-601.mp4", LADE_STATED("6", "0"), "h264.mp4"}, h264},
      {{"h264-601-full.mp4", LADE_STATED("6", "1"), "h264.mp4"}, h264},
      {{"h264-709.mp4", LADE_STATED("1", "0"), "h264.mp4"}, h264},
      {{"h264-709-full.mp4", LADE_STATED("1", "1"), "h264.mp4"}, h264},
      {{"h264-2020.mp4", LADE_STATED("9", "0"), "h264.mp4"}, h264},
      {{"h264-2020-full.mp4", LADE_STATED("9", "1"), "h264.mp4"}, h264},
      {{"h264-709-in-601.mp4", LADE_STATED("1", "0") " -colorspace smpte170m", "h264.mp4"}, h264},
      {{"h264-in-2020.mp4",
        "-i {} -c copy -colorspace bt2020nc -color_primaries bt2020 -color_trc bt709", "h264.mp4"},
       h264},
  };
#undef LADE_STATED
}

// Videos whose stream and container contradict each other, of which FFmpeg's decoder of each codec
// believes another one, or state nothing.
inline std::vector<coded_video> contradictory_videos() {
  const video_coding h264{.codec = "h264"};
  const video_coding hevc{.codec = "hevc"};
  return {
      {{"h264-in-full.mkv", "-i {} -c copy -color_range pc", "h264.mp4"}, h264},
      {{"hevc-in-full.mkv", "-i {} -c copy -color_range pc", "hevc.mp4"}, hevc},
      {{"h264-limited-in-full.mkv",
        "-i {} -c copy -bsf:v h264_metadata=video_full_range_flag=0 -color_range pc", "h264.mp4"},
       h264},
      {{"h264-wide.mp4", "-vf scale=1280:48 -c:v libx264 -g 12 -pix_fmt yuv420p"}, h264},
      {{"h264-wide-full.mp4",
        "-vf scale=1280:48 -c:v libx264 -g 12 -x264-params fullrange=on -pix_fmt yuv420p"},
       h264},
      {{"vp9-wide-full.webm",
        "-vf scale=1280:48 -c:v libvpx-vp9 -g 12 -cpu-used 8 -color_range pc -pix_fmt yuv420p"},
       {.codec = "vp9"}},
      {{"vp8-wide.webm", "-vf scale=1280:48 -c:v libvpx -g 12 -b:v 200k"}, {.codec = "vp8"}},
  };
}

// Videos whose stream, container or both state where chroma samples lie; the first ones: left,
// centre, and top left.
inline std::vector<coded_video> sited_videos() {
#define LADE_SITED(codec, type) \
  "-i {} -c copy -bsf:v " codec "_metadata=chroma_sample_loc_type=" type
  const char* in_top_left = "-i {} -c copy -chroma_sample_location topleft";
  return {
      {{"h264-left.mp4", LADE_SITED("h264", "0"), "h264.mp4"}, {.codec = "h264"}},
      {{"h264-centre.mp4", LADE_SITED("h264", "1"), "h264.mp4"}, {.codec = "h264"}},
      {{"h264-top-left.mp4", LADE_SITED("h264", "2"), "h264.mp4"}, {.codec = "h264"}},
      {{"hevc-top-left.mp4", LADE_SITED("hevc", "2"), "hevc.mp4"}, {.codec = "hevc"}},
      {{"av1-top-left.mp4", "-i {} -c copy -bsf:v av1_metadata=chroma_sample_position=colocated",
        "av1.mp4"},
       {.codec = "av1"}},
      {{"h264-in-top-left.mkv", in_top_left, "h264.mp4"}, {.codec = "h264"}},
      {{"vp8-in-top-left.mkv", in_top_left, "vp8.webm"}, {.codec = "vp8"}},
  };
#undef LADE_SITED
}

// Depths and subsamplings, for codecs that have them.
inline std::vector<coded_video> deep_videos() {
#define LADE_X265(format) \
  "-c:v libx265 -x265-params log-level=none:keyint=14:bframes=3 -pix_fmt " format
  return {
      {{"hevc-10.mp4", LADE_X265("yuv420p10le")}, {.codec = "hevc", .bits = 10}},
      {{"hevc-10-2020-full.mp4", LADE_X265("yuv420p10le") " -colorspace bt2020nc -color_range pc"},
       {.codec = "hevc", .bits = 10}},
      {{"hevc-12.mp4", LADE_X265("yuv420p12le")}, {.codec = "hevc", .bits = 12}},
      {{"hevc-444.mp4", LADE_X265("yuv444p") " -colorspace bt709"},
       {.codec = "hevc", .chroma = 444}},
      {{"hevc-444-10.mp4", LADE_X265("yuv444p10le") " -colorspace bt709"},
       {.codec = "hevc", .bits = 10, .chroma = 444}},
      {{"hevc-444-12.mp4", LADE_X265("yuv444p12le") " -colorspace bt709"},
       {.codec = "hevc", .bits = 12, .chroma = 444}},
  };
#undef LADE_X265
}

// For tests on a GPU. Skips where it does not decode the video.
inline void skip_if_not_decoded(const coded_video& video) {
  if (device::count() == 0) GTEST_SKIP() << device::why_none();
  if (limits_of(device(0), video.coding).engines == 0) GTEST_SKIP() << "no " << video.recipe.file;
}

}  // namespace lade::cuda
