#include <lade/error.hpp>
#include <lade/media/crop.hpp>
#include <lade/media/slot.hpp>

#include "crop.hpp"
#include "decoders.hpp"
#include "exif.hpp"
#include "image_header.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace lade::media {

static bool has_no_fraction(double value) { return value == std::floor(value); }

static bool lies_within(double begin, double length, int size) {
  return begin >= 0 && length > 0 && begin + length <= size;  // false for NaN
}

// At most 32768, or the size of the image if that is larger.
static bool is_possible_result(int size, int of_image) {
  constexpr int most = 1 << 15;
  return 1 <= size && size <= std::max(most, of_image);
}

void check_chosen(const chosen_crop& chosen, std::string_view doing) {
  const auto require = [&](bool condition, std::string_view reason) {
    if (!condition) throw error(errc::invalid_argument, doing, reason);
  };
  const auto& [box, isolated, flip, image, result] = chosen;
  require(image.width > 0 && image.height > 0, "the crop is of an image without pixels");
  require(lies_within(box.left, box.width, image.width) &&
              lies_within(box.top, box.height, image.height),
          "the crop's box must have an area and lie inside of the image");
  require(!isolated || (has_no_fraction(box.left) && has_no_fraction(box.top) &&
                        has_no_fraction(box.width) && has_no_fraction(box.height)),
          "an isolated crop must have whole pixels");
  require(is_possible_result(result.width, image.width) &&
              is_possible_result(result.height, image.height),
          "the crop's result must be 1 to 32768 pixels wide and high");
}

static std::string text_of_size(const image_size& size) {
  return fmt::format("{} x {}", size.width, size.height);
}

void check_size_of(const chosen_crop& chosen, const image_size& image, std::string_view name,
                   std::string_view doing) {
  if (chosen.image == image) return;
  throw error(errc::invalid_data, doing,
              fmt::format("{} is {}, its crop that of an image of {}", name, text_of_size(image),
                          text_of_size(chosen.image)));
}

tensor to_tensor(const chosen_crop& crop) {
  const auto& [box, isolated, flip, image, result] = crop;
  const std::array<double, 10> values{static_cast<double>(image.width),
                                      static_cast<double>(image.height),
                                      box.left,
                                      box.top,
                                      box.width,
                                      box.height,
                                      isolated ? 1.0 : 0.0,
                                      flip ? 1.0 : 0.0,
                                      static_cast<double>(result.width),
                                      static_cast<double>(result.height)};
  tensor stored(element_type::f64, {static_cast<std::int64_t>(values.size())});
  std::ranges::copy(values, stored.data<double>());
  return stored;
}

static chosen_crop crop_from(const tensor& stored, std::string_view doing) {
  const auto require = [&](bool condition) {
    if (!condition) throw error(errc::invalid_argument, doing, "a stored crop is f64 [10]");
  };
  require(stored.spec() == tensor_spec{element_type::f64, {10}} && stored.contiguous() &&
          stored.where().is_host_accessible());
  const auto* values = stored.data<double>();
  const auto whole = [&](int i) {
    require(has_no_fraction(values[i]) && 0 <= values[i] && values[i] <= INT_MAX);
    return static_cast<int>(values[i]);
  };
  const chosen_crop crop{.box = {values[2], values[3], values[4], values[5]},
                         .isolated = whole(6) != 0,
                         .flip = whole(7) != 0,
                         .image = {whole(0), whole(1)},
                         .result = {whole(8), whole(9)}};
  check_chosen(crop, doing);
  return crop;
}

chosen_crop to_crop(const tensor& stored) { return crop_from(stored, "read a crop"); }

const tensor& tensor_in(const sample& in, std::string_view field, std::string_view doing) {
  const auto& found = in.field(field);
  if (found.type() == lade::field::kind::tensor) return found.tensor();
  throw error(errc::invalid_argument, doing,
              fmt::format("its field {} holds {} instead of a tensor", found.name(),
                          lade::name(found.type())));
}

chosen_crop stored_crop(const sample& in, std::string_view field, std::string_view doing) {
  return crop_from(tensor_in(in, field, doing), doing);
}

// The size as stored, and the Exif orientation.
static std::pair<image_size, int> size_by_header(const image_file& file) {
  used_decoders worker;
  auto& reader = worker->reader_of(file);
  if (&reader == &worker->avif) {
    worker->avif.read_header(file);
    return {{reader.width(), reader.height()}, reader.orientation(file)};
  }
  const auto header = header_of(file.bytes);
  const auto bounded = [](std::uint64_t size) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(size, INT64_MAX));
  };
  check_image_size(file, bounded(header.width), bounded(header.height));
  return {{static_cast<int>(header.width), static_cast<int>(header.height)},
          exif_orientation(file.bytes)};
}

image_size size_of_image(const sample& in, const image_options& options) {
  const auto doing = "read the size of " + in.name();
  const image_file file{.bytes = encoded_bytes(in, options.field, doing).bytes(),
                        .doing = doing,
                        .max_pixels = options.max_pixels};
  const auto [size, orientation] = size_by_header(file);
  const bool turned = options.orient && orientation_of(orientation).transposed;
  return turned ? image_size{size.height, size.width} : size;
}

}  // namespace lade::media
