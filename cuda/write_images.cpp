#include <lade/cuda/stream.hpp>
#include <lade/cuda/write_images.hpp>

#include "convert_queue.hpp"
#include "resample_queue.hpp"

#include <limits>
#include <string>

#include <fmt/format.h>

namespace lade::cuda {

static constexpr std::string_view writing_images = "write images on the device";

static std::int64_t pitch_of(const image_source& image) {
  return image.pitch == 0 ? std::int64_t{image.width} * image.channels : image.pitch;
}

std::vector<image_source> images_in(const tensor& images) {
  const checked_item item{"take a tensor as images"};
  if (images.type() != element_type::u8) item.refuse("its elements are not u8");
  const auto batch = batch_in(images, pixel_layout::hwc);
  const auto bytes = std::int64_t{batch.width} * batch.height * batch.channels;
  std::vector<image_source> result(static_cast<std::size_t>(images.shape()[0]));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = {.data = images.bytes() + static_cast<std::int64_t>(i) * bytes,
                 .width = batch.width,
                 .height = batch.height,
                 .channels = batch.channels,
                 .gpu = batch.gpu};
  return result;
}

static cropped_axes checked_axes(const image_source& image, const image_batch& to,
                                 const checked_item& item) {
  check_memory(image.data, 1, item, "data");
  check_size(image.width, image.height, item);
  if (image.channels != 3 && image.channels != 1)
    item.refuse(fmt::format("channels is {}: it must be 1 or 3", image.channels));
  if (image.channels > to.channels) item.refuse("channels is 3, and to.channels is 1");
  check_pitch(pitch_of(image), std::int64_t{image.width} * image.channels, item, "pitch");
  return axes_of(image.crop, image.width, image.height, to, item);
}

static convert_source converted_image(const image_source& image, const cropped_axes& axes,
                                      std::size_t slot) {
  const auto left = static_cast<std::int64_t>(axes.x.begin) * image.channels;
  const auto top = static_cast<std::int64_t>(axes.y.begin) * pitch_of(image);
  return {.data = static_cast<const unsigned char*>(image.data) + top + left,
          .pitch = pitch_of(image),
          .slot = static_cast<std::int32_t>(slot),
          .mirrored = image.flip};
}

static resample_source resampled_image(const image_source& image, const cropped_axes& axes,
                                       std::size_t slot) {
  resample_source result;
  result.planes[0] = {static_cast<const unsigned char*>(image.data), pitch_of(image)};
  result.x = axes.x;
  result.y = axes.y;
  result.width = image.width;
  result.height = image.height;
  result.slot = static_cast<std::int32_t>(slot);
  result.channels = static_cast<std::uint8_t>(image.channels);
  result.mirrored = image.flip;
  return result;
}

static void check_images(std::span<const image_source> images, const image_batch& to) {
  const checked_item item{writing_images};
  if (images.empty()) item.refuse("images is empty");
  if (images.size() > std::numeric_limits<std::int32_t>::max()) item.refuse("too many images");
  check_batch(to, item);
  check_room(to, images.size(), item);
  for (std::size_t i = 0; i < images.size(); ++i) {
    const checked_item image{writing_images, "image", i};
    checked_axes(images[i], to, image);
    check_gpu(images[i].gpu, image, "data");
  }
}

void write_images(std::span<const image_source> images, const image_batch& to, CUstream_st* on) {
  check_images(images, to);
  const checked_item item{writing_images};
  convert_queue colours(to, 3, item, on);
  convert_queue greys(to, 1, item, on);
  resample_queue resizes(to, 1, item, on);
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto& image = images[i];
    const auto axes = axes_of(image.crop, image.width, image.height, to, item);
    if (!axes.keeps_size(to))
      resizes.add(resampled_image(image, axes, i));
    else
      (image.channels == 3 ? colours : greys).add(converted_image(image, axes, i));
  }
  colours.flush();
  greys.flush();
  resizes.flush();
}

void write_images(std::span<const image_source> images, const image_batch& to, const stream& on) {
  const current_device scope(on.on());
  write_images(images, to, on.handle());
}

}  // namespace lade::cuda
