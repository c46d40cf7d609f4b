#include "png_reader.hpp"

#include <lade/buffer_pool.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <zlib.h>

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

namespace lade::media {

// Passed to allocate(): the size of the frame, and the row that is filled before decoding.
struct png_reader::pixels {
  int width = 0;
  int height = 0;
  int row = 0;
  std::uint8_t fill = 0;
  av_buffer memory;  // of an earlier decode of the same image, to reuse
};

// Allocates from the run's memory. Memory of FFmpeg's allocator would stay in malloc's arena of the
// thread. Throws bad_alloc.
static AVBufferRef* allocate_png_buffer(std::size_t bytes) {
  auto memory = std::make_unique<buffer>(allocate_now(bytes));
  auto* first = reinterpret_cast<std::uint8_t*>(memory->data());
  auto* result = av_buffer_create(
      first, bytes, [](void* kept, std::uint8_t*) { delete static_cast<buffer*>(kept); },
      memory.get(), 0);
  if (result == nullptr) throw std::bad_alloc();
  (void)memory.release();
  return result;
}

// Returns another reference to a buffer, or null for null. Throws bad_alloc.
static av_buffer share_png_buffer(AVBufferRef* memory) {
  return av_buffer(memory == nullptr ? nullptr : check_av(av_buffer_ref(memory)));
}

// Whether pixels depend on a chunk. Of the ancillary chunks (text, colour profiles, times), only
// tRNS matters: for a palette, it determines the format of FFmpeg's frame.
static bool png_pixels_need(std::string_view name, bool transparency) {
  constexpr char small_letter = 0x20;
  return (name[0] & small_letter) == 0 || (transparency && name == "tRNS");
}

// Copies the chunks that the pixels need, and the rest of a truncated file. Returns the end of the
// output. FFmpeg inflates texts and colour profiles without a limit, so they are not copied.
static std::uint8_t* copy_png_chunks(const image_file& file, bool transparency, std::uint8_t* out) {
  const support::byte_view bytes(file.bytes);
  const auto copy = [&](support::byte_view part) {
    out = std::copy_n(part.data(), part.size(), out);
  };
  std::size_t at = 8;
  copy(bytes.part(0, at));
  while (bytes.holds(at, 12) && bytes.holds(at + 12, bytes.big(at, 4))) {
    const auto length = bytes.big(at, 4);
    const auto name = bytes.part(at + 4, 4).text();
    if (png_pixels_need(name, transparency)) {
      copy(bytes.part(at, 12 + length));
    } else {
      const auto sum = crc32_z(0, bytes.data() + at + 4, 4 + length);
      if (sum != bytes.big(at + 8 + length, 4)) throw_damaged(file, "PNG");
    }
    at += 12 + length;
    if (name == "IEND") return out;
  }
  copy(bytes.from(at));
  return out;
}

// FFmpeg reads past the end of its input, so it needs a padded copy.
static av_packet copy_to_png_packet(const image_file& file, bool transparency) {
  av_packet packet(check_av(av_packet_alloc()));
  packet->buf = allocate_png_buffer(file.bytes.size() + AV_INPUT_BUFFER_PADDING_SIZE);
  packet->data = packet->buf->data;
  auto* end = copy_png_chunks(file, transparency, packet->data);
  packet->size = static_cast<int>(end - packet->data);
  packet->flags = AV_PKT_FLAG_KEY;
  std::memset(end, 0, AV_INPUT_BUFFER_PADDING_SIZE);
  return packet;
}

static int allocate_png_frame(AVCodecContext& codec, AVFrame& frame, AVBufferRef* memory) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  int width = frame.width;
  int height = frame.height;
  int alignment[AV_NUM_DATA_POINTERS];
  avcodec_align_dimensions2(&codec, &width, &height, alignment);
  int result = av_image_fill_linesizes(frame.linesize, format, width);
  if (result < 0) return result;
  constexpr int step = buffer::alignment;
  frame.linesize[0] = (frame.linesize[0] + step - 1) / step * step;
  result = av_image_fill_pointers(frame.data, format, height, nullptr, frame.linesize);
  if (result < 0) return result;
  const auto bytes = static_cast<std::size_t>(result) + AV_INPUT_BUFFER_PADDING_SIZE;
  const bool fits = memory != nullptr && memory->size >= bytes;
  try {
    frame.buf[0] = fits ? av_buffer_ref(memory) : allocate_png_buffer(bytes);
  } catch (const std::bad_alloc&) {
    return AVERROR(ENOMEM);
  }
  if (frame.buf[0] == nullptr) return AVERROR(ENOMEM);
  frame.extended_data = frame.data;
  return av_image_fill_pointers(frame.data, format, height, frame.buf[0]->data, frame.linesize);
}

// FFmpeg's callback get_buffer2: provides the memory of the pixels.
int png_reader::allocate(AVCodecContext* codec, AVFrame* frame, int /*flags*/) {
  const auto& target = *static_cast<pixels*>(codec->opaque);
  if (frame->width != target.width || frame->height != target.height) return AVERROR_INVALIDDATA;
  const int result = allocate_png_frame(*codec, *frame, target.memory.get());
  if (result < 0) return result;
  std::memset(frame->data[0] + std::ptrdiff_t{target.row} * frame->linesize[0], target.fill,
              static_cast<std::size_t>(frame->linesize[0]));
  return 0;
}

void png_reader::close() noexcept {
  av_frame_unref(frame_.get());
  frame_reader::close();
}

void png_reader::open(const image_file& file) {
  read_header(file);
  needs_transparency_ = true;
  decode_rows(file);
  show(file);
}

void png_reader::read_header(const image_file& file) {
  const support::byte_view bytes(file.bytes);
  constexpr std::size_t header = 16;  // after the signature and the start of the first chunk
  if (!bytes.holds(header, 13) || !bytes.from(12).begins("IHDR")) throw_damaged(file, "PNG");
  if (bytes.size() > static_cast<std::size_t>(INT_MAX - AV_INPUT_BUFFER_PADDING_SIZE))
    throw error(errc::unsupported, file.doing, "the file has more than 2 GiB");
  const bool has_colour = (bytes[header + 9] & 2) != 0;
  set_shape(file, static_cast<std::int64_t>(bytes.big(header, 4)),
            static_cast<std::int64_t>(bytes.big(header + 4, 4)), !has_colour);
  bits_ = bytes[header + 8];
  // The last pass of an interlaced image has every other row.
  const bool interlaced = bytes[header + 12] != 0;
  last_row_ = interlaced && height() > 1 ? height() / 2 * 2 - 1 : height() - 1;
  decodes_twice_ = interlaced && height() == 1;
}

void png_reader::open_values(const image_file& file, int most_bits) {
  read_header(file);
  constexpr int grey = 0;
  constexpr int palette = 3;
  const int colour = support::byte_view(file.bytes)[25];
  if (colour != grey && colour != palette)
    throw error(errc::unsupported, file.doing,
                "a mask has one value for each pixel, grey or an index; this PNG has colours or "
                "alpha");
  if (bits_ > most_bits)
    throw error(errc::unsupported, file.doing,
                fmt::format("the values have {} bits, more than the type holds", bits_));
}

void png_reader::decode_values(const image_file& file) {
  needs_transparency_ = false;
  decode_rows(file);
  const auto format = frame_->format;
  if (format != AV_PIX_FMT_GRAY8 && format != AV_PIX_FMT_PAL8 && format != AV_PIX_FMT_GRAY16BE &&
      format != AV_PIX_FMT_MONOBLACK)
    throw error(errc::unsupported, file.doing, "a PNG of a kind that FFmpeg does not decode");
}

void png_reader::row_values(int y, std::uint16_t* out) const {
  const auto* row = frame_->data[0] + std::ptrdiff_t{y} * frame_->linesize[0];
  if (frame_->format == AV_PIX_FMT_GRAY16BE) {
    for (int x = 0; x < width(); ++x)
      out[x] = static_cast<std::uint16_t>(row[2 * x] << 8 | row[2 * x + 1]);
  } else if (frame_->format == AV_PIX_FMT_MONOBLACK) {
    for (int x = 0; x < width(); ++x) out[x] = row[x / 8] >> (7 - x % 8) & 1;
  } else {
    // FFmpeg scales grey of 2 and 4 bits to 8.
    const bool scaled = frame_->format == AV_PIX_FMT_GRAY8 && bits_ < 8;
    const int scale = scaled ? 255 / ((1 << bits_) - 1) : 1;
    for (int x = 0; x < width(); ++x) out[x] = static_cast<std::uint16_t>(row[x] / scale);
  }
}

// Whether a call of FFmpeg has failed for lack of memory. FFmpeg reports that for its own
// allocations, but not for those of zlib. `errno` must have been 0 before the call.
static bool lacks_memory(int result) noexcept {
  return result == AVERROR(ENOMEM) || (result < 0 && errno == ENOMEM);
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
  errno = 0;
  const int result = avcodec_open2(codec.get(), decoder, nullptr);
  if (lacks_memory(result)) throw std::bad_alloc();
  check_av(result, "open FFmpeg's PNG decoder");
  return codec;
}

void png_reader::decode(const image_file& file, std::uint8_t fill) {
  pixels target{.width = width(),
                .height = height(),
                .row = last_row_,
                .fill = fill,
                .memory = share_png_buffer(frame_->buf[0])};
  const auto codec = open_png_decoder(&target, allocate);
  const auto packet = copy_to_png_packet(file, needs_transparency_);
  errno = 0;
  int result = avcodec_send_packet(codec.get(), packet.get());
  if (result >= 0) result = avcodec_receive_frame(codec.get(), frame_.get());
  if (lacks_memory(result)) throw std::bad_alloc();
  if (result == AVERROR_PATCHWELCOME)
    throw error(errc::unsupported, file.doing, "a PNG of a kind that FFmpeg does not decode");
  if (result < 0 || (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0 || frame_->decode_error_flags != 0)
    throw_damaged(file, "PNG");
}

// FFmpeg reports no error if the last rows are missing. To detect that, the image is decoded twice
// with different fills: missing rows keep the fill and differ.
void png_reader::decode_rows(const image_file& file) {
  constexpr std::uint8_t fill = 0x5a;
  decode(file, fill);
  if (!decodes_twice_ && !last_row_is(fill)) return;
  const auto first = last_row_pixels();
  decode(file, static_cast<std::uint8_t>(~fill));
  if (first != last_row_pixels()) throw_damaged(file, "PNG", "its last rows are missing");
}

// The last row without its padding bits, which FFmpeg leaves unset in an interlaced image.
std::vector<std::uint8_t> png_reader::last_row_pixels() const {
  std::vector<std::uint8_t> bytes(last_row(), last_row() + row_bytes());
  const int unused = frame_->format == AV_PIX_FMT_MONOBLACK ? -width() & 7 : 0;
  bytes.back() = static_cast<std::uint8_t>(bytes.back() >> unused << unused);
  return bytes;
}

int png_reader::row_bytes() const {
  return av_image_get_linesize(static_cast<AVPixelFormat>(frame_->format), width(), 0);
}

const std::uint8_t* png_reader::last_row() const {
  return frame_->data[0] + std::ptrdiff_t{last_row_} * frame_->linesize[0];
}

bool png_reader::last_row_is(std::uint8_t fill) const {
  const auto* row = last_row();
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
