// What the floors of video and audio share: FFmpeg's objects with owners, a stream of a file and
// its decoder. Errors end the program.

#pragma once

#include <memory>
#include <string>

#include "bench.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/frame.h>
}

namespace bench {

template <auto Free>
struct free_with {
  template <class T>
  void operator()(T* p) const {
    Free(&p);
  }
};
using av_codec = std::unique_ptr<AVCodecContext, free_with<avcodec_free_context>>;
using av_format = std::unique_ptr<AVFormatContext, free_with<avformat_close_input>>;
using av_frame = std::unique_ptr<AVFrame, free_with<av_frame_free>>;
using av_packet = std::unique_ptr<AVPacket, free_with<av_packet_free>>;

inline int check_av(int result, const std::string& doing) {
  if (result < 0) fail(doing + ": FFmpeg's error " + std::to_string(result));
  return result;
}

// The packets of the first stream of a kind. Nothing is decoded to learn what is in the file.
class av_stream {
 public:
  av_stream(const std::string& path, AVMediaType kind) : path_(path) {
    av_log_set_level(AV_LOG_ERROR);
    AVFormatContext* format = avformat_alloc_context();
    format->max_probe_packets = 0;  // else a .wav is searched for S/PDIF
    check_av(avformat_open_input(&format, path.c_str(), nullptr, nullptr), path);
    format_.reset(format);
    auto count = static_cast<int>(format->nb_streams);
    while (index_ < count && format->streams[index_]->codecpar->codec_type != kind) ++index_;
    if (index_ == count) fail(path + ": no such stream");
  }

  AVStream* get() const { return format_->streams[index_]; }

  // The next packet, valid until the next call; null at the end.
  const AVPacket* next() {
    do {
      av_packet_unref(packet_.get());
      int result = av_read_frame(format_.get(), packet_.get());
      if (result == AVERROR_EOF) return nullptr;
      check_av(result, path_);
    } while (packet_->stream_index != index_);
    return packet_.get();
  }

  // The next packet is the key frame that is displayed at this time.
  void seek(std::int64_t key_pts) {
    check_av(av_seek_frame(format_.get(), index_, key_pts, AVSEEK_FLAG_BACKWARD), path_);
  }

 private:
  std::string path_;
  av_format format_;
  av_packet packet_{av_packet_alloc()};
  int index_ = 0;
};

// FFmpeg's own choice of a decoder for a stream, on the caller's thread.
class av_decoder {
 public:
  explicit av_decoder(const AVStream* stream) {
    const AVCodec* codec = avcodec_find_decoder(stream->codecpar->codec_id);
    if (codec == nullptr) fail("no decoder");
    codec_.reset(avcodec_alloc_context3(codec));
    check_av(avcodec_parameters_to_context(codec_.get(), stream->codecpar), codec->name);
    codec_->pkt_timebase = stream->time_base;
    codec_->thread_count = 1;
    check_av(avcodec_open2(codec_.get(), codec, nullptr), codec->name);
  }

  AVCodecContext* get() const { return codec_.get(); }

  // Decodes a packet, or what is left if it is null, and calls `use` with each frame.
  template <class F>
  void decode(const AVPacket* packet, F use) {
    check_av(avcodec_send_packet(codec_.get(), packet), "decode");
    while (true) {
      int result = avcodec_receive_frame(codec_.get(), frame_.get());
      if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return;
      check_av(result, "decode");
      use(*frame_);
    }
  }

 private:
  av_codec codec_;
  av_frame frame_{av_frame_alloc()};
};

// Calls `use` with each frame of the first stream of a kind.
template <class F>
void decode_all(const std::string& path, AVMediaType kind, F use) {
  av_stream stream(path, kind);
  av_decoder decoder(stream.get());
  while (const AVPacket* packet = stream.next()) decoder.decode(packet, use);
  decoder.decode(nullptr, use);
}

}  // namespace bench
