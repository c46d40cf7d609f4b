// The floor of encode_bench: RGB frames in memory to H.264 by swscale and libx264, one thread.

#include <vector>

#include "bare_av.hpp"
#include "media.hpp"

extern "C" {
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
}

namespace {

// One conversion of frames of one size from or to RGB.
class converter {
 public:
  converter(int width, int height, AVPixelFormat from, AVPixelFormat to)
      : context_(sws_getContext(width, height, from, width, height, to, SWS_BILINEAR, nullptr,
                                nullptr, nullptr)) {}
  ~converter() { sws_freeContext(context_); }
  converter(const converter&) = delete;
  converter& operator=(const converter&) = delete;

  void convert(const AVFrame& from, AVFrame& to) {
    sws_scale(context_, from.data, from.linesize, 0, from.height, to.data, to.linesize);
  }

 private:
  SwsContext* context_;
};

bench::av_frame frame_of(int width, int height, AVPixelFormat format) {
  bench::av_frame frame(av_frame_alloc());
  frame->width = width;
  frame->height = height;
  frame->format = format;
  bench::check_av(av_frame_get_buffer(frame.get(), 0), "allocate a frame");
  return frame;
}

std::vector<bench::av_frame> rgb_frames(const std::string& path, std::size_t count) {
  std::vector<bench::av_frame> frames;
  bench::decode_all(path, AVMEDIA_TYPE_VIDEO, [&](const AVFrame& frame) {
    if (frames.size() == count) return;
    auto format = static_cast<AVPixelFormat>(frame.format);
    converter to_rgb(frame.width, frame.height, format, AV_PIX_FMT_RGB24);
    frames.push_back(frame_of(frame.width, frame.height, AV_PIX_FMT_RGB24));
    to_rgb.convert(frame, *frames.back());
  });
  return frames;
}

bench::av_codec encoder_of(const AVFrame& frame, const std::string& preset) {
  const AVCodec* x264 = avcodec_find_encoder_by_name("libx264");
  if (x264 == nullptr) bench::fail("libx264 is not in this FFmpeg");
  bench::av_codec codec(avcodec_alloc_context3(x264));
  codec->width = frame.width;
  codec->height = frame.height;
  codec->pix_fmt = AV_PIX_FMT_YUV420P;
  codec->time_base = {1, 30};
  codec->thread_count = 1;
  bench::check_av(av_opt_set(codec->priv_data, "preset", preset.c_str(), 0), preset);
  bench::check_av(avcodec_open2(codec.get(), x264, nullptr), "open libx264");
  return codec;
}

// How many bytes the packets have that are ready.
std::size_t receive(AVCodecContext* codec, AVPacket* packet) {
  std::size_t bytes = 0;
  while (avcodec_receive_packet(codec, packet) == 0)
    bytes += static_cast<std::size_t>(packet->size);
  return bytes;
}

std::size_t encode(const std::vector<bench::av_frame>& frames, const std::string& preset) {
  const AVFrame& first = *frames.front();
  auto codec = encoder_of(first, preset);
  converter to_yuv(first.width, first.height, AV_PIX_FMT_RGB24, AV_PIX_FMT_YUV420P);
  auto yuv = frame_of(first.width, first.height, AV_PIX_FMT_YUV420P);
  bench::av_packet packet(av_packet_alloc());
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    bench::check_av(av_frame_make_writable(yuv.get()), "allocate a frame");
    to_yuv.convert(*frames[i], *yuv);
    yuv->pts = static_cast<std::int64_t>(i);
    bench::check_av(avcodec_send_frame(codec.get(), yuv.get()), "encode");
    bytes += receive(codec.get(), packet.get());
  }
  bench::check_av(avcodec_send_frame(codec.get(), nullptr), "encode");
  return bytes + receive(codec.get(), packet.get());
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "The floor of encoding: swscale and libx264 on one thread.");
  auto file = options.text("file", "build/media/h264-720p.mp4", "the video with the frames");
  auto preset = options.text("preset", "medium", "of libx264");
  auto frames = options.number("frames", 30, "that are encoded to one video");
  auto items = options.number("items", 1, "how many videos are encoded");
  options.done();

  auto rgb = rgb_frames(file, frames);
  std::size_t bytes = 0;
  auto taken = bench::time_items(items, [&](std::size_t) { bytes = encode(rgb, preset); });
  bench::items_report("encode_bare", items, rgb.size(), taken)
      .add("preset", preset)
      .add("bytes", bytes)
      .print();
}
