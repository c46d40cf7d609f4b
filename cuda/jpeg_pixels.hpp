// Sizes of decoded images, and images decoded by the CPU.

#pragma once

#include <lade/cuda/jpeg_decoder.hpp>
#include <lade/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace lade::cuda {

// Returns the part, or for an empty one the whole image of this size. Throws
// error(invalid_argument) if it is not inside of the image.
jpeg_region part_within(const jpeg_region& part, std::int64_t width, std::int64_t height);

// u8 [height, width, 3], or [3, height, width].
tensor_spec spec_of(std::int64_t width, std::int64_t height, bool planar);

// Returns the part of an image u8 [height, width, 3] in host memory, contiguous. It is a copy
// unless it is the whole image in the same layout. Throws error(invalid_argument) for any other
// tensor.
tensor arranged(const tensor& image, const jpeg_region& part, bool planar);

// The name of a file in errors: its own, or "image 3 of a batch".
std::string jpeg_name(const jpeg_source& file, std::size_t index);

// Whether a failure affects the batch, not only an image: memory exhausted, or the device lost.
bool is_of_batch(const std::exception& failure) noexcept;

// An error "decode <name>: ..." with the failure's code, or errc::failed if it has none.
std::exception_ptr named_failure(const std::exception& failure, std::string_view name);

}  // namespace lade::cuda
