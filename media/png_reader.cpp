#include "png_reader.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <new>

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

namespace lade::media {

// What the decoder of one image is to allocate, and which row is filled before.
struct png_reader::pixels {
  int width = 0;
  int height = 0;
  int row = 0;
  std::uint8_t fill = 0;
};

// Called by FFmpeg for the memory of the pixels.
int png_reader::allocate(AVCodecContext* codec, AVFrame* frame, int flags) {
  const auto& wanted = *static_cast<pixels*>(codec->opaque);
  if (frame->width != wanted.width || frame->height != wanted.height) return AVERROR_INVALIDDATA;
  const int result = avcodec_default_get_buffer2(codec, frame, flags);
  if (result < 0) return result;
  std::memset(frame->data[0] + std::ptrdiff_t{wanted.row} * frame->linesize[0], wanted.fill,
              static_cast<std::size_t>(frame->linesize[0]));
  return 0;
}

void png_reader::open(const image_file& file) {
  const byte_view bytes(file.bytes);
  constexpr std::size_t header = 16;  // behind the signature and the beginning of the first chunk
  if (!bytes.holds(header, 13) || !bytes.from(12).begins("IHDR")) throw_damaged(file, "PNG");
  if (bytes.size() > static_cast<std::size_t>(INT_MAX - AV_INPUT_BUFFER_PADDING_SIZE))
    throw error(errc::unsupported, file.doing, "the file has more than 2 GiB");
  const bool has_colour = (bytes[header + 9] & 2) != 0;
  set_shape(file, static_cast<std::int64_t>(bytes.big(header, 4)),
            static_cast<std::int64_t>(bytes.big(header + 4, 4)), !has_colour);
  // Of an interlaced image, every other row is decoded last.
  const bool interlaced = bytes[header + 12] != 0;
  last_row_ = interlaced && height() > 1 ? height() / 2 * 2 - 1 : height() - 1;
  decode_rows(file, interlaced && height() == 1);
  show(file);
}

static av_codec_context open_png_decoder(void* opaque,
                                         int (*allocate)(AVCodecContext*, AVFrame*, int)) {
  const auto* decoder = avcodec_find_decoder(AV_CODEC_ID_PNG);
  if (decoder == nullptr) throw error(errc::unsupported, "find FFmpeg's PNG decoder");
  av_codec_context codec(check_av(avcodec_alloc_context3(decoder)));
  codec->thread_count = 1;
  codec->thread_type = 0;
  codec->err_recognition = AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER | AV_EF_EXPLODE;
  codec->log_level_offset = AV_LOG_TRACE;  // prints nothing
  codec->opaque = opaque;
  codec->get_buffer2 = allocate;
  check_av(avcodec_open2(codec.get(), decoder, nullptr), "open FFmpeg's PNG decoder");
  return codec;
}

void png_reader::decode(const image_file& file, std::uint8_t fill) {
  pixels wanted{.width = width(), .height = height(), .row = last_row_, .fill = fill};
  const auto codec = open_png_decoder(&wanted, allocate);
  const av_packet packet(check_av(av_packet_alloc()));
  check_av(av_new_packet(packet.get(), static_cast<int>(file.bytes.size())), file.doing);
  std::memcpy(packet->data, file.bytes.data(), file.bytes.size());
  packet->flags = AV_PKT_FLAG_KEY;
  av_frame_unref(frame_.get());
  int result = avcodec_send_packet(codec.get(), packet.get());
  if (result >= 0) result = avcodec_receive_frame(codec.get(), frame_.get());
  if (result == AVERROR(ENOMEM)) throw std::bad_alloc();
  if (result == AVERROR_PATCHWELCOME)
    throw error(errc::unsupported, file.doing, "a PNG of a kind that FFmpeg does not decode");
  if (result < 0 || (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0 || frame_->decode_error_flags != 0)
    throw_damaged(file, "PNG");
}

// FFmpeg returns an image whose last rows are missing without an error. They keep what they were
// filled with, and so differ between two images that were filled differently.
void png_reader::decode_rows(const image_file& file, bool twice) {
  constexpr std::uint8_t fill = 0x5a;
  decode(file, fill);
  if (!twice && !last_row_is(fill)) return;
  const av_frame first(check_av(av_frame_alloc()));
  av_frame_move_ref(first.get(), frame_.get());
  decode(file, static_cast<std::uint8_t>(~fill));
  const auto offset = std::ptrdiff_t{last_row_};
  if (!std::equal(frame_->data[0] + offset * frame_->linesize[0],
                  frame_->data[0] + offset * frame_->linesize[0] + row_bytes(),
                  first->data[0] + offset * first->linesize[0]))
    throw_damaged(file, "PNG", "its last rows are missing");
}

int png_reader::row_bytes() const {
  return av_image_get_linesize(static_cast<AVPixelFormat>(frame_->format), width(), 0);
}

bool png_reader::last_row_is(std::uint8_t fill) const {
  const auto* row = frame_->data[0] + std::ptrdiff_t{last_row_} * frame_->linesize[0];
  return std::all_of(row, row + row_bytes(), [&](std::uint8_t byte) { return byte == fill; });
}

void png_reader::show(const image_file& file) {
  if (frame_->format == AV_PIX_FMT_RGB24 || frame_->format == AV_PIX_FMT_GRAY8)
    return show_frame(frame_->data[0], frame_->linesize[0]);
  auto* out = make_frame();
  for (int channel = 0; channel < frame_channels(); ++channel)
    for (int y = 0; y < height(); ++y)
      convert_row(file, y, channel, out + std::size_t(y) * frame_stride() + channel);
}

// Writes one channel of a row to every pixel of `out`.
void png_reader::convert_row(const image_file& file, int y, int channel, std::uint8_t* out) {
  const auto& format = *av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame_->format));
  const auto& component = format.comp[channel];
  const auto* row = frame_->data[0] + std::ptrdiff_t{y} * frame_->linesize[0];
  const int step = frame_channels();
  const bool high_byte_first = component.depth == 16 && (format.flags & AV_PIX_FMT_FLAG_BE) != 0;
  if (frame_->format == AV_PIX_FMT_PAL8) {
    const auto* palette = reinterpret_cast<const std::uint32_t*>(frame_->data[1]);
    for (int x = 0; x < width(); ++x)
      out[x * step] = static_cast<std::uint8_t>(palette[row[x]] >> (16 - 8 * channel));
  } else if (frame_->format == AV_PIX_FMT_MONOBLACK) {
    for (int x = 0; x < width(); ++x)
      out[x * step] = (row[x / 8] >> (7 - x % 8) & 1) != 0 ? 255 : 0;
  } else if (component.plane == 0 && component.shift == 0 &&
             (component.depth == 8 || high_byte_first)) {
    for (int x = 0; x < width(); ++x) out[x * step] = row[component.offset + x * component.step];
  } else {
    throw error(errc::unsupported, file.doing, std::string("a PNG of the kind ") + format.name);
  }
}

}  // namespace lade::media
