// What packets of H.264 and HEVC hold that decoders keep from one stream to the next, and where
// they begin anew.

#pragma once

#include <cstddef>
#include <span>

extern "C" {
#include <libavcodec/codec_par.h>
}

namespace lade::media {

// Whether a packet may have parameter sets (SPS, PPS, VPS) that the headers of its container do not
// have: one of a stream in Annex B format, or one with such a NAL unit. False for other codecs.
bool may_have_parameter_sets(const AVCodecParameters& parameters,
                             std::span<const std::byte> packet);

// Whether pictures are shown in the order in which they are coded, by the parameter sets in the
// headers of a container. False if these do not say so.
bool states_coding_order(const AVCodecParameters& parameters);

// In Annex B format, a start code is in front of each NAL unit (ITU-T H.264, B.1), and of each unit
// of MPEG: what is behind the first one. Empty if there is none.
std::span<const std::byte> after_start_code(std::span<const std::byte> bytes);

// Whether the first picture of an H.264 packet is an IDR picture: no picture behind it needs one
// before it (ITU-T H.264, 3.69). False if the packet is damaged.
bool begins_with_idr(const AVCodecParameters& parameters, std::span<const std::byte> packet);

// Whether decoding cannot start at a packet that its container marks as a key frame: only pictures
// some time behind it are whole, and not always exact. Encoders that refresh their pictures part by
// part (periodic intra refresh) have such packets. Of H.264, the picture is no IDR picture, and has
// a recovery point whose recovery_frame_cnt is above 0 (ITU-T H.264, D.2.8); of HEVC, it is no
// intra random access point (ITU-T H.265, 3.70 and D.3.8). False for other codecs and damaged
// packets.
bool may_refresh(
    const AVCodecParameters& parameters) noexcept;  // whether the codec has such pictures
bool begins_refresh(const AVCodecParameters& parameters, std::span<const std::byte> packet);

}  // namespace lade::media
