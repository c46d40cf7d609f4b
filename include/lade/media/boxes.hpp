// Bounding boxes of the objects in an image, cropped like the image.

#pragma once

#include <lade/media/crop.hpp>
#include <lade/sample.hpp>
#include <lade/tensor.hpp>

#include <cstdint>
#include <string_view>
#include <utility>

namespace lade::media {

// What the four numbers of a box are, in pixels from the top left corner of the upright image.
enum class box_format : std::uint8_t {
  xyxy,    // left, top, right, bottom: Pascal VOC, torchvision's detectors
  xywh,    // left, top, width, height: COCO
  cxcywh,  // the centre, then width and height
};

struct box_options {
  box_format format = box_format::xyxy;  // of the boxes given and of those returned

  // Whether boxes are cut off at the border of the result. Boxes that are kept have a part inside
  // in either case.
  bool clip = true;

  // Which boxes are dropped: those with less than `min_visible` of their area inside of the result,
  // 0 to 1, and those whose part inside has a side of less than `min_side` pixels of the result.
  double min_visible = 0;
  double min_side = 1;
};

// The boxes that a crop leaves, in their order.
class cropped_boxes {
 public:
  cropped_boxes(tensor boxes, tensor kept) : boxes_(std::move(boxes)), kept_(std::move(kept)) {}

  const tensor& boxes() const noexcept { return boxes_; }  // [n, 4], in pixels of the result
  const tensor& kept() const noexcept { return kept_; }    // i64 [n]: their numbers before the crop

  // The rows of another tensor that belong to these boxes, such as their labels: [all] becomes [n],
  // [all, ...] becomes [n, ...], in a new tensor. Throws error(invalid_argument) for a tensor of
  // fewer rows, or one that is not contiguous in memory of the host.
  tensor rows_of(const tensor& values) const;

 private:
  tensor boxes_;
  tensor kept_;
};

// Moves boxes from an image to the result of its crop: cropped, flipped and scaled. `boxes` is
// contiguous f32 or f64 [any number, 4]; the result has that type. Boxes may reach beyond the
// image. Any thread. Throws error(invalid_argument) for another tensor, for an option that cannot
// work and for a crop that cannot be, and error(invalid_data) that numbers a box which is not
// finite or ends before it begins.
cropped_boxes crop_boxes(const tensor& boxes, const chosen_crop& crop,
                         const box_options& options = {});

// The same for the field of a sample. The sample's name begins the text of every error.
cropped_boxes crop_boxes(const sample& in, std::string_view field, const chosen_crop& crop,
                         const box_options& options = {});

}  // namespace lade::media
