#include "picture_source.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <limits>
#include <string>

extern "C" {
#include <libavutil/imgutils.h>
}

namespace lade::media {

static std::string size_text(std::int64_t width, std::int64_t height) {
  return std::to_string(width) + " x " + std::to_string(height);
}

AVFrame& picture_source::unused_picture() {
  for (const auto& each : pictures_)
    if (av_frame_is_writable(each.get()) > 0) return *each;
  av_frame next(check_av(av_frame_alloc()));
  next->format = to_.format;
  next->width = width_;
  next->height = height_;
  const int bytes = av_image_get_buffer_size(to_.format, width_, height_, 64);
  charges_.emplace_back(static_cast<std::size_t>(check_av(bytes, "size a picture")));
  check_av(av_frame_get_buffer(next.get(), 0), "allocate a picture");
  next->color_range = to_.range;
  next->colorspace = to_.matrix;
  next->chroma_location = to_.siting;
  return *pictures_.emplace_back(std::move(next));
}

av_frame picture_source::converted(const picture_rows& rows, const picture_format& from) {
  auto& into = unused_picture();
  converter_.convert(rows, from, into);
  return av_frame(check_av(av_frame_clone(&into)));
}

av_frame picture_source::from_frame(const frame& from, std::string_view doing) {
  if (from.width() != width_ || from.height() != height_)
    throw error(errc::invalid_argument, doing,
                "the frame is " + size_text(from.width(), from.height()) + ", not " +
                    size_text(width_, height_));
  const auto& picture = from.get();
  const auto format = format_of_picture(picture);
  if (converter_.is_equal(format)) return av_frame(check_av(av_frame_clone(&picture)));
  picture_rows rows;
  std::copy_n(picture.data, rows.planes.size(), rows.planes.begin());
  std::copy_n(picture.linesize, rows.strides.size(), rows.strides.begin());
  return converted(rows, format);
}

av_frame picture_source::from_tensor(const tensor& picture, std::string_view doing) {
  const bool rgb = picture.type() == element_type::u8 && picture.rank() == 3 &&
                   picture.shape()[2] == 3 && picture.strides()[2] == 1 &&
                   (picture.strides()[1] == 3 || picture.shape()[1] == 1) &&
                   picture.where().type != device::kind::cuda;
  if (!rgb)
    throw error(errc::invalid_argument, doing,
                "pictures are u8 [height, width, 3] in host memory, not " +
                    std::string(name(picture.type())) + " " + to_string(picture.shape()));
  if (picture.shape()[1] != width_ || picture.shape()[0] != height_)
    throw error(errc::invalid_argument, doing,
                "the picture is " + size_text(picture.shape()[1], picture.shape()[0]) + ", not " +
                    size_text(width_, height_));
  const auto stride = picture.strides()[0];
  constexpr auto most = std::numeric_limits<int>::max();
  if (stride > most || stride < -most)
    throw error(errc::invalid_argument, doing, "the stride of rows does not fit 31 bits");
  picture_rows rows;
  rows.planes[0] = picture.data<std::uint8_t>();
  rows.strides[0] = static_cast<int>(stride);
  return converted(rows, {.format = AV_PIX_FMT_RGB24,
                          .matrix = AVCOL_SPC_RGB,
                          .range = AVCOL_RANGE_JPEG,
                          .siting = AVCHROMA_LOC_UNSPECIFIED});
}

}  // namespace lade::media
