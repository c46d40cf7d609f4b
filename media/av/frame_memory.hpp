// Allocates frames from the memory of the calling stage, so that its run's budget counts them.

#pragma once

#include <lade/buffer_pool.hpp>

#include <cstddef>
#include <mutex>
#include <optional>

struct AVBufferRef;
struct AVCodecContext;
struct AVFrame;

namespace lade::media {

// The pool of a decoder's threads: that of the last call to the decoder. It is the `opaque` of the
// decoder's context, or null if the decoder works on the calling thread. Thread-safe.
class thread_memory {
 public:
  void enter();  // call in each call to the decoder
  void leave();  // call when no thread of the decoder works
  std::optional<buffer_pool> pool() const;

 private:
  mutable std::mutex mutex_;
  std::optional<buffer_pool> pool_;
};

// Allocates a buffer of FFmpeg from the memory of the calling stage.
AVBufferRef* allocate_av_buffer(std::size_t bytes);

// Charges the memory of a frame that FFmpeg allocated to the calling stage, until the frame and its
// copies are freed. Replaces an earlier charge.
void charge_frame(AVFrame& frame);

// The callback `get_buffer2` of decoders that support it (AV_CODEC_CAP_DR1). Called by any of the
// decoder's threads. Outside of a stage, and for formats of hardware and palettes, it calls
// FFmpeg's default, which keeps a pool per decoder.
int allocate_frame_memory(AVCodecContext* codec, AVFrame* frame, int flags);

}  // namespace lade::media
