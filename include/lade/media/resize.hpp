// Resizing and converting images in one pass: 8-bit pixels in, tensors as trainers want them out.

#pragma once

#include <lade/tensor.hpp>

#include <array>
#include <cstdint>

namespace lade::media {

// Whether the channels of a pixel lie side by side, or each channel is a plane of its own.
enum class image_layout : std::uint8_t { hwc, chw };

// Part of an image, in pixels, possibly fractional.
struct image_box {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;

  friend bool operator==(const image_box&, const image_box&) = default;
};

// Mean and standard deviation of ImageNet's training images in 0..1, red, green, blue.
inline constexpr std::array<float, 3> imagenet_mean{0.485F, 0.456F, 0.406F};
inline constexpr std::array<float, 3> imagenet_stddev{0.229F, 0.224F, 0.225F};

struct resize_options {
  image_box from{};   // what to resize; a box of no width is the whole image
  bool flip = false;  // left to right
  image_layout layout = image_layout::hwc;
  std::array<float, 3> mean{0, 0, 0};    // floats are (x / 255 - mean) / stddev; all are finite,
  std::array<float, 3> stddev{1, 1, 1};  // and stddev is not 0
};

// Resizes `image` (u8 [height, width, channels]; 1 or 3 channels; rows may be strided) to the size
// of `out`: contiguous u8, f16, bf16 or f32, [height, width, channels] or, for chw, [channels,
// height, width]. Grey becomes three equal channels where `out` has three.
//
// The filter is a triangle, antialiased: Pillow's BILINEAR, from which the 8-bit result differs by
// at most one. Floats are made from the 8-bit result. The result is the same on every machine.
// Throws error(invalid_argument) naming what does not fit.
void resize(const tensor& image, const tensor& out, const resize_options& options = {});

}  // namespace lade::media
