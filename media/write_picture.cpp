#include <lade/error.hpp>
#include <lade/media/picture.hpp>

#include "crop.hpp"
#include "picture.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace lade::media {

static void require_slot(bool condition, const tensor& out, std::string_view reason) {
  if (condition) return;
  throw error(errc::invalid_argument,
              fmt::format("write picture into {}{}", name(out.type()), to_string(out.shape())),
              reason);
}

// The pixels of a tensor, whose planes may be apart.
static pixel_target slot_target(const tensor& out, const image_options& options) {
  require_slot(out.rank() == 3, out, "a picture has three dimensions");
  require_slot(out.where().is_host_accessible(), out, "it is in the memory of a GPU");
  const bool planes = options.layout == image_layout::chw;
  const auto extent = [&](std::size_t i) { return out.shape()[i]; };
  const auto stride = [&](std::size_t i) { return out.strides()[i]; };
  for (std::size_t i = 0; i < 3; ++i)
    require_slot(extent(i) >= 1 && extent(i) <= 32768, out, "extents must be 1 to 32768");
  const bool rows =
      planes ? stride(2) == 1 && stride(1) == extent(2)
             : stride(2) == 1 && stride(1) == extent(2) && stride(0) == extent(1) * extent(2);
  require_slot(rows, out, planes ? "its rows must be contiguous" : "it must be contiguous");
  return {.data = out.bytes(),
          .width = static_cast<int>(extent(planes ? 2 : 1)),
          .height = static_cast<int>(extent(planes ? 1 : 0)),
          .channels = static_cast<int>(extent(planes ? 0 : 2)),
          .bgr = options.colour == image_colour::bgr,
          .type = out.type(),
          .layout = options.layout,
          .plane_stride = planes ? static_cast<std::ptrdiff_t>(stride(0)) : 0,
          .mean = options.mean,
          .stddev = options.stddev};
}

void write_picture(const picture& from, const image_options& how, const tensor& out, random draw,
                   int exif_orientation) {
  const bool has_shape = from.pixel_aspect >= 1.0 / 256 && from.pixel_aspect <= 256;
  require_slot(has_shape || !how.square_pixels, out, "pixel_aspect must be 1/256 to 256");
  const auto target = slot_target(out, how);
  auto options = how;
  options.width = target.width;
  options.height = target.height;
  options.shorter_side = resolved_shorter_side(options);
  require_slot(options.shorter_side >= std::max(target.width, target.height), out,
               "shorter_side must be at least width and height");
  const auto crop = plan_picture_crop(from.width, from.height, from.pixel_aspect,
                                      orientation_of(exif_orientation), options, draw);
  write_picture(from, {.x = crop.x, .y = crop.y, .turn = crop.turn}, target);
}

}  // namespace lade::media
