// How the colours of a video are coded.

#pragma once

#include <lade/cuda/write_pictures.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/video.hpp>

#include <cstdint>
#include <span>

namespace lade::cuda {

struct picture_colours {
  yuv_siting siting = yuv_siting::left;
  yuv_matrix matrix = yuv_matrix::bt709;
  bool full_range = false;
};

// The colours that FFmpeg's decoder takes for these frames. Streams and containers state them, may
// contradict each other, and NVDEC does not tell all that a stream states: so the CPU decodes one
// picture, that of the first key frame. `numbers`: at least one; they must have been fetched.
//
// Throws error(unsupported) for colours that the kernels do not have, and for a key frame that is
// not decoded alone; and what media::decoder throws.
picture_colours colours_of(const media::video& from, std::span<const std::int64_t> numbers,
                           const media::decode_options& how);

}  // namespace lade::cuda
