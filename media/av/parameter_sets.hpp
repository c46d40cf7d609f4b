// Parses parameter sets and random access points in packets of H.264 and HEVC.

#pragma once

#include <cstddef>
#include <span>

extern "C" {
#include <libavcodec/codec_par.h>
}

namespace lade::media {

// Whether a packet may have parameter sets (SPS, PPS, VPS) that the container's headers lack: any
// packet in Annex B format, or one with such a NAL unit. False for other codecs.
bool may_have_parameter_sets(const AVCodecParameters& parameters,
                             std::span<const std::byte> packet);

// Whether the parameter sets in the container's headers guarantee that pictures are shown in coding
// order.
bool states_coding_order(const AVCodecParameters& parameters);

// Returns the bytes after the first start code; empty if there is none. A start code precedes each
// NAL unit in Annex B format (ITU-T H.264, B.1), and each unit of MPEG video.
std::span<const std::byte> after_start_code(std::span<const std::byte> bytes);

// Whether the first picture of an H.264 packet is an IDR picture: no later picture refers to one
// before it (ITU-T H.264, 3.69). False if the packet is damaged.
bool begins_with_idr(const AVCodecParameters& parameters, std::span<const std::byte> packet);

// Whether decoding cannot start at a packet that its container marks as a key frame: only later
// pictures are complete, and not always exact. Encoders with periodic intra refresh write such
// packets.
//   - H.264: the picture is not an IDR picture, and has a recovery point whose recovery_frame_cnt
//   is
//     above 0 (ITU-T H.264, D.2.8).
//   - HEVC: the picture is not an intra random access point (ITU-T H.265, 3.70 and D.3.8).
//   - Other codecs, damaged packets: false.
// may_refresh: whether the codec has such pictures.
bool may_refresh(const AVCodecParameters& parameters) noexcept;
bool begins_refresh(const AVCodecParameters& parameters, std::span<const std::byte> packet);

}  // namespace lade::media
