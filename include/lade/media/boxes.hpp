// Bounding boxes of the objects in an image, cropped like the image.

#pragma once

#include <lade/media/crop.hpp>
#include <lade/sample.hpp>
#include <lade/tensor.hpp>

#include <cstdint>
#include <string_view>
#include <utility>

namespace lade::media {

// The meaning of the four numbers of a box, in pixels from the top left corner of the upright
// image.
enum class box_format : std::uint8_t {
  xyxy,    // left, top, right, bottom: Pascal VOC, torchvision's detectors
  xywh,    // left, top, width, height: COCO
  cxcywh,  // the centre, then width and height; in pixels, not YOLO's shares of the image
};

struct box_options {
  box_format format = box_format::xyxy;  // of the input and of the result

  // Whether boxes are clipped at the border of the result. In either case, a box that is entirely
  // outside is dropped.
  bool clip = true;

  // Limits below which boxes are dropped. `min_visible`: share of the box's area inside the result,
  // 0 to 1. `min_side`: shorter side of the part inside, in pixels of the result.
  double min_visible = 0;
  double min_side = 1;
};

// The boxes that remain after a crop, in their order.
class cropped_boxes {
 public:
  // `before`: the number of boxes before the crop.
  cropped_boxes(tensor boxes, tensor kept, std::int64_t before)
      : boxes_(std::move(boxes)), kept_(std::move(kept)), before_(before) {}

  const tensor& boxes() const noexcept { return boxes_; }  // [n, 4], in pixels of the result
  const tensor& kept() const noexcept { return kept_; }    // i64 [n]: indices before the crop

  // Returns the rows of another tensor that belong to these boxes, such as their labels, as a new
  // tensor: [all] becomes [n], and [all, ...] becomes [n, ...]. Throws error(invalid_argument) for
  // a tensor that has not a row for each box before the crop, or is not contiguous in host memory.
  tensor rows_of(const tensor& values) const;

 private:
  tensor boxes_;
  tensor kept_;
  std::int64_t before_;
};

// Converts boxes of an image to boxes of the result of its crop: cropped, flipped and scaled.
// `boxes` is contiguous f32 or f64 [any number, 4]; the result has the same type. Boxes may exceed
// the image. Any thread.
//
// Throws error(invalid_argument) for any other tensor, an option out of range, and an invalid crop.
// Throws error(invalid_data) with the number of a box that is not finite or has a negative size.
cropped_boxes crop_boxes(const tensor& boxes, const chosen_crop& crop,
                         const box_options& options = {});

// The same for a field of a sample. Errors begin with the name of the sample.
cropped_boxes crop_boxes(const sample& in, std::string_view field, const chosen_crop& crop,
                         const box_options& options = {});

}  // namespace lade::media
