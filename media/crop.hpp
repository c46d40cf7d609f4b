// Which part of an image is wanted, and how it is turned.

#pragma once

#include "resize_axis.hpp"

#include <lade/media/crop.hpp>
#include <lade/media/image.hpp>
#include <lade/random.hpp>
#include <lade/sample.hpp>

#include <string_view>

namespace lade::media {

// An Exif orientation: the image is mirrored left to right and top to bottom, then transposed.
struct orientation {
  bool mirror_x = false;
  bool mirror_y = false;
  bool transposed = false;
};
orientation orientation_of(int exif) noexcept;  // 1 to 8

// The part of the stored image that becomes a width x height result, and how that is turned.
struct image_crop {
  axis_range x;
  axis_range y;
  int width = 0;
  int height = 0;
  orientation turn;
};

// What `shorter_side` stands for: 256 / 224 of the width or height, whichever is more, if it is 0.
int resolved_shorter_side(const image_options& options) noexcept;

// The crop of a stored image of the given size. Random crops are those of torchvision's
// RandomResizedCrop.get_params: whole pixels, ten tries, then the largest middle part.
image_crop plan_crop(int stored_width, int stored_height, const orientation& turn,
                     const image_options& options, random draw);

// A given crop, of a stored image of the given size. Throws error(invalid_data) if the crop is one
// of an image of another size, behind `doing`.
image_crop plan_chosen(const chosen_crop& chosen, int stored_width, int stored_height,
                       const orientation& turn, std::string_view doing);

// check_chosen throws error(invalid_argument) for a crop that no image can have. check_size_of
// throws error(invalid_data) if the crop is of an image of another size. `name`: of the image, for
// errors.
void check_chosen(const chosen_crop& chosen, std::string_view doing);
void check_size_of(const chosen_crop& chosen, const image_size& image, std::string_view name,
                   std::string_view doing);

// The tensor, and the crop, in a field of a sample. Throw error(invalid_argument) if there is none.
const tensor& tensor_in(const sample& in, std::string_view field, std::string_view doing);
chosen_crop stored_crop(const sample& in, std::string_view field, std::string_view doing);

// The same of a picture with pixels of these proportions, which count if options.square_pixels.
image_crop plan_picture_crop(int width, int height, double pixel_aspect, const orientation& turn,
                             const image_options& options, random draw);

}  // namespace lade::media
