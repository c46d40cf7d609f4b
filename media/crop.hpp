// Plans the part of an image that becomes the result, and its orientation.

#pragma once

#include "resize_axis.hpp"

#include <lade/media/crop.hpp>
#include <lade/media/image.hpp>
#include <lade/random.hpp>
#include <lade/sample.hpp>

#include <string_view>

namespace lade::media {

// An Exif orientation. The image is mirrored left to right and top to bottom, and then transposed.
struct orientation {
  bool mirror_x = false;
  bool mirror_y = false;
  bool transposed = false;
};
orientation orientation_of(int exif) noexcept;  // `exif`: 1 to 8

// The part of the stored image that becomes the width x height result, and how it is oriented.
struct image_crop {
  axis_range x;
  axis_range y;
  int width = 0;
  int height = 0;
  orientation turn;
};

// The value of `shorter_side`. If the option is 0: 256 / 224 of the larger one of width and height.
int resolved_shorter_side(const image_options& options) noexcept;

// Plans the crop of a stored image of this size. Random crops follow torchvision's
// RandomResizedCrop.get_params: whole pixels, ten attempts, then the largest central part.
image_crop plan_crop(int stored_width, int stored_height, const orientation& turn,
                     const image_options& options, random draw);

// Plans a chosen crop of a stored image of this size. Throws error(invalid_data), with `doing` as
// the operation, if the crop is of an image of another size.
image_crop plan_chosen(const chosen_crop& chosen, int stored_width, int stored_height,
                       const orientation& turn, std::string_view doing);

// check_chosen throws error(invalid_argument) for a crop that no image can have. check_size_of
// throws error(invalid_data) if the crop is of an image of another size. `name`: of the image, for
// errors.
void check_chosen(const chosen_crop& chosen, std::string_view doing);
void check_size_of(const chosen_crop& chosen, const image_size& image, std::string_view name,
                   std::string_view doing);

// The tensor, or the crop, in a field of a sample. They throw error(invalid_argument) if the field
// is missing.
const tensor& tensor_in(const sample& in, std::string_view field, std::string_view doing);
chosen_crop stored_crop(const sample& in, std::string_view field, std::string_view doing);

// As plan_crop, for a picture whose pixels have this aspect ratio. options.square_pixels applies
// it.
image_crop plan_picture_crop(int width, int height, double pixel_aspect, const orientation& turn,
                             const image_options& options, random draw);

}  // namespace lade::media
