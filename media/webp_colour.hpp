// The colours of lossy WebP, exactly as libwebp makes them.

#pragma once

#include "av.hpp"

#include <cstdint>

namespace lade::media {

// Row y of a YUV 4:2:0 frame as RGB: libwebp's upsampling (dsp/upsampling.c) and its conversion
// from limited-range BT.601 (dsp/yuv.h).
void webp_row_to_rgb(const AVFrame& frame, int y, std::uint8_t* out);

}  // namespace lade::media
