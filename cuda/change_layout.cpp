#include <lade/cuda/change_layout.hpp>
#include <lade/cuda/stream.hpp>

#include "kernel_arguments.hpp"
#include "kernel_launches.hpp"
#include "layout_grid.hpp"

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace lade::cuda {

// Checks that the f32 elements fit into the address space, and the pixels of an image into a grid.
static void check_extents(const image_extents& extents, const checked_item& item) {
  if (extents.images < 1 || extents.height < 1 || extents.width < 1 || extents.channels < 1)
    item.refuse("of: each extent must be at least 1");
  std::int64_t pixels = 0;
  std::int64_t bytes = 0;
  const bool too_large = __builtin_mul_overflow(extents.height, extents.width, &pixels) ||
                         pixels > (std::int64_t{1} << 38) ||
                         __builtin_mul_overflow(pixels, extents.channels, &bytes) ||
                         __builtin_mul_overflow(bytes, extents.images, &bytes) ||
                         __builtin_mul_overflow(bytes, 4, &bytes);
  if (too_large) item.refuse("of: there are too many elements");
}

static void check_known(const device_images& images, const image_extents& extents,
                        const checked_item& item, std::string_view name) {
  const auto needed = extents.images * extents.height * extents.width * extents.channels *
                      static_cast<std::int64_t>(element_bytes(images.type));
  if (images.bytes >= 0 && needed > images.bytes)
    item.refuse(fmt::format("{} has {} bytes, and the images take {}", name, images.bytes, needed));
  check_gpu(images.gpu, item, std::string(name) + ".data");
}

device_images device_images_in(const tensor& images, pixel_layout layout) {
  check_tensor(images, {"take a tensor as images of a device"});
  return {.data = images.bytes(),
          .type = images.type(),
          .layout = layout,
          .bytes = static_cast<std::int64_t>(images.spec().bytes()),
          .gpu = gpu_of(images)};
}

void change_layout(const device_images& from, const device_images& to, const image_extents& of,
                   CUstream_st* on) {
  const checked_item item{"change the layout of images on the device"};
  layout_change change;
  change.from_code = code_of(from.type, item, "from.type");
  change.to_code = code_of(to.type, item, "to.type");
  check_memory(from.data, element_bytes(from.type), item, "from.data");
  check_memory(to.data, element_bytes(to.type), item, "to.data");
  if (from.layout > pixel_layout::chw || to.layout > pixel_layout::chw)
    item.refuse("a layout is unknown");
  check_extents(of, item);
  check_known(from, of, item, "from");
  check_known(to, of, item, "to");
  change.from = from.data;
  change.to = to.data;
  change.images = of.images;
  change.pixels = of.height * of.width;
  change.channels = of.channels;
  change.from_planar = from.layout == pixel_layout::chw;
  change.to_planar = to.layout == pixel_layout::chw;
  check_launch(current_launches().layout(change, on), item);
}

void change_layout(const device_images& from, const device_images& to, const image_extents& of,
                   const stream& on) {
  const current_device scope(on.on());
  change_layout(from, to, of, on.handle());
}

}  // namespace lade::cuda
