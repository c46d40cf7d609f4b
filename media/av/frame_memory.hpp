// Memory of frames: buffers of the calling stage, so that its run's budget counts them.

#pragma once

struct AVCodecContext;
struct AVFrame;

namespace lade::media {

// The `get_buffer2` of decoders that allow one (AV_CODEC_CAP_DR1). Uses FFmpeg's own, which keeps
// a pool for each decoder, outside of a stage, and for formats of hardware and palettes.
int allocate_frame_memory(AVCodecContext* codec, AVFrame* frame, int flags);

}  // namespace lade::media
