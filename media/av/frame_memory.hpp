// Memory of frames: buffers of the calling stage, so that its run's budget counts them.

#pragma once

#include <lade/buffer_pool.hpp>

#include <cstddef>
#include <mutex>
#include <optional>

struct AVBufferRef;
struct AVCodecContext;
struct AVFrame;

namespace lade::media {

// The pool from which the threads of a decoder take memory: that of the last call to the decoder.
// The `opaque` of its context; null for a decoder that works on the calling thread. Any thread.
class thread_memory {
 public:
  void enter();  // called in each call to the decoder
  void leave();  // called when no thread of the decoder works
  std::optional<buffer_pool> pool() const;

 private:
  mutable std::mutex mutex_;
  std::optional<buffer_pool> pool_;
};

// Memory of the calling stage as FFmpeg's buffer.
AVBufferRef* allocate_av_buffer(std::size_t bytes);

// Charges the memory of a frame that FFmpeg allocated to the calling stage, for as long as it or a
// copy of it is kept. Replaces what was charged for it before.
void charge_frame(AVFrame& frame);

// The `get_buffer2` of decoders that allow one (AV_CODEC_CAP_DR1). Any thread of theirs. Uses
// FFmpeg's own, which keeps a pool for each decoder, outside of a stage, and for formats of
// hardware and palettes.
int allocate_frame_memory(AVCodecContext* codec, AVFrame* frame, int flags);

}  // namespace lade::media
