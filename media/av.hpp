// FFmpeg's objects as owning pointers, and its errors as exceptions.

#pragma once

#include <lade/error.hpp>

#include <memory>
#include <string_view>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/buffer.h>
#include <libavutil/frame.h>
}

namespace lade::media {

template <auto Free>
struct free_with {
  template <class T>
  void operator()(T* p) const {
    Free(&p);
  }
};
using av_buffer = std::unique_ptr<AVBufferRef, free_with<av_buffer_unref>>;
using av_codec_context = std::unique_ptr<AVCodecContext, free_with<avcodec_free_context>>;
using av_frame = std::unique_ptr<AVFrame, free_with<av_frame_free>>;
using av_packet = std::unique_ptr<AVPacket, free_with<av_packet_free>>;

// Returns `result`, or throws what FFmpeg says of it when it is negative.
int check_av(int result, std::string_view doing);

// The object that FFmpeg allocated; throws std::bad_alloc when it could not.
template <class T>
T* check_av(T* allocated) {
  if (allocated == nullptr) throw std::bad_alloc();
  return allocated;
}

}  // namespace lade::media
