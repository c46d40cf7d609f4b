// Batches of images in device memory, the output of kernels, and parts of images.

#pragma once

#include <lade/tensor.hpp>

#include <array>
#include <cstdint>

namespace lade::cuda {

// Whether the channels of a pixel are contiguous, or each channel is a plane.
enum class pixel_layout : std::uint8_t { hwc, chw };

// The part of an image that becomes a result, in pixels, possibly fractional. Width 0: the whole
// image.
struct crop_box {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;

  // Whether pixels outside of the box do not contribute, as if the box had been cut out before it
  // is resized: the crop of torchvision's RandomResizedCrop. If false, pixels around the box
  // contribute to the border of the result, as in Pillow's resize(box=...).
  bool isolated = false;
};

// The output of a kernel: contiguous images in device memory, [images, channels, height, width] for
// chw and [images, height, width, channels] for hwc.
//
// Elements of u8 are 0..255. Elements of f16, bf16 and f32 are (x / 255 - mean) / stddev, rounded
// to nearest even, where x is the 8-bit value. `mean` and `stddev` are in the order of the result's
// channels and finite; `stddev` is not 0.
struct image_batch {
  void* data = nullptr;  // aligned for an element; multiples of 16 bytes are faster
  element_type type = element_type::f32;  // u8, f16, bf16 or f32
  pixel_layout layout = pixel_layout::chw;
  int width = 0;  // of each image, in pixels: 1 to 32768
  int height = 0;
  int channels = 3;  // 3, or 1 for grey
  bool bgr = false;  // blue first
  std::array<float, 3> mean{0, 0, 0};
  std::array<float, 3> stddev{1, 1, 1};

  // Known facts of the memory. Work that would exceed it, or is on another GPU, is refused.
  std::int64_t images = -1;  // capacity in images; -1: unknown
  int gpu = -1;              // index of the device of the memory; -1: unknown
};

// Returns the batch of a tensor: contiguous, of rank 4, in memory that a device can access, with
// its number of images and its device. The tensor must outlive its use. Throws
// error(invalid_argument) for any other tensor.
image_batch batch_in(const tensor& images, pixel_layout layout);

}  // namespace lade::cuda
