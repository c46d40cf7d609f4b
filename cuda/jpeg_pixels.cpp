#include "jpeg_pixels.hpp"

#include <lade/error.hpp>

#include <new>
#include <string>

#include <fmt/format.h>

namespace lade::cuda {

static std::string text_of(const jpeg_region& part) {
  return fmt::format("{} x {} at {}, {}", part.width, part.height, part.left, part.top);
}

jpeg_region part_within(const jpeg_region& part, std::int64_t width, std::int64_t height) {
  if (part.width == 0) return {0, 0, static_cast<int>(width), static_cast<int>(height)};
  const bool is_inside = part.left >= 0 && part.top >= 0 && part.width > 0 && part.height > 0 &&
                         std::int64_t{part.left} + part.width <= width &&
                         std::int64_t{part.top} + part.height <= height;
  if (is_inside) return part;
  throw error(errc::invalid_argument, "take a part of " + text_of(part),
              fmt::format("the image is {} x {}", width, height));
}

tensor_spec spec_of(std::int64_t width, std::int64_t height, bool planar) {
  if (planar) return {element_type::u8, {3, height, width}};
  return {element_type::u8, {height, width, 3}};
}

static void require_pixels(const tensor& image) {
  const bool is_image = image.type() == element_type::u8 && image.rank() == 3 &&
                        image.shape()[2] == 3 && image.where().is_host_accessible();
  if (is_image) return;
  throw error(errc::invalid_argument, "use the image that the CPU has decoded",
              fmt::format("{} {} ({}); it must be u8 [height, width, 3] in host memory",
                          name(image.type()), to_string(image.shape()), to_string(image.where())));
}

tensor arranged(const tensor& image, const jpeg_region& part, bool planar) {
  require_pixels(image);
  const auto taken = part_within(part, image.shape()[1], image.shape()[0]);
  if (!planar && image.contiguous() && part.width == 0) return image;
  const tensor result(spec_of(taken.width, taken.height, planar));
  const auto from = image.strides();
  const auto to = result.strides();
  const auto* first = image.bytes() + taken.top * from[0] + taken.left * from[1];
  for (std::int64_t y = 0; y < taken.height; ++y)
    for (std::int64_t x = 0; x < taken.width; ++x)
      for (std::int64_t c = 0; c < 3; ++c) {
        const auto at = planar ? c * to[0] + y * to[1] + x : y * to[0] + x * to[1] + c;
        result.bytes()[at] = first[y * from[0] + x * from[1] + c * from[2]];
      }
  return result;
}

std::string jpeg_name(const jpeg_source& file, std::size_t index) {
  return file.name().empty() ? fmt::format("image {} of a batch", index) : file.name();
}

bool is_of_batch(const std::exception& failure) noexcept {
  const auto* coded = dynamic_cast<const std::system_error*>(&failure);
  return dynamic_cast<const std::bad_alloc*>(&failure) ||
         (coded && coded->code() == condition::device_lost);
}

std::exception_ptr named_failure(const std::exception& failure, std::string_view name) {
  const auto* coded = dynamic_cast<const std::system_error*>(&failure);
  const std::error_code code = coded ? coded->code() : make_error_code(errc::failed);
  return std::make_exception_ptr(error(code, std::string("decode ").append(name), failure.what()));
}

}  // namespace lade::cuda
