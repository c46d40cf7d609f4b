// Converts decoded surfaces to the frames of a clip.

#pragma once

#include "known_colours.hpp"

#include <lade/cuda/image_batch.hpp>
#include <lade/cuda/nvdec/surface.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/media/av/clip.hpp>
#include <lade/media/av/video.hpp>
#include <lade/random.hpp>
#include <lade/tensor.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace lade::cuda {

// Throws error(unsupported) naming the option if the GPU does not support it for any video: a
// colour other than RGB and BGR.
void require_gpu_options(const media::clip_options& options);

// Writes the frames of the clips of one video, as media::decode_clip does. All have the same crop.
class clip_writer {
 public:
  // `numbers`: the frames of the clips. The layout is thwc or tchw. `into`: contiguous, in memory
  // of the GPU. Throws error(unsupported) for a video that must be turned, and the errors of
  // known_colours.
  clip_writer(const media::clip_options& options, known_colours& known, const media::video& from,
              std::span<const std::int64_t> numbers, const tensor& into, random draw);

  // Enqueues the conversion of one frame to all slots that show it.
  void write(std::int64_t number, const surface& decoded, const stream& on) const;

 private:
  image_batch place_of(std::int64_t index) const;

  media::clip_options options_;
  media::stream_info stream_;
  picture_colours colours_;
  std::multimap<std::int64_t, std::int64_t> slots_;  // by frame; counted over all clips
  tensor into_;
  random draw_;
};

}  // namespace lade::cuda
