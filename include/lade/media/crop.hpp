// The crop of an image as a value: the part of the image that becomes the result, the size of the
// result, and whether it is flipped. Masks and boxes use the crop of their image; so does a decoder
// on a GPU.

#pragma once

#include <lade/media/image.hpp>
#include <lade/media/resize.hpp>
#include <lade/random.hpp>
#include <lade/sample.hpp>
#include <lade/tensor.hpp>

namespace lade::media {

// Width and height in pixels.
struct image_size {
  int width = 0;
  int height = 0;

  friend bool operator==(const image_size&, const image_size&) = default;
};

// A program may change a crop before it applies it, for example flip it or move its box.
struct chosen_crop {
  image_box box;  // whole pixels if `isolated`; lies inside of the image

  // Whether pixels outside of the box do not contribute, as if the box had been cut out before it
  // is resized. If false, pixels around the box contribute to the border of the result.
  bool isolated = false;

  bool flip = false;  // whether the result is flipped left to right

  image_size image;   // size of the whole image, upright
  image_size result;  // size after the resize of the box

  friend bool operator==(const chosen_crop&, const chosen_crop&) = default;
};

// Returns the crop that decode_image makes with the same options and the same draw. The image is
// width x height, upright. `fit` determines the part, as torchvision's RandomResizedCrop and
// RandomHorizontalFlip, its Resize and CenterCrop, or the whole image. The box is resized to the
// width and height of the options, or keeps its size if they have none. Any thread. Throws
// error(invalid_argument) for an image without pixels, and for options that decode_image refuses.
chosen_crop choose_crop(int width, int height, const image_options& options, random draw = {});

// Returns the size of a sample's image, upright; with `orient = false` the stored size. Reads the
// header only; decodes no pixel. `field`, `max_pixels` and `orient` of the options are used. Any
// thread. Throws errors that name the sample:
// - invalid_data: a damaged header
// - unsupported: an unknown format
// - limit_exceeded: an image of more than max_pixels
// - invalid_argument: a sample that has not been read
image_size size_of_image(const sample& in, const image_options& options = {});

// Convert a crop to f64 [10], for a field of a sample, and back without loss. Elements: width and
// height of the image; left, top, width and height of the box; isolated and flip as 0 or 1; width
// and height of the result. `to_crop` throws error(invalid_argument) for a tensor that is not such
// a crop.
tensor to_tensor(const chosen_crop& crop);
chosen_crop to_crop(const tensor& stored);

}  // namespace lade::media
