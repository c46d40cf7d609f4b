// What the functions that launch kernels check, and how they describe a batch to a kernel.

#pragma once

#include "axis_samples.hpp"
#include "element_codes.hpp"

#include <lade/cuda/image_batch.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lade::cuda {

// The operation, as errors name it, and the item of its arguments that is looked at.
struct checked_item {
  std::string_view doing;   // "write images"
  std::string_view kind{};  // "image"
  std::size_t index = 0;

  // Throw error(invalid_argument) and error(unsupported): "write images: image 3: pitch is ...".
  [[noreturn]] void refuse(std::string_view reason) const;
  [[noreturn]] void refuse_kind(std::string_view reason) const;

  std::string text(std::string_view reason) const;
};

// The code of an element type for kernels. Throws error(unsupported) if no kernel has the type;
// `name`: of the argument that has it.
element_code code_of(element_type type, const checked_item& item, std::string_view name);

// Throws unless a pointer is not null and a multiple of `alignment` bytes.
void check_memory(const void* data, std::size_t alignment, const checked_item& item,
                  std::string_view name);

// Throws unless it is contiguous, in memory that a device reaches.
void check_tensor(const tensor& images, const checked_item& item);

// The index of the device whose memory it is; -1 for managed and pinned memory, which is that of no
// device.
int gpu_of(const tensor& images) noexcept;

// Throws unless both are 1 to 32768.
void check_size(int width, int height, const checked_item& item);

// Throws unless rows of so many bytes fit into the pitch.
void check_pitch(std::int64_t pitch, std::int64_t row_bytes, const checked_item& item,
                 std::string_view name);

// Throws unless `to` describes a possible result of a kernel.
void check_batch(const image_batch& to, const checked_item& item);

// Throws if it is known that so many images have no room in `to`, or that `to` is not memory of the
// current device.
void check_room(const image_batch& to, std::size_t images, const checked_item& item);

// Throws unless the memory is the current device's, or it is not known (-1) whose it is.
void check_gpu(int gpu, const checked_item& item, std::string_view name);

// The factors of the result's elements.
channel_scaling scaling_of(const image_batch& to) noexcept;

// The parts of both axes that a crop has. Throws unless it lies inside of the image, and shrinks to
// the result by no more than the shared memory of a block is enough for.
struct cropped_axes {
  axis_part x;
  axis_part y;

  // Whether each pixel of the result is one of the image.
  bool keeps_size(const image_batch& to) const noexcept;
};
cropped_axes axes_of(const crop_box& crop, int width, int height, const image_batch& to,
                     const checked_item& item);

// Throws an error of CUDA for a launch that failed.
void check_launch(int result, const checked_item& item);

}  // namespace lade::cuda
