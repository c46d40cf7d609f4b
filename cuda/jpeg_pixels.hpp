// Sizes of decoded images, and images that the CPU has decoded.

#pragma once

#include <lade/cuda/jpeg_decoder.hpp>
#include <lade/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace lade::cuda {

// The part in whole numbers: of an image of that size. Throws error(invalid_argument) if it is not
// inside.
jpeg_region part_within(const jpeg_region& part, std::int64_t width, std::int64_t height);

// u8 [height, width, 3], or [3, height, width].
tensor_spec spec_of(std::int64_t width, std::int64_t height, bool planar);

// The part of an image u8 [height, width, 3] in host memory, contiguous. Throws
// error(invalid_argument) for any other tensor.
tensor arranged(const tensor& image, const jpeg_region& part, bool planar);

// What errors call a file: its name, or "image 3 of a batch".
std::string jpeg_name(const jpeg_source& file, std::size_t index);

// Whether it fails the batch, not an image: no memory, or a device that is lost.
bool is_of_batch(const std::exception& failure) noexcept;

// "decode <name>: ...", with the code of the failure, or errc::failed if it has none.
std::exception_ptr named_failure(const std::exception& failure, std::string_view name);

}  // namespace lade::cuda
