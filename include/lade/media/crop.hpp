// The crop of an image, for programs that do not leave it to decode_image: they decode on a GPU, or
// have boxes and masks to crop like the image.

#pragma once

#include <lade/media/image.hpp>
#include <lade/media/resize.hpp>
#include <lade/random.hpp>

namespace lade::media {

struct chosen_crop {
  image_box box;  // whole pixels if `isolated`; lies inside of the image

  // Whether pixels outside of the box do not contribute, as if it had been cut out of the image
  // before it is resized. Otherwise those around it contribute to the border of the result.
  bool isolated = false;

  bool flip = false;  // the result, left to right
};

// The crop that decode_image makes with the same options and the same draw, of an image that is
// width x height when it has been turned upright: of `fit`, as torchvision's RandomResizedCrop and
// RandomHorizontalFlip or its Resize and CenterCrop, or all of the image. The box is resized to the
// width and height of the options, or keeps its size if they have none. Any thread. Throws
// error(invalid_argument) for an image without pixels, and for options that decode_image refuses.
chosen_crop choose_crop(int width, int height, const image_options& options, random draw = {});

}  // namespace lade::media
