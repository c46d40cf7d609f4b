// Checks the arguments of functions that launch kernels, and describes a batch to a kernel.

#pragma once

#include "axis_samples.hpp"
#include "element_codes.hpp"

#include <lade/cuda/image_batch.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lade::cuda {

// The operation and the checked item of its arguments, for errors.
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
// `subject`: the name of the argument that has it.
element_code code_of(element_type type, const checked_item& item, std::string_view subject);

// Throws unless a pointer is not null and a multiple of `alignment` bytes.
void check_memory(const void* data, std::size_t alignment, const checked_item& item,
                  std::string_view name);

// Throws unless the tensor is contiguous, in memory that a device can access.
void check_tensor(const tensor& images, const checked_item& item);

// The index of the device that has the memory; -1 for managed and pinned memory.
int gpu_of(const tensor& images) noexcept;

// Throws unless both are 1 to 32768.
void check_size(int width, int height, const checked_item& item);

// Throws unless a row of `row_bytes` fits into the pitch.
void check_pitch(std::int64_t pitch, std::int64_t row_bytes, const checked_item& item,
                 std::string_view name);

// Throws unless `to` describes a possible result of a kernel.
void check_batch(const image_batch& to, const checked_item& item);

// Throws if this many images do not fit into `to`, or `to` is memory of another device, as far as
// that is known.
void check_room(const image_batch& to, std::size_t images, const checked_item& item);

// Throws unless the memory is of the current device, or of an unknown one (-1).
void check_gpu(int gpu, const checked_item& item, std::string_view name);

// The factors of the result's elements.
channel_scaling scaling_of(const image_batch& to) noexcept;

// The part of both axes that a crop selects. Throws unless it is inside of the image and the shared
// memory of a block suffices for the reduction.
struct cropped_axes {
  axis_part x;
  axis_part y;

  // Whether the crop is not resized: each pixel of the result is a pixel of the image.
  bool keeps_size(const image_batch& to) const noexcept;
};
cropped_axes axes_of(const crop_box& crop, int width, int height, const image_batch& to,
                     const checked_item& item);

// Throws an error of CUDA if a launch has failed.
void check_launch(int result, const checked_item& item);

}  // namespace lade::cuda
