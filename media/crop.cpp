#include <lade/error.hpp>
#include <lade/media/crop.hpp>
#include <lade/media/picture.hpp>

#include "crop.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

namespace lade::media {

orientation orientation_of(int exif) noexcept {
  switch (exif) {
    case 2: return {.mirror_x = true};
    case 3: return {.mirror_x = true, .mirror_y = true};
    case 4: return {.mirror_y = true};
    case 5: return {.transposed = true};
    case 6: return {.mirror_y = true, .transposed = true};
    case 7: return {.mirror_x = true, .mirror_y = true, .transposed = true};
    case 8: return {.mirror_x = true, .transposed = true};
    default: return {};
  }
}

// A whole axis; a part that is resized as if it had been cut out before.
static axis_range whole_axis(int size) { return {0, static_cast<double>(size), 0, size}; }
static axis_range cut_axis(std::int64_t begin, std::int64_t length) {
  return {static_cast<double>(begin), static_cast<double>(length), static_cast<int>(begin),
          static_cast<int>(begin + length)};
}

// The part that becomes the middle `count` samples when the axis of `size` is resized to `resized`.
static axis_range middle_of_resized(int size, std::int64_t resized, int count) {
  const double scale = static_cast<double>(size) / static_cast<double>(resized);
  const double begin = std::nearbyint(static_cast<double>(resized - count) / 2);
  return {begin * scale, count * scale, 0, size};
}

static void crop_centre(int width, int height, const image_options& options, image_crop& crop) {
  const std::int64_t shorter = options.shorter_side;
  const auto resized_width = width <= height ? shorter : shorter * width / height;
  const auto resized_height = width <= height ? shorter * height / width : shorter;
  crop.x = middle_of_resized(width, resized_width, options.width);
  crop.y = middle_of_resized(height, resized_height, options.height);
}

static bool try_random_crop(int width, int height, const image_options& options, random& draw,
                            image_crop& crop) {
  const double area =
      static_cast<double>(width) * height * draw.uniform(options.min_area, options.max_area);
  const double aspect =
      std::exp(draw.uniform(std::log(options.min_aspect), std::log(options.max_aspect)));
  const auto w = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area * aspect)));
  const auto h = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area / aspect)));
  if (w < 1 || w > width || h < 1 || h > height) return false;
  const auto place = [&](std::int64_t free) {
    return static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(free + 1)));
  };
  crop.y = cut_axis(place(height - h), h);
  crop.x = cut_axis(place(width - w), w);
  return true;
}

static void crop_largest_middle(int width, int height, double min_aspect, double max_aspect,
                                image_crop& crop) {
  const double aspect = static_cast<double>(width) / height;
  const auto fitted = [](double size, int most) {
    return std::clamp(static_cast<int>(std::nearbyint(size)), 1, most);
  };
  const int w = aspect > max_aspect ? fitted(height * max_aspect, width) : width;
  const int h = aspect < min_aspect ? fitted(width / min_aspect, height) : height;
  crop.x = cut_axis((width - w) / 2, w);
  crop.y = cut_axis((height - h) / 2, h);
}

static void crop_at_random(int width, int height, const image_options& options, random& draw,
                           image_crop& crop) {
  for (int tries = 0; tries < 10; ++tries)
    if (try_random_crop(width, height, options, draw, crop)) return;
  crop_largest_middle(width, height, options.min_aspect, options.max_aspect, crop);
}

static void mirror_range(axis_range& range, int size) {
  range = {size - range.begin - range.length, range.length, size - range.high, size - range.low};
}

// Converts the crop from the oriented image to the stored one. `flip`: mirror the result.
static void store_turned(image_crop& crop, int stored_width, int stored_height, bool flip) {
  if (crop.turn.transposed) std::swap(crop.x, crop.y);
  if (crop.turn.mirror_x) mirror_range(crop.x, stored_width);
  if (crop.turn.mirror_y) mirror_range(crop.y, stored_height);
  if (flip) (crop.turn.transposed ? crop.turn.mirror_y : crop.turn.mirror_x) ^= true;
}

int resolved_shorter_side(const image_options& options) noexcept {
  if (options.shorter_side != 0) return options.shorter_side;
  return static_cast<int>(std::nearbyint(std::max(options.width, options.height) * 256.0 / 224.0));
}

image_crop plan_crop(int stored_width, int stored_height, const orientation& turn,
                     const image_options& options, random draw) {
  const int width = turn.transposed ? stored_height : stored_width;
  const int height = turn.transposed ? stored_width : stored_height;
  const bool own_size = options.width == 0;
  image_crop crop{.x = whole_axis(width),
                  .y = whole_axis(height),
                  .width = own_size ? width : options.width,
                  .height = own_size ? height : options.height,
                  .turn = turn};
  bool flip = false;
  if (options.fit == image_fit::centre_crop) crop_centre(width, height, options, crop);
  if (options.fit == image_fit::cover) {
    const double aspect = static_cast<double>(options.width) / options.height;
    crop_largest_middle(width, height, aspect, aspect, crop);
  }
  if (options.fit == image_fit::random_crop) {
    crop_at_random(width, height, options, draw, crop);
    flip = draw.uniform() < options.flip;
  }
  store_turned(crop, stored_width, stored_height, flip);
  return crop;
}

image_crop plan_chosen(const chosen_crop& chosen, int stored_width, int stored_height,
                       const orientation& turn, std::string_view doing) {
  const bool turned = turn.transposed;
  const image_size upright{turned ? stored_height : stored_width,
                           turned ? stored_width : stored_height};
  check_size_of(chosen, upright, "the image", doing);
  const auto axis = [&](double begin, double length, int size) {
    if (chosen.isolated)
      return cut_axis(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(length));
    return axis_range{begin, length, 0, size};
  };
  image_crop crop{.x = axis(chosen.box.left, chosen.box.width, upright.width),
                  .y = axis(chosen.box.top, chosen.box.height, upright.height),
                  .width = chosen.result.width,
                  .height = chosen.result.height,
                  .turn = turn};
  store_turned(crop, stored_width, stored_height, chosen.flip);
  return crop;
}

static void check_crop(int width, int height, const image_options& options) {
  constexpr std::string_view doing = "choose a crop";
  check_picture_options(options, doing);
  if (options.square_pixels)
    throw error(errc::invalid_argument, doing, "square_pixels is for frames of videos");
  if (width < 1 || height < 1)
    throw error(errc::invalid_argument, doing, "the image has no pixels");
}

// Clamps the length of a part: rounding may move its end past the axis.
static double length_within(const axis_range& part, int size) {
  return std::min(part.length, size - part.begin);
}

chosen_crop choose_crop(int width, int height, const image_options& options, random draw) {
  check_crop(width, height, options);
  auto checked = options;
  checked.shorter_side = resolved_shorter_side(options);
  const auto crop = plan_crop(width, height, {}, checked, draw);
  const bool part_of_width = crop.x.low > 0 || crop.x.high < width;
  const bool part_of_height = crop.y.low > 0 || crop.y.high < height;
  return {.box = {.left = crop.x.begin,
                  .top = crop.y.begin,
                  .width = length_within(crop.x, width),
                  .height = length_within(crop.y, height)},
          .isolated = part_of_width || part_of_height,
          .flip = crop.turn.mirror_x,
          .image = {width, height},
          .result = {crop.width, crop.height}};
}

int shown_width(int width, double pixel_aspect) noexcept {
  constexpr double most = 1 << 20;
  return static_cast<int>(std::clamp(std::round(width * pixel_aspect), 1.0, most));
}

// Converts a part of an axis of `shown` square pixels to the `stored` pixels.
static axis_range to_stored(const axis_range& part, int shown, int stored) {
  if (shown == stored) return part;
  const double scale = static_cast<double>(stored) / shown;
  return {part.begin * scale, part.length * scale,
          std::clamp(static_cast<int>(std::floor(part.low * scale)), 0, stored - 1),
          std::clamp(static_cast<int>(std::ceil(part.high * scale)), 1, stored)};
}

image_crop plan_picture_crop(int width, int height, double pixel_aspect, const orientation& turn,
                             const image_options& options, random draw) {
  const int shown = options.square_pixels ? shown_width(width, pixel_aspect) : width;
  auto crop = plan_crop(shown, height, turn, options, draw);
  crop.x = to_stored(crop.x, shown, width);
  return crop;
}

}  // namespace lade::media
