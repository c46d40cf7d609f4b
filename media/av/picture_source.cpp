#include "picture_source.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include <fmt/format.h>

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

namespace lade::media {

static std::string size_text(std::int64_t width, std::int64_t height) {
  return fmt::format("{} x {}", width, height);
}

static bool has_alpha(AVPixelFormat format) noexcept {
  const auto* descriptor = av_pix_fmt_desc_get(format);
  return descriptor != nullptr && (descriptor->flags & AV_PIX_FMT_FLAG_ALPHA) != 0;
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
                fmt::format("the frame is {}, not {}", size_text(from.width(), from.height()),
                            size_text(width_, height_)));
  const auto& picture = from.get();
  const auto format = format_of_picture(picture);
  if (converter_.is_equal(format)) return av_frame(check_av(av_frame_clone(&picture)));
  picture_rows rows;
  std::copy_n(picture.data, rows.planes.size(), rows.planes.begin());
  std::copy_n(picture.linesize, rows.strides.size(), rows.strides.begin());
  return converted(rows, format);
}

picture_axes axes_of(image_layout layout) noexcept {
  return layout == image_layout::hwc ? picture_axes{0, 1, 2} : picture_axes{1, 2, 0};
}

AVPixelFormat format_of_tensor(const tensor& picture, image_layout layout) noexcept {
  const bool planes = layout == image_layout::chw;
  switch (picture.rank() == 3 ? picture.shape()[axes_of(layout).channels] : 3) {
    case 1: return AV_PIX_FMT_GRAY8;
    case 4: return planes ? AV_PIX_FMT_GBRAP : AV_PIX_FMT_RGBA;
    default: return planes ? AV_PIX_FMT_GBRP : AV_PIX_FMT_RGB24;
  }
}

// Whether the pixels of a row are contiguous.
static bool has_whole_rows(const tensor& picture, image_layout layout) {
  const auto axes = axes_of(layout);
  const auto& strides = picture.strides();
  const auto channels = picture.shape()[axes.channels];
  const auto pixel = layout == image_layout::hwc ? channels : 1;
  const bool together = layout == image_layout::chw || channels == 1 || strides[axes.channels] == 1;
  return together && (strides[axes.columns] == pixel || picture.shape()[axes.columns] == 1);
}

static void check_picture(const tensor& picture, image_layout layout, std::string_view doing) {
  const auto axes = axes_of(layout);
  const bool three = picture.type() == element_type::u8 && picture.rank() == 3;
  const auto channels = three ? picture.shape()[axes.channels] : 0;
  const bool good = (channels == 1 || channels == 3 || channels == 4) &&
                    has_whole_rows(picture, layout) && picture.where().is_host_accessible();
  if (!good)
    throw error(errc::invalid_argument, doing,
                fmt::format("pictures are u8 {} in host memory, not {} {}",
                            layout == image_layout::hwc ? "[height, width, 1, 3 or 4]"
                                                        : "[1, 3 or 4, height, width]",
                            name(picture.type()), to_string(picture.shape())));
}

// Rows of a checked tensor; FFmpeg's planes of RGB are green, blue, red, alpha.
static picture_rows rows_of_tensor(const tensor& picture, image_layout layout,
                                   std::string_view doing) {
  const auto axes = axes_of(layout);
  const auto stride = picture.strides()[axes.rows];
  constexpr auto most = std::numeric_limits<int>::max();
  if (stride > most || stride < -most)
    throw error(errc::invalid_argument, doing, "the stride of rows does not fit 31 bits");
  constexpr std::array<std::int64_t, 4> plane_order{1, 2, 0, 3};
  const auto channels = picture.shape()[axes.channels];
  const bool planes = layout == image_layout::chw && channels > 1;
  picture_rows rows;
  rows.padded = false;
  for (std::size_t i = 0; i < (planes ? static_cast<std::size_t>(channels) : 1); ++i) {
    rows.planes[i] = picture.data<std::uint8_t>();
    if (planes) rows.planes[i] += plane_order[i] * picture.strides()[axes.channels];
    rows.strides[i] = static_cast<int>(stride);
  }
  return rows;
}

av_frame picture_source::from_tensor(const tensor& picture, image_layout layout,
                                     std::string_view doing) {
  check_picture(picture, layout, doing);
  const auto axes = axes_of(layout);
  const auto height = picture.shape()[axes.rows];
  const auto width = picture.shape()[axes.columns];
  if (width != width_ || height != height_)
    throw error(errc::invalid_argument, doing,
                fmt::format("the picture is {}, not {}", size_text(width, height),
                            size_text(width_, height_)));
  const auto format = format_of_tensor(picture, layout);
  if (has_alpha(format) && !has_alpha(to_.format))
    throw error(
        errc::invalid_argument, doing,
        fmt::format("the picture has alpha, which {} has not", av_get_pix_fmt_name(to_.format)));
  const bool grey = format == AV_PIX_FMT_GRAY8;
  return converted(rows_of_tensor(picture, layout, doing),
                   {.format = format,
                    .matrix = grey ? AVCOL_SPC_UNSPECIFIED : AVCOL_SPC_RGB,
                    .range = AVCOL_RANGE_JPEG,
                    .siting = AVCHROMA_LOC_UNSPECIFIED});
}

}  // namespace lade::media
