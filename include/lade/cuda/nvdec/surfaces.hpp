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

// A part of a picture, in luma samples from its upper left corner. Width 0: the whole picture.
struct surface_region {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
};

struct surface_options {
  // Number of pictures that the stream may use at a time, 1 to 16. If all are in use, decoding
  // waits for the oldest.
  int surfaces = 4;

  // The part of the displayed picture that the decoder maps. Even numbers. Without a size below,
  // its samples are unmodified, and surfaces need only the memory of the part.
  surface_region crop = {};

  // The size to which the decoder itself resizes pictures, or their crops, with its own filter;
  // both 0: no resize. Even numbers. The result differs from that of kernels and the CPU.
  int width = 0;
  int height = 0;

  // Maximum number of pixels of a picture.
  std::int64_t max_pixels = 89'478'485;
};

// Queues work on the stream that reads a surface. The surface may change after that work. Called on
// a thread of the CPU pool, one call at a time. Must not block.
using use_surface = std::function<void(std::int64_t number, const surface& decoded)>;

// Decodes the frames with these numbers, each once, on the GPU of the stream. The numbers are those
// of media::video::for_each_frame. The frames must have been fetched.
//
// - Order: presentation order, within each part of the video that is decoded.
// - Sessions: in a runtime, as many as the GPU has engines decode at a time. Further calls wait.
// - End: the task completes when the stream has passed all work that `use` has queued. Nothing
//   waits before that if there are enough `surfaces`.
// - Reuse: decoders are kept for later videos of the same size, coding and crop, because creating
//   one takes 300 ms.
// - Context: the CUDA context of the calling thread is restored after every call.
//
// `use` must outlive the await. Requires a runtime.
//
// Throws:
// - error(unsupported) with the reason for a video that the CPU must decode: there is no NVDEC;
//   NVDEC cannot decode the coding or size; the frames cannot be identified by their times; the
//   size or the headers change within the video.
// - error(invalid_argument) naming an invalid option: a crop must lie inside the displayed
//   picture.
// - error(invalid_data): damage that NVDEC reports, or a frame that it does not return. NVDEC
//   conceals some damage without a report.
// - error(limit_exceeded): more than max_pixels.
// - error(stopped): between two packets, if the caller is cancelled.
// - exceptions of `use`.
//
// Not yet run on a GPU: tested only with a fake driver.
task<> decode_surfaces(media::video from, std::vector<std::int64_t> numbers, stream on,
                       use_surface& use, surface_options options = {},
                       media::selection_statistics* counted = nullptr);

// Counts of the decoders of a GPU in a runtime.
struct decoder_statistics {
  int sessions = 0;                // maximum of concurrent sessions
  std::uint64_t created = 0;       // decoders created
  std::uint64_t reconfigured = 0;  // decoders reused for another size
  std::uint64_t reused = 0;        // decoders reused unchanged
  std::uint64_t destroyed = 0;
  std::uint64_t abandoned = 0;  // decoders lost with their context, memory included
};

// Returns the counts. Throws error(unsupported) if there is no NVDEC.
decoder_statistics decoders_of(runtime& in, device on);

}  // namespace lade::cuda
