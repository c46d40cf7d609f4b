// Frames of videos, decoded by the GPU (NVDEC) into its memory.

#pragma once

#include <lade/cuda/device.hpp>
#include <lade/cuda/nvdec/surface.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/media/av/video.hpp>
#include <lade/task.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace lade {
class runtime;
}

namespace lade::cuda {

// A part of a picture, in luma samples from its upper left corner. Width 0: all of it.
struct surface_region {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
};

struct surface_options {
  // How many pictures may be in use by the stream at a time, 1 to 16. Decoding waits for the oldest
  // one if there are more.
  int surfaces = 4;

  // The part of what is shown that the decoder maps. Even numbers. Without a size below, its
  // samples are those that were decoded, and surfaces take no more memory than the part.
  surface_region crop = {};

  // The size to which pictures, or their crops, are resized by the decoder itself, with its own
  // filter; both 0: not at all. Even numbers. The result differs from what kernels and the CPU
  // resize.
  int width = 0;
  int height = 0;

  // The most pixels a picture may have.
  std::int64_t max_pixels = 89'478'485;
};

// Enqueues work that reads a surface on the stream; after that, the surface may change. It is
// called on a thread of the CPU pool, one call at a time. Must not block.
using use_surface = std::function<void(std::int64_t number, const surface& decoded)>;

// Decodes the frames of these numbers, each once, on the GPU of the stream: as
// media::video::for_each_frame does, with the same numbers. They must have been fetched.
//
// - Order: that of presentation, in each of the parts of the video that are decoded.
// - Sessions: as many as the GPU has engines decode at a time in a runtime. Others wait.
// - Ends when the stream has passed all work that `use` has enqueued. Nothing waits in between, as
//   long as `surfaces` are enough.
// - Decoders are kept for later videos of the same size, coding and crop: to make one takes 300 ms.
// - Context: that of the calling thread is restored after every call.
//
// `use` must outlive the await. Requires a runtime.
//
// Throws error(unsupported), saying why, for a video that must be decoded by the CPU: NVDEC is not
// there, or cannot decode its coding or size; its frames cannot be told by their times; its size or
// its headers change on the way. error(invalid_argument) naming an option that cannot work: a crop
// must lie inside of what the video shows. error(invalid_data): damage that NVDEC reports, or a
// frame that it does not show. It conceals some damage without a word. error(limit_exceeded):
// max_pixels. error(stopped): between two packets, if the caller is cancelled. And what `use`
// throws.
//
// Not yet run on a GPU: tested over a driver that a test replaces.
task<> decode_surfaces(media::video from, std::vector<std::int64_t> numbers, stream on,
                       use_surface& use, surface_options options = {},
                       media::selection_statistics* counted = nullptr);

// What the decoders of a GPU have done in a runtime so far.
struct decoder_statistics {
  int sessions = 0;                // that can decode at a time
  std::uint64_t created = 0;       // decoders
  std::uint64_t reconfigured = 0;  // for another size
  std::uint64_t reused = 0;        // as they were
  std::uint64_t destroyed = 0;
  std::uint64_t abandoned = 0;  // and lost with their memory, because their context was
};

// Throws error(unsupported) where there is no NVDEC.
decoder_statistics decoders_of(runtime& in, device on);

}  // namespace lade::cuda
