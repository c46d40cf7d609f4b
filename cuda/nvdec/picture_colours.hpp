// How the colours of a video are coded.

#pragma once

#include <lade/cuda/write_pictures.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/stream_info.hpp>

namespace lade::cuda {

struct picture_colours {
  yuv_siting siting = yuv_siting::left;
  yuv_matrix matrix = yuv_matrix::bt709;
  bool full_range = false;

  friend bool operator==(const picture_colours&, const picture_colours&) = default;
};

// The colours that FFmpeg's decoder takes for a key frame of a stream. Streams and containers state
// them, may contradict each other, and NVDEC does not tell all that a stream states: so the CPU
// decodes the frame.
//
// Throws error(unsupported) for colours that the kernels do not have, and for a key frame that is
// not decoded alone; and what media::decoder throws.
picture_colours colours_of(const media::stream_info& stream, const media::packet& key,
                           const media::decode_options& options);

}  // namespace lade::cuda
