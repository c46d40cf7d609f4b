// The places where libavfilter of FFmpeg 5.1 to 9 differs.

#pragma once

#include <cstdint>

extern "C" {
#include <libavfilter/avfilter.h>
#include <libavfilter/buffersrc.h>
#include <libavutil/frame.h>
}

namespace lade::media {

// From FFmpeg 7.1 on, colours are part of the format of a graph; from 8.1 on, alpha is.
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

}  // namespace lade::media
