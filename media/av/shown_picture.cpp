#include "shown_picture.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

namespace lade::media {

static bool swaps_sides(display_orientation orientation) noexcept {
  return orientation.degrees % 180 != 0;
}

std::pair<int, int> shown_size(int width, int height, display_orientation orientation) noexcept {
  return swaps_sides(orientation) ? std::pair(height, width) : std::pair(width, height);
}

AVPixelFormat format_to_turn(AVPixelFormat to) noexcept {
  const auto* descriptor = av_pix_fmt_desc_get(to);
  if (descriptor == nullptr) return to;
  if ((descriptor->flags & AV_PIX_FMT_FLAG_BITSTREAM) != 0) return AV_PIX_FMT_GRAY8;
  if (descriptor->log2_chroma_w == 0 && descriptor->log2_chroma_h == 0) return to;
  return (descriptor->flags & AV_PIX_FMT_FLAG_ALPHA) != 0 ? AV_PIX_FMT_YUVA444P
                                                          : AV_PIX_FMT_YUV444P;
}

// A walk over stored pixels in display order.
struct shown_order {
  const std::uint8_t* first;
  std::ptrdiff_t to_right;  // in bytes
  std::ptrdiff_t down;
};

static shown_order shown_order_of(const std::uint8_t* plane, int width, int height, int stride,
                                  int bytes, display_orientation orientation) noexcept {
  const std::ptrdiff_t row = stride;
  const std::ptrdiff_t pixel = orientation.mirrored ? -bytes : bytes;
  const std::ptrdiff_t last_row = row * (height - 1);
  const std::ptrdiff_t last_pixel = pixel * (width - 1);
  const auto* begin = orientation.mirrored ? plane - last_pixel : plane;
  switch (orientation.degrees) {
    case 90: return {begin + last_row, -row, pixel};
    case 180: return {begin + last_row + last_pixel, -pixel, -row};
    case 270: return {begin + last_pixel, row, -pixel};
    default: return {begin, pixel, row};
  }
}

static void copy_shown(const shown_order& from, AVFrame& into, int plane, int bytes) noexcept {
  for (int y = 0; y < into.height; ++y) {
    const auto* pixel = from.first + y * from.down;
    auto* out = into.data[plane] + std::ptrdiff_t{into.linesize[plane]} * y;
    for (int x = 0; x < into.width; ++x, pixel += from.to_right, out += bytes)
      std::copy_n(pixel, bytes, out);
  }
}

av_frame shown_picture(const AVFrame& stored, display_orientation orientation) {
  av_frame shown(check_av(av_frame_alloc()));
  check_av(av_frame_copy_props(shown.get(), &stored), "turn a picture");
  shown->format = stored.format;
  std::tie(shown->width, shown->height) = shown_size(stored.width, stored.height, orientation);
  check_av(av_frame_get_buffer(shown.get(), 0), "turn a picture");
  const auto* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(stored.format));
  int bytes[4];
  av_image_fill_max_pixsteps(bytes, nullptr, format);
  for (int i = 0; i < av_pix_fmt_count_planes(static_cast<AVPixelFormat>(stored.format)); ++i)
    copy_shown(shown_order_of(stored.data[i], stored.width, stored.height, stored.linesize[i],
                              bytes[i], orientation),
               *shown, i, bytes[i]);
  return shown;
}

}  // namespace lade::media
