// Writes interleaved 8-bit images in device memory to a batch: cropped, mirrored, resized and
// normalised by one kernel. Not yet run on a GPU.

#pragma once

#include <lade/cuda/image_batch.hpp>

#include <cstdint>
#include <span>
#include <vector>

struct CUstream_st;  // of <cuda_runtime.h>: a cudaStream_t is a pointer to it

namespace lade::cuda {

class stream;

// An image in device memory: u8 [height, width, channels].
struct image_source {
  const void* data = nullptr;
  int width = 0;  // in pixels: 1 to 32768
  int height = 0;
  int channels = 3;        // 1 or 3: red, green, blue
  std::int64_t pitch = 0;  // bytes from one row to the next; 0: width * channels
  crop_box crop{};
  bool flip = false;  // left to right
  int gpu = -1;       // index of the device of the memory; -1: unknown
};

// Returns all images of a tensor in memory that a device can access: contiguous u8 [images, height,
// width, channels]. The tensor must outlive their use. Throws error(invalid_argument) for any other
// tensor.
std::vector<image_source> images_in(const tensor& images);

// Writes image i to position i of `to`, which must have capacity for all images. The crop is
// resized to the size of `to`, then mirrored if `flip` is set. Images may differ in all members.
// Grey becomes three equal channels if `to` has three.
//
// - The filter is a triangle, antialiased: Pillow's BILINEAR, whose support grows with the ratio
//   of the sizes (libImaging/Resample.c). The 8-bit result differs from exact arithmetic by at
//   most 1. It equals that of lade::media::resize, or differs by one where a compiler contracts
//   floating-point operations. Floats are computed from the 8-bit result.
// - If the crop has whole pixels and the size of the result, pixels are only converted. This is
//   fastest for images without a crop or flip whose pitch is width * channels. Then the address
//   of the result must be a multiple of 16, and width * height a multiple of 4 for f32, 8 for f16
//   and bf16, or 16 for u8. For other images, the width alone must be such a multiple.
//
// Stream order: the kernels run after the work that was queued on `on` before. The function returns
// when they are queued. The descriptions are copied. The memory of the images and of `to` must live
// until the stream has passed the kernels, and must not overlap.
//
// Stream: `on` belongs to the current device of the calling thread. Null is the legacy default
// stream, or the calling thread's if the program compiles the file of the kernels with nvcc's
// --default-stream per-thread. May be captured into a CUDA graph. Any thread.
//
// Throws error(invalid_argument) naming the invalid argument:
// - no images, or more images than the known capacity of `to`
// - memory that is known to be on another GPU than `on`; null data
// - a size or number of channels out of range, a pitch less than a row, a crop that exceeds its
//   image
//
// Throws error(unsupported) for other element types, and for images that shrink by more than 100
// along an axis. In all these cases nothing is queued. Throws an error of CUDA if a kernel cannot
// be launched.
void write_images(std::span<const image_source> images, const image_batch& to, CUstream_st* on);

// The same on a stream of any device.
void write_images(std::span<const image_source> images, const image_batch& to, const stream& on);

}  // namespace lade::cuda
