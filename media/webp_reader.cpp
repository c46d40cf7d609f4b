#include "webp_reader.hpp"

#include "freed_memory.hpp"

#include <cstring>
#include <memory>

#include <webp/decode.h>
#include <webp/demux.h>

namespace lade::media {

// libwebp decodes a lossless image as a whole, into memory from malloc.
void webp_reader::close() noexcept {
  frame_reader::close();
  if (is_large()) detail::give_back_freed(4 * std::size_t(width()) * std::size_t(height()));
}

void webp_reader::open(const image_file& file) {
  const support::byte_view bytes(file.bytes);
  const WebPData data{bytes.data(), bytes.size()};
  // Refuses truncated files.
  const std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)> demuxer(WebPDemux(&data),
                                                                         WebPDemuxDelete);
  if (demuxer == nullptr) throw_damaged(file, "WebP");
  set_shape(file, WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH),
            WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT), false);
  WebPIterator found{};
  const std::unique_ptr<WebPIterator, decltype(&WebPDemuxReleaseIterator)> image(
      &found, WebPDemuxReleaseIterator);
  if (WebPDemuxGetFrame(demuxer.get(), 1, image.get()) == 0) throw_damaged(file, "WebP");
  auto* frame = make_frame();
  const auto stride = frame_stride();
  const auto bytes_of_frame = stride * static_cast<std::size_t>(height());
  if (image->width != width() || image->height != height()) std::memset(frame, 0, bytes_of_frame);
  const auto first = static_cast<std::size_t>(image->y_offset) * stride +
                     3 * static_cast<std::size_t>(image->x_offset);
  if (WebPDecodeRGBInto(image->fragment.bytes, image->fragment.size, frame + first,
                        bytes_of_frame - first, static_cast<int>(stride)) == nullptr)
    throw_damaged(file, "WebP");
}

}  // namespace lade::media
