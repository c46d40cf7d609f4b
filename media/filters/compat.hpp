// Differences between the versions of libavfilter, from FFmpeg 5.1 to 9.

#pragma once

#include <cstdint>

extern "C" {
#include <libavfilter/avfilter.h>
#include <libavfilter/buffersrc.h>
#include <libavutil/frame.h>
}

namespace lade::media {

// Sets the colour space and range that the graph negotiates (since FFmpeg 7.1), and its alpha mode
// (since 8.1).
inline void set_source_colour([[maybe_unused]] AVBufferSrcParameters& parameters,
                              [[maybe_unused]] const AVFrame& frame) noexcept {
#if LIBAVFILTER_VERSION_INT >= AV_VERSION_INT(10, 4, 100)
  parameters.color_space = frame.colorspace;
  parameters.color_range = frame.color_range;
#endif
#if LIBAVFILTER_VERSION_INT >= AV_VERSION_INT(11, 8, 100)
  parameters.alpha_mode = frame.alpha_mode;
#endif
}

// Whether two frames have the same alpha mode, which graphs negotiate since FFmpeg 8.1.
inline bool same_alpha_mode([[maybe_unused]] const AVFrame& a,
                            [[maybe_unused]] const AVFrame& b) noexcept {
#if LIBAVFILTER_VERSION_INT >= AV_VERSION_INT(11, 8, 100)
  return a.alpha_mode == b.alpha_mode;
#else
  return true;
#endif
}

}  // namespace lade::media
