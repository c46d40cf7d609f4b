#include <lade/error.hpp>
#include <lade/media/av.hpp>
#include <lade/media/png.hpp>

#include <cstring>

#include <fmt/format.h>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

static void check_png_image(const tensor& image) {
  const bool good = image.type() == element_type::u8 && image.rank() == 3 &&
                    (image.shape()[2] == 1 || image.shape()[2] == 3) && image.shape()[0] > 0 &&
                    image.shape()[1] > 0 && image.shape()[0] < 1 << 16 &&
                    image.shape()[1] < 1 << 16;
  if (good) return;
  throw error(errc::invalid_argument,
              fmt::format("encode png of {}{}", name(image.type()), to_string(image.shape())),
              "an image is u8 [height, width, 1 or 3] and not empty");
}

static av_codec_context open_png_encoder(const tensor& image) {
  const auto* encoder = avcodec_find_encoder(AV_CODEC_ID_PNG);
  if (encoder == nullptr) throw error(errc::unsupported, "find FFmpeg's PNG encoder");
  av_codec_context codec(check_av(avcodec_alloc_context3(encoder)));
  codec->height = static_cast<int>(image.shape()[0]);
  codec->width = static_cast<int>(image.shape()[1]);
  codec->pix_fmt = image.shape()[2] == 3 ? AV_PIX_FMT_RGB24 : AV_PIX_FMT_GRAY8;
  codec->time_base = {1, 1};
  codec->thread_count = 1;
  codec->thread_type = 0;
  check_av(avcodec_open2(codec.get(), encoder, nullptr), "open FFmpeg's PNG encoder");
  return codec;
}

static av_frame copy_to_frame(const tensor& image, const AVCodecContext& codec) {
  av_frame frame(check_av(av_frame_alloc()));
  frame->width = codec.width;
  frame->height = codec.height;
  frame->format = codec.pix_fmt;
  check_av(av_frame_get_buffer(frame.get(), 0), "allocate a frame");
  const auto channels = static_cast<int>(image.shape()[2]);
  for (int y = 0; y < codec.height; ++y) {
    auto* out = frame->data[0] + std::ptrdiff_t{y} * frame->linesize[0];
    const auto* row = image.data<std::uint8_t>() + y * image.strides()[0];
    for (int x = 0; x < codec.width; ++x)
      for (int c = 0; c < channels; ++c)
        *out++ = row[x * image.strides()[1] + c * image.strides()[2]];
  }
  return frame;
}

buffer encode_png(const tensor& image) {
  check_png_image(image);
  const auto codec = open_png_encoder(image);
  const auto frame = copy_to_frame(image, *codec);
  const av_packet packet(check_av(av_packet_alloc()));
  check_av(avcodec_send_frame(codec.get(), frame.get()), "encode png");
  check_av(avcodec_send_frame(codec.get(), nullptr), "encode png");
  check_av(avcodec_receive_packet(codec.get(), packet.get()), "encode png");
  buffer file(static_cast<std::size_t>(packet->size));
  std::memcpy(file.data(), packet->data, file.size());
  return file;
}

}  // namespace lade::media
