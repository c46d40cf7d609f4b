#include "frame_reader.hpp"
#include "gif.hpp"
#include "webp_colour.hpp"

#include <climits>
#include <cstring>
#include <string>

namespace lade::media {

// The format that a file's first bytes announce; none when they are unknown.
static AVCodecID format_of(std::span<const std::byte> file) {
  struct magic {
    std::size_t at;
    std::string_view bytes;
    AVCodecID format;
  };
  static constexpr magic known[] = {
      {0, "\x89PNG", AV_CODEC_ID_PNG},     {8, "WEBP", AV_CODEC_ID_WEBP},
      {0, "GIF8", AV_CODEC_ID_GIF},        {0, "BM", AV_CODEC_ID_BMP},
      {0, {"II*\0", 4}, AV_CODEC_ID_TIFF}, {0, {"MM\0*", 4}, AV_CODEC_ID_TIFF},
      {0, "P4", AV_CODEC_ID_PBM},          {0, "P5", AV_CODEC_ID_PGM},
      {0, "P6", AV_CODEC_ID_PPM},
  };
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  for (const auto& one : known)
    if (text.size() > one.at && text.substr(one.at).starts_with(one.bytes)) return one.format;
  return AV_CODEC_ID_NONE;
}

// Called by FFmpeg when it knows the size of an image, to allocate its pixels.
int frame_reader::allocate(AVCodecContext* codec, AVFrame* frame, int flags) {
  auto& self = *static_cast<context*>(codec->opaque);
  if (std::int64_t{frame->width} * frame->height > self.max_pixels) {
    self.refused_width = frame->width;
    self.refused_height = frame->height;
    return AVERROR(ENOMEM);
  }
  return avcodec_default_get_buffer2(codec, frame, flags);
}

frame_reader::context& frame_reader::context_for(AVCodecID id) {
  auto& made = contexts_[id];
  if (made.codec != nullptr) return made;
  const auto* decoder = avcodec_find_decoder(id);
  if (decoder == nullptr)
    throw error(errc::unsupported, std::string("find FFmpeg's decoder of ") + avcodec_get_name(id));
  av_codec_context codec(check_av(avcodec_alloc_context3(decoder)));
  codec->thread_count = 1;
  codec->thread_type = 0;
  codec->err_recognition = AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER;
  // In a TIFF, a tag that FFmpeg does not know would count as damage.
  if (id != AV_CODEC_ID_TIFF) codec->err_recognition |= AV_EF_EXPLODE;
  codec->log_level_offset = AV_LOG_TRACE;  // what it has to say goes into exceptions
  codec->opaque = &made;
  codec->get_buffer2 = allocate;
  check_av(avcodec_open2(codec.get(), decoder, nullptr), "open a decoder");
  made.codec = std::move(codec);
  return made;
}

void frame_reader::open(std::span<const std::byte> file, std::string_view doing,
                        std::int64_t max_pixels) {
  const auto id = format_of(file);
  if (id == AV_CODEC_ID_NONE)
    throw error(errc::unsupported, doing, "the first bytes are of no known image format");
  if (id == AV_CODEC_ID_GIF && !gif_is_whole(file))
    throw error(errc::invalid_data, doing, "the first image is cut off");
  if (file.size() > static_cast<std::size_t>(INT_MAX - AV_INPUT_BUFFER_PADDING_SIZE))
    throw error(errc::unsupported, doing, "the file has more than 2 GiB");
  auto& with = context_for(id);
  with.max_pixels = max_pixels;
  with.refused_width = 0;
  av_packet_unref(packet_.get());
  check_av(av_new_packet(packet_.get(), static_cast<int>(file.size())), doing);
  std::memcpy(packet_->data, file.data(), file.size());
  packet_->flags = AV_PKT_FLAG_KEY;  // or a PNG would be added to the one before
  decode(with, doing);
  format_ = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame_->format));
  const bool rgb = (format_->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL)) != 0;
  grey_ = !rgb && format_->nb_components <= 2;
  yuv_ = !rgb && !grey_;
  const auto format = static_cast<AVPixelFormat>(frame_->format);
  if (yuv_ &&
      (id != AV_CODEC_ID_WEBP || (format != AV_PIX_FMT_YUV420P && format != AV_PIX_FMT_YUVA420P)))
    throw error(errc::unsupported, doing, std::string("pixels of the kind ") + format_->name);
}

void frame_reader::decode(context& with, std::string_view doing) {
  auto* codec = with.codec.get();
  avcodec_flush_buffers(codec);
  int result = avcodec_send_packet(codec, packet_.get());
  av_packet_unref(packet_.get());
  if (result >= 0) result = avcodec_receive_frame(codec, frame_.get());
  if (with.refused_width > 0)
    throw error(errc::limit_exceeded, doing,
                too_many_pixels(with.refused_width, with.refused_height, with.max_pixels));
  if (result == AVERROR(EAGAIN) || result == AVERROR_INVALIDDATA || result == AVERROR_EOF)
    throw error(errc::invalid_data, doing, "Invalid data found when processing input");
  check_av(result, doing);
  if ((frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0 || frame_->decode_error_flags != 0)
    throw error(errc::invalid_data, doing, "parts of the image are damaged");
}

void frame_reader::start_rows(int channels, int left, int top, int kept) {
  channels_ = channels;
  left_ = left;
  const auto width = static_cast<std::size_t>(frame_->width);
  ring_.reset(top, kept, width * static_cast<std::size_t>(channels));
  line_.resize(width);
  rgb_.resize(3 * width);
}

const std::uint8_t* frame_reader::row(int y) {
  const bool as_it_is = (channels_ == 3 && frame_->format == AV_PIX_FMT_RGB24) ||
                        (channels_ == 1 && frame_->format == AV_PIX_FMT_GRAY8);
  const auto* pixels =
      as_it_is ? frame_->data[0] + std::ptrdiff_t{y} * frame_->linesize[0]
               : ring_.row(y, [this](int next, std::uint8_t* out) { convert_row(next, out); });
  return pixels + left_ * channels_;
}

void frame_reader::convert_row(int y, std::uint8_t* out) {
  if (channels_ == 1 && grey_) return read_channel(y, 0, out);
  auto* rgb = channels_ == 3 ? out : rgb_.data();
  if (yuv_) {
    webp_row_to_rgb(*frame_, y, rgb);
  } else {
    for (int c = 0; c < 3; ++c) read_channel(y, c, rgb + c);
  }
  if (channels_ == 3) return;
  for (int x = 0; x < frame_->width; ++x)
    out[x] = luma_of(rgb[3 * x], rgb[3 * x + 1], rgb[3 * x + 2]);
}

// Writes one channel of a row, to every byte of `out` or, when collecting RGB, to every third.
void frame_reader::read_channel(int y, int channel, std::uint8_t* out) {
  const int step = grey_ && channels_ == 1 ? 1 : 3;
  const auto& component = format_->comp[grey_ ? 0 : channel];
  const auto* row =
      frame_->data[component.plane] + std::ptrdiff_t{y} * frame_->linesize[component.plane];
  if ((format_->flags & AV_PIX_FMT_FLAG_PAL) != 0) {
    const auto* palette = reinterpret_cast<const std::uint32_t*>(frame_->data[1]);
    const int shift = 16 - 8 * channel;
    for (int x = 0; x < frame_->width; ++x)
      out[x * step] = static_cast<std::uint8_t>(palette[row[x]] >> shift);
  } else if (component.depth == 8 && component.shift == 0) {
    for (int x = 0; x < frame_->width; ++x)
      out[x * step] = row[component.offset + x * component.step];
  } else {
    read_odd_channel(y, channel, out, step);
  }
}

// Channels of other than eight bits.
void frame_reader::read_odd_channel(int y, int channel, std::uint8_t* out, int step) {
  const std::uint8_t* planes[] = {frame_->data[0], frame_->data[1], frame_->data[2],
                                  frame_->data[3]};
  const int component = grey_ ? 0 : channel;
  av_read_image_line2(line_.data(), planes, frame_->linesize, format_, 0, y, component,
                      frame_->width, 0, sizeof line_[0]);
  const int depth = format_->comp[component].depth;
  const int invert = frame_->format == AV_PIX_FMT_MONOWHITE ? 255 : 0;
  for (int x = 0; x < frame_->width; ++x) {
    const int value = line_[static_cast<std::size_t>(x)];
    const int byte = depth > 8 ? value >> (depth - 8) : value * 255 / ((1 << depth) - 1);
    out[x * step] = static_cast<std::uint8_t>(byte ^ invert);
  }
}

}  // namespace lade::media
