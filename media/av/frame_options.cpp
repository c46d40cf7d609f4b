#include "frame_options.hpp"

#include <lade/error.hpp>
#include <lade/media/picture.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace lade::media {

tensor_spec frame_spec(const image_options& options) {
  const int channels = channels_of(options.colour);
  if (options.layout == image_layout::chw)
    return {options.type, {channels, options.height, options.width}};
  return {options.type, {options.height, options.width, channels}};
}

image_options with_size(const image_options& options, int width, int height,
                        const rational& sample_aspect, int exif_orientation,
                        std::string_view name) {
  if ((options.width == 0) != (options.height == 0))
    throw error(errc::invalid_argument, "convert a frame of " + std::string(name),
                "width and height must both be set, or neither");
  auto result = options;
  if (options.width != 0) return result;
  result.width = options.square_pixels ? shown_width(width, sample_aspect.to_double()) : width;
  result.height = height;
  if (options.orient && exif_orientation >= 5) std::swap(result.width, result.height);
  return result;
}

}  // namespace lade::media
