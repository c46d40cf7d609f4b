// Conversion of images in device memory to other layouts and element types. Not yet run on a GPU.

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

  // Optional limits: work that exceeds `bytes`, or is on another GPU than `gpu`, is refused.
  std::int64_t bytes = -1;  // size; -1: unknown
  int gpu = -1;             // index of its device; -1: unknown
};

// Returns the images of a contiguous tensor in memory that a device can access, with its size and
// device. The tensor must outlive their use. Throws error(invalid_argument) for any other tensor.
device_images device_images_in(const tensor& images, pixel_layout layout);

// The sizes of images. Each must be at least 1. Their product may exceed 2^31.
struct image_extents {
  std::int64_t images = 1;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 3;
};

// Copies images from `from`, which is not modified, to the layout and the element type of `to`.
// Values are preserved: 255 of u8 becomes 255.0. They are rounded to the nearest value of the new
// type, ties to even. For u8 they are clamped to 0..255, and NaN becomes 0. For f16, values of
// 65520 and more become infinity. Elements of equal types are copied bit for bit.
//
// The memory of `from` and `to` must not overlap. Stream order, lifetimes and threads are those of
// write_images. Throws error(invalid_argument) naming an argument that is null, not aligned, less
// than 1 or too large to address. Throws it also for memory that is known to be too small, or on
// another GPU than `on`. Throws error(unsupported) for other element types.
void change_layout(const device_images& from, const device_images& to, const image_extents& of,
                   CUstream_st* on);

// The same on a stream of any device.
void change_layout(const device_images& from, const device_images& to, const image_extents& of,
                   const stream& on);

}  // namespace lade::cuda
