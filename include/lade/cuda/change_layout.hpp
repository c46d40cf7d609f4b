// Other layouts and element types of images in device memory. Not yet run on a GPU.

#pragma once

#include <lade/cuda/image_batch.hpp>

#include <cstdint>

struct CUstream_st;  // of <cuda_runtime.h>: a cudaStream_t is a pointer to it

namespace lade::cuda {

class stream;

// Contiguous images in device memory: [images, height, width, channels] for hwc, and [images,
// channels, height, width] for chw.
struct device_images {
  void* data = nullptr;                  // aligned for an element
  element_type type = element_type::u8;  // u8, f16, bf16 or f32
  pixel_layout layout = pixel_layout::hwc;

  // What is known of the memory, so that work beyond it, or on another GPU, is refused.
  std::int64_t bytes = -1;  // its size; -1: not known
  int gpu = -1;             // the index of the device whose memory it is; -1: not known
};

// The images that a tensor holds: contiguous, in memory that a device reaches. They know its size
// and its device. The tensor must outlive their use. Throws error(invalid_argument) for any other
// tensor.
device_images device_images_in(const tensor& images, pixel_layout layout);

// Each at least 1. Their product may exceed 2^31.
struct image_extents {
  std::int64_t images = 1;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 3;
};

// Copies images from `from`, which is only read, to the layout and the element type of `to`. Values
// stay what they are: 255 of u8 becomes 255.0. They are rounded to the nearest that the new type
// has, ties to even. For u8 they are bounded to 0..255, and NaN becomes 0. For f16, values of 65520
// and more become infinity. Elements of equal types are copied bit for bit.
//
// The memory of `from` and `to` must not overlap. Stream order, lifetimes and threads are those of
// write_images. Throws error(invalid_argument) naming what is null, not aligned, less than 1, too
// large to address, larger than the memory is known to be, or known to be another GPU's than that
// of `on`; and error(unsupported) for other element types.
void change_layout(const device_images& from, const device_images& to, const image_extents& of,
                   CUstream_st* on);

// The same on a stream of any device.
void change_layout(const device_images& from, const device_images& to, const image_extents& of,
                   const stream& on);

}  // namespace lade::cuda
