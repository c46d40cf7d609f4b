#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/media/boxes.hpp>

#include "crop.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace lade::media {

struct box_edges {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  double width() const noexcept { return right - left; }
  double height() const noexcept { return bottom - top; }
};

using box_numbers = std::array<double, 4>;

static box_edges edges_of(const box_numbers& box, box_format format) {
  const auto& [a, b, c, d] = box;
  if (format == box_format::xywh) return {a, b, a + c, b + d};
  if (format == box_format::cxcywh) return {a - c / 2, b - d / 2, a + c / 2, b + d / 2};
  return {a, b, c, d};
}

static box_numbers numbers_of(const box_edges& box, box_format format) {
  if (format == box_format::xywh) return {box.left, box.top, box.width(), box.height()};
  if (format == box_format::cxcywh)
    return {(box.left + box.right) / 2, (box.top + box.bottom) / 2, box.width(), box.height()};
  return {box.left, box.top, box.right, box.bottom};
}

static box_edges moved_box(const box_edges& box, const chosen_crop& crop) {
  const double across = crop.result.width / crop.box.width;
  const double down = crop.result.height / crop.box.height;
  box_edges moved{(box.left - crop.box.left) * across, (box.top - crop.box.top) * down,
                  (box.right - crop.box.left) * across, (box.bottom - crop.box.top) * down};
  if (!crop.flip) return moved;
  const double width = crop.result.width;
  return {width - moved.right, moved.top, width - moved.left, moved.bottom};
}

static box_edges clipped_box(const box_edges& box, const image_size& to) {
  const double width = to.width, height = to.height;
  return {std::clamp(box.left, 0.0, width), std::clamp(box.top, 0.0, height),
          std::clamp(box.right, 0.0, width), std::clamp(box.bottom, 0.0, height)};
}

static bool is_box_kept(const box_edges& moved, const box_edges& inside,
                        const box_options& options) {
  const double area = inside.width() * inside.height();
  return area > 0 && area / (moved.width() * moved.height()) >= options.min_visible &&
         std::min(inside.width(), inside.height()) >= options.min_side;
}

static void check_boxes(const tensor& boxes, const box_options& options, std::string_view doing) {
  const auto require = [&](bool condition, std::string_view reason) {
    if (!condition) throw error(errc::invalid_argument, doing, reason);
  };
  require(options.format <= box_format::cxcywh, "format is no value of box_format");
  require(0 <= options.min_visible && options.min_visible <= 1, "min_visible must be in [0, 1]");
  require(0 <= options.min_side && std::isfinite(options.min_side),
          "min_side must be 0 or above, and finite");
  require((boxes.type() == element_type::f32 || boxes.type() == element_type::f64) &&
              boxes.rank() == 2 && boxes.shape()[1] == 4 && boxes.contiguous() &&
              boxes.where().is_host_accessible(),
          "boxes must be contiguous f32 or f64 [any number, 4] in memory of the host");
}

static std::string_view name_of(box_format format) {
  constexpr std::string_view names[] = {"xyxy", "xywh", "cxcywh"};
  return names[static_cast<std::size_t>(format)];
}

static void check_edges(const box_edges& box, std::int64_t i, box_format format,
                        std::string_view doing) {
  const auto refuse = [&](std::string_view reason) {
    throw error(errc::invalid_data, doing, fmt::format("box {} {}", i, reason));
  };
  if (!std::isfinite(box.width()) || !std::isfinite(box.height())) refuse("is not finite");
  if (box.width() < 0 || box.height() < 0)
    refuse("ends before it begins, as " + std::string(name_of(format)));
}

// The boxes that remain, and their indices in the input.
struct kept_boxes {
  std::vector<box_numbers> boxes;
  std::vector<std::int64_t> numbers;
};

template <class T>
static kept_boxes keep_boxes(const tensor& boxes, const chosen_crop& crop,
                             const box_options& options, std::string_view doing) {
  kept_boxes kept;
  const auto* values = boxes.data<T>();
  for (std::int64_t i = 0; i < boxes.shape()[0]; ++i, values += 4) {
    const auto box = edges_of({values[0], values[1], values[2], values[3]}, options.format);
    check_edges(box, i, options.format, doing);
    const auto moved = moved_box(box, crop);
    const auto inside = clipped_box(moved, crop.result);
    if (!is_box_kept(moved, inside, options)) continue;
    kept.boxes.push_back(numbers_of(options.clip ? inside : moved, options.format));
    kept.numbers.push_back(i);
  }
  return kept;
}

template <class T>
static tensor tensor_of_boxes(const kept_boxes& kept, const tensor_spec& spec) {
  const tensor boxes(spec, allocate_now(spec.bytes()));
  auto* out = boxes.data<T>();
  for (const auto& box : kept.boxes)
    for (const double number : box) *out++ = static_cast<T>(number);
  return boxes;
}

template <class T>
static cropped_boxes crop_boxes_of(const tensor& boxes, const chosen_crop& crop,
                                   const box_options& options, std::string_view doing) {
  const auto kept = keep_boxes<T>(boxes, crop, options, doing);
  const auto count = static_cast<std::int64_t>(kept.numbers.size());
  const tensor_spec of_numbers{element_type::i64, {count}};
  const tensor numbers(of_numbers, allocate_now(of_numbers.bytes()));
  std::ranges::copy(kept.numbers, numbers.data<std::int64_t>());
  return {tensor_of_boxes<T>(kept, {boxes.type(), {count, 4}}), numbers, boxes.shape()[0]};
}

static cropped_boxes crop_boxes_by(const tensor& boxes, const chosen_crop& crop,
                                   const box_options& options, std::string_view doing) {
  check_boxes(boxes, options, doing);
  check_chosen(crop, doing);
  return boxes.type() == element_type::f32 ? crop_boxes_of<float>(boxes, crop, options, doing)
                                           : crop_boxes_of<double>(boxes, crop, options, doing);
}

cropped_boxes crop_boxes(const tensor& boxes, const chosen_crop& crop, const box_options& options) {
  return crop_boxes_by(boxes, crop, options, "crop boxes");
}

cropped_boxes crop_boxes(const sample& in, std::string_view field, const chosen_crop& crop,
                         const box_options& options) {
  const auto doing = fmt::format("crop the boxes {} of {}", field, in.name());
  return crop_boxes_by(tensor_in(in, field, doing), crop, options, doing);
}

tensor cropped_boxes::rows_of(const tensor& values) const {
  const auto refuse = [](const std::string& reason) {
    throw error(errc::invalid_argument, "choose the rows of boxes", reason);
  };
  if (values.rank() == 0 || !values.contiguous() || !values.where().is_host_accessible())
    refuse("the values must be contiguous, with a row for each box, in memory of the host");
  if (values.shape()[0] != before_)
    refuse(fmt::format("the values have {} rows, there were {} boxes", values.shape()[0], before_));
  const tensor_spec spec{values.type(), values.shape().tail().prepend(kept_.shape()[0])};
  const tensor rows(spec, allocate_now(spec.bytes()));
  const auto bytes = tensor_spec{values.type(), values.shape().tail()}.bytes();
  auto* out = rows.bytes();
  for (std::int64_t i = 0; i < kept_.shape()[0]; ++i, out += bytes) {
    const auto number = kept_.data<std::int64_t>()[i];
    if (bytes > 0)
      std::memcpy(out, values.bytes() + static_cast<std::size_t>(number) * bytes, bytes);
  }
  return rows;
}

}  // namespace lade::media
