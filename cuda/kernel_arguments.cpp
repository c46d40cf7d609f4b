#include <lade/error.hpp>

#include "check.hpp"
#include "kernel_arguments.hpp"
#include "runtime_api.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace lade::cuda {

// The largest reduction of an axis. With it, the weights of a tile's outputs and a row of its
// source samples fit into 48 KiB of shared memory, which every device has.
static constexpr double most_shrinking = 100;

static constexpr int most_axis_pixels = 1 << 15;

std::string checked_item::text(std::string_view reason) const {
  if (kind.empty()) return std::string(reason);
  return fmt::format("{} {}: {}", kind, index, reason);
}

void checked_item::refuse(std::string_view reason) const {
  throw error(errc::invalid_argument, doing, text(reason));
}

void checked_item::refuse_kind(std::string_view reason) const {
  throw error(errc::unsupported, doing, text(reason));
}

element_code code_of(element_type type, const checked_item& item, std::string_view subject) {
  switch (type) {
    case element_type::u8: return element_code::u8;
    case element_type::f16: return element_code::f16;
    case element_type::bf16: return element_code::bf16;
    case element_type::f32: return element_code::f32;
    default: item.refuse_kind(fmt::format("{} of {}", subject, name(type)));
  }
}

void check_memory(const void* data, std::size_t alignment, const checked_item& item,
                  std::string_view name) {
  if (data == nullptr) item.refuse(std::string(name) + " is null");
  if (address_of(data) % alignment != 0)
    item.refuse(fmt::format("{} is not a multiple of {} bytes", name, alignment));
}

void check_tensor(const tensor& images, const checked_item& item) {
  if (!images.contiguous()) item.refuse("it is not contiguous");
  if (images.where().type == lade::device::kind::cpu) item.refuse("its memory is not a device's");
}

int gpu_of(const tensor& images) noexcept {
  const auto device = images.where();
  return device.type == lade::device::kind::cuda ? device.index : -1;
}

void check_size(int width, int height, const checked_item& item) {
  const auto fits = [](int size) { return size >= 1 && size <= most_axis_pixels; };
  if (!fits(width) || !fits(height))
    item.refuse(fmt::format("width x height is {} x {}: both must be 1 to 32768", width, height));
}

void check_pitch(std::int64_t pitch, std::int64_t row_bytes, const checked_item& item,
                 std::string_view name) {
  if (pitch < row_bytes || pitch > (std::int64_t{1} << 40))
    item.refuse(fmt::format("{} is {} bytes, a row has {}", name, pitch, row_bytes));
}

static void check_normalisation(const image_batch& to, const checked_item& item) {
  for (std::size_t c = 0; c < 3; ++c) {
    if (!std::isfinite(to.mean[c])) item.refuse("mean must be finite");
    if (!std::isnormal(to.stddev[c])) item.refuse("stddev must be finite and not 0");
  }
}

void check_batch(const image_batch& to, const checked_item& item) {
  code_of(to.type, item, "to.type");
  check_memory(to.data, element_bytes(to.type), item, "to.data");
  check_size(to.width, to.height, item);
  if (to.channels != 1 && to.channels != 3)
    item.refuse(fmt::format("to.channels is {}: it must be 1 or 3", to.channels));
  if (to.layout > pixel_layout::chw) item.refuse("to.layout is unknown");
  check_normalisation(to, item);
}

void check_room(const image_batch& to, std::size_t images, const checked_item& item) {
  if (to.images >= 0 && std::cmp_less(to.images, images))
    item.refuse(fmt::format("there are {} images, but to has {} slots", images, to.images));
  check_gpu(to.gpu, item, "to.data");
}

void check_gpu(int gpu, const checked_item& item, std::string_view name) {
  if (gpu < 0) return;
  int current = 0;
  check(api().get_device(&current), item.doing);
  if (gpu != current)
    item.refuse(
        fmt::format("{} is memory of GPU {}, and the stream is one of GPU {}", name, gpu, current));
}

channel_scaling scaling_of(const image_batch& to) noexcept {
  channel_scaling result;
  for (std::size_t c = 0; c < 3; ++c) {
    const double stddev = to.stddev[c];
    result.scale[c] = static_cast<float>(1 / (255 * stddev));
    result.bias[c] = static_cast<float>(-to.mean[c] / stddev);
  }
  return result;
}

static axis_part part_of(double begin, double length, bool isolated, int size) {
  if (!isolated) return {begin, length, 0, size};
  return {begin, length, static_cast<int>(std::floor(begin)),
          static_cast<int>(std::ceil(begin + length))};
}

cropped_axes axes_of(const crop_box& crop, int width, int height, const image_batch& to,
                     const checked_item& item) {
  if (crop.width == 0)
    return axes_of({0, 0, static_cast<double>(width), static_cast<double>(height)}, width, height,
                   to, item);
  const bool inside = crop.left >= 0 && crop.top >= 0 && crop.width > 0 && crop.height > 0 &&
                      crop.left + crop.width <= width && crop.top + crop.height <= height;
  if (!inside) item.refuse("crop must have an area and lie inside of the image");
  if (crop.width > most_shrinking * to.width || crop.height > most_shrinking * to.height)
    item.refuse_kind("an axis shrinks by more than 100");
  return {part_of(crop.left, crop.width, crop.isolated, width),
          part_of(crop.top, crop.height, crop.isolated, height)};
}

static bool is_whole(double value) { return value == std::floor(value); }

bool cropped_axes::keeps_size(const image_batch& to) const noexcept {
  return x.length == to.width && y.length == to.height && is_whole(x.begin) && is_whole(y.begin);
}

void check_launch(int result, const checked_item& item) {
  check(static_cast<cudaError_t>(result), item.doing);
}

}  // namespace lade::cuda
