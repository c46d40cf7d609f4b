// Parameter sets of H.264 and HEVC, which a decoder keeps from one stream to the next.

#pragma once

#include <cstddef>
#include <span>

extern "C" {
#include <libavcodec/codec_par.h>
}

namespace lade::media {

// Whether a packet may have parameter sets (SPS, PPS, VPS) that the headers of its container do not
// have: one of a stream in Annex B format, or one with such a NAL unit. False for other codecs.
bool may_have_parameter_sets(const AVCodecParameters& of, std::span<const std::byte> packet);

}  // namespace lade::media
