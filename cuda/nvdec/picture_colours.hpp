// Determines how the colours of a video are coded.

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

// Decodes a key frame on the CPU, and returns the colours that FFmpeg's decoder assumes for it.
// Streams and containers state colours, which may contradict each other, and NVDEC does not report
// all that a stream states.
//
// Throws error(unsupported) for colours that no kernel supports, and for a key frame that cannot be
// decoded alone. Throws the errors of media::decoder.
picture_colours colours_of(const media::stream_info& stream, const media::packet& key,
                           const media::decode_options& options);

}  // namespace lade::cuda
