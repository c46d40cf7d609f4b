// Batches of images in the memory of a device, as kernels write them, and parts of images.

#pragma once

#include <lade/tensor.hpp>

#include <array>
#include <cstdint>

namespace lade::cuda {

// Whether the channels of a pixel lie side by side, or each channel is a plane.
enum class pixel_layout : std::uint8_t { hwc, chw };

// The part of an image that becomes a result, in pixels, possibly fractional. A crop of width 0 is
// the whole image.
struct crop_box {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;

  // Pixels outside of the box do not contribute, as if it had been cut out of the image before it
  // is resized: the crop of torchvision's RandomResizedCrop. Otherwise, pixels that lie around the
  // box contribute to those at its border, as to Pillow's resize(box=...).
  bool isolated = false;
};

// The result of a kernel: contiguous images in device memory, [images, channels, height, width] for
// chw and [images, height, width, channels] for hwc.
//
// Elements of u8 are 0..255. Elements of f16, bf16 and f32 are (x / 255 - mean) / stddev, rounded
// to nearest even, where x is the 8-bit value; mean and stddev are in the order of the channels of
// the result. They are finite, and stddev is not 0.
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

  // What is known of the memory, so that work that would write beyond it, or on another GPU, is
  // refused.
  std::int64_t images = -1;  // that have room; -1: not known
  int gpu = -1;              // the index of the device whose memory it is; -1: not known
};

// The batch that a tensor holds: contiguous, of rank 4, in memory that a device reaches. It knows
// how many images the tensor has, and on which device. The tensor must outlive its use. Throws
// error(invalid_argument) for any other tensor.
image_batch batch_in(const tensor& images, pixel_layout layout);

}  // namespace lade::cuda
