#include <lade/cuda/image_batch.hpp>
#include <lade/error.hpp>

#include <fmt/format.h>

#include "kernel_arguments.hpp"

namespace lade::cuda {

static int extent_of(const tensor& images, std::size_t i, const checked_item& item) {
  const auto extent = images.shape()[i];
  if (extent < 1 || extent > 32768)
    item.refuse(
        fmt::format("its shape is {}: extents must be 1 to 32768", to_string(images.shape())));
  return static_cast<int>(extent);
}

image_batch batch_in(const tensor& images, pixel_layout layout) {
  const checked_item item{"take a tensor as a batch of images"};
  if (images.rank() != 4)
    item.refuse(fmt::format("its shape is {}, not of rank 4", to_string(images.shape())));
  check_tensor(images, item);
  const bool planar = layout == pixel_layout::chw;
  return {.data = images.bytes(),
          .type = images.type(),
          .layout = layout,
          .width = extent_of(images, planar ? 3 : 2, item),
          .height = extent_of(images, planar ? 2 : 1, item),
          .channels = extent_of(images, planar ? 1 : 3, item),
          .images = images.shape()[0],
          .gpu = gpu_of(images)};
}

}  // namespace lade::cuda
