#include "image_reader.hpp"
#include "exif.hpp"

#include <climits>

#include <fmt/format.h>

namespace lade::media {

int image_reader::orientation(const image_file& file) const { return exif_orientation(file.bytes); }

void check_image_size(const image_file& file, std::int64_t width, std::int64_t height) {
  if (width < 1 || height < 1 || width > INT_MAX || height > INT_MAX)
    throw error(errc::invalid_data, file.doing, fmt::format("the size is {} x {}", width, height));
  if (width > file.max_pixels / height)
    throw error(errc::limit_exceeded, file.doing,
                fmt::format("{} x {} pixels are more than max_pixels = {}", width, height,
                            file.max_pixels));
}

void image_reader::set_shape(const image_file& file, std::int64_t width, std::int64_t height,
                             bool grey) {
  check_image_size(file, width, height);
  width_ = static_cast<int>(width);
  height_ = static_cast<int>(height);
  grey_ = grey;
}

}  // namespace lade::media
