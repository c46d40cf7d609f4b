// Which part of an image is wanted, and how it is turned.

#pragma once

#include "resize_axis.hpp"

#include <lade/media/image.hpp>
#include <lade/random.hpp>

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

// The same of a picture with pixels of these proportions, which count if options.square_pixels.
image_crop plan_picture_crop(int width, int height, double pixel_aspect, const orientation& turn,
                             const image_options& options, random draw);

}  // namespace lade::media
