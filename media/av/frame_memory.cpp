#include "frame_memory.hpp"

#include <lade/buffer.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/media/av.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <utility>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libavutil/samplefmt.h>
}

namespace lade::media {

void thread_memory::enter() {
  auto pool = pool_of_call();
  const std::lock_guard lock(mutex_);
  pool_ = std::move(pool);
}

void thread_memory::leave() {
  const std::lock_guard lock(mutex_);
  pool_.reset();
}

std::optional<buffer_pool> thread_memory::pool() const {
  const std::lock_guard lock(mutex_);
  return pool_;
}

static AVBufferRef* make_av_buffer(buffer from) {
  const auto bytes = from.size();
  auto memory = std::make_unique<buffer>(std::move(from));
  auto* first = reinterpret_cast<std::uint8_t*>(memory->data());
  auto* result = check_av(av_buffer_create(
      first, bytes, [](void* kept, std::uint8_t*) { delete static_cast<buffer*>(kept); },
      memory.get(), 0));
  (void)memory.release();
  return result;
}

AVBufferRef* allocate_av_buffer(std::size_t bytes) { return make_av_buffer(allocate_now(bytes)); }

void charge_frame(AVFrame& frame) {
  std::size_t bytes = 0;
  for (const auto* each : frame.buf)
    if (each != nullptr) bytes += each->size;
  for (int i = 0; i < frame.nb_extended_buf; ++i) bytes += frame.extended_buf[i]->size;
  auto charged = std::make_unique<memory_charge>(bytes);
  // FFmpeg shares opaque_ref between copies and does not read it.
  auto* first = reinterpret_cast<std::uint8_t*>(charged.get());
  auto* owner = check_av(av_buffer_create(
      first, sizeof(memory_charge),
      [](void* kept, std::uint8_t*) { delete static_cast<memory_charge*>(kept); }, charged.get(),
      0));
  (void)charged.release();
  av_buffer_unref(&frame.opaque_ref);
  frame.opaque_ref = owner;
}

// Allocates from the pool; without one, for the calling stage.
static AVBufferRef* allocate_from(std::optional<buffer_pool>& pool, std::size_t bytes) {
  return pool ? make_av_buffer(pool->allocate_now(bytes)) : allocate_av_buffer(bytes);
}

static std::size_t rounded_up(std::size_t bytes) noexcept {
  return (bytes + buffer::alignment - 1) / buffer::alignment * buffer::alignment;
}

// Sets the line sizes to those of the smallest width that aligns all planes, as vector instructions
// require. Returns the aligned height, or an error.
static int align_lines(AVCodecContext& codec, AVFrame& frame) {
  int width = frame.width;
  int height = frame.height;
  int alignment[AV_NUM_DATA_POINTERS];
  avcodec_align_dimensions2(&codec, &width, &height, alignment);
  const auto format = static_cast<AVPixelFormat>(frame.format);
  while (true) {
    const int result = av_image_fill_linesizes(frame.linesize, format, width);
    if (result < 0) return result;
    bool aligned = true;
    for (int i = 0; i < 4; ++i) aligned = aligned && frame.linesize[i] % alignment[i] == 0;
    if (aligned) return height;
    width += width & ~(width - 1);
  }
}

static int allocate_picture(AVCodecContext& codec, AVFrame& frame,
                            std::optional<buffer_pool>& pool) {
  const int height = align_lines(codec, frame);
  if (height < 0) return height;
  std::array<std::ptrdiff_t, 4> lines{};
  for (std::size_t i = 0; i < 4; ++i) lines[i] = frame.linesize[i];
  std::size_t bytes[4];
  const int result = av_image_fill_plane_sizes(bytes, static_cast<AVPixelFormat>(frame.format),
                                               height, lines.data());
  if (result < 0) return result;
  // Decoders read and write some bytes past a plane.
  constexpr std::size_t behind = 2 * buffer::alignment;
  std::size_t total = 0;
  for (const auto plane : bytes)
    if (plane > 0) total += rounded_up(plane + behind);
  frame.buf[0] = allocate_from(pool, total);
  auto* next = frame.buf[0]->data;
  for (std::size_t i = 0; i < 4 && bytes[i] > 0; ++i) {
    frame.data[i] = next;
    next += rounded_up(bytes[i] + behind);
  }
  frame.extended_data = frame.data;
  return 0;
}

static int allocate_samples(AVFrame& frame, std::optional<buffer_pool>& pool) {
  const auto format = static_cast<AVSampleFormat>(frame.format);
  const int channels = frame.ch_layout.nb_channels;
  const int bytes =
      av_samples_get_buffer_size(nullptr, channels, frame.nb_samples, format, buffer::alignment);
  if (bytes < 0) return bytes;
  if (av_sample_fmt_is_planar(format) != 0 && channels > AV_NUM_DATA_POINTERS)
    return AVERROR(ENOSYS);
  frame.buf[0] =
      allocate_from(pool, static_cast<std::size_t>(bytes) + AV_INPUT_BUFFER_PADDING_SIZE);
  frame.extended_data = frame.data;
  const int result = av_samples_fill_arrays(frame.data, frame.linesize, frame.buf[0]->data,
                                            channels, frame.nb_samples, format, buffer::alignment);
  return result < 0 ? result : 0;
}

static bool has_plain_planes(const AVFrame& frame) noexcept {
  const auto* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  constexpr std::uint64_t special = AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_PAL;
  return format != nullptr && (format->flags & special) == 0;
}

int allocate_frame_memory(AVCodecContext* codec, AVFrame* frame, int flags) try {
  int result = AVERROR(ENOSYS);
  const auto* shared = static_cast<const thread_memory*>(codec->opaque);
  auto pool = shared != nullptr ? shared->pool() : std::nullopt;
  if (!pool && (shared != nullptr || !pool_of_call()))
    return avcodec_default_get_buffer2(codec, frame, flags);
  if (codec->codec_type == AVMEDIA_TYPE_AUDIO)
    result = allocate_samples(*frame, pool);
  else if (has_plain_planes(*frame))
    result = allocate_picture(*codec, *frame, pool);
  return result == AVERROR(ENOSYS) ? avcodec_default_get_buffer2(codec, frame, flags) : result;
} catch (const std::bad_alloc&) {
  return AVERROR(ENOMEM);
}

}  // namespace lade::media
