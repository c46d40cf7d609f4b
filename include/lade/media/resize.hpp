// Resizing and converting images in one pass: from 8-bit pixels to tensors for training.

#pragma once

#include <lade/tensor.hpp>

#include <array>
#include <cstdint>

namespace lade::media {

// Whether the channels of a pixel are contiguous, or each channel is a plane.
enum class image_layout : std::uint8_t { hwc, chw };

// A part of an image, in pixels, possibly fractional.
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
  image_box from{};   // the part to resize; width 0: the whole image
  bool flip = false;  // left to right
  image_layout layout = image_layout::hwc;
  std::array<float, 3> mean{0, 0, 0};    // floats are (x / 255 - mean) / stddev; all are finite,
  std::array<float, 3> stddev{1, 1, 1};  // and stddev is not 0
};

// Resizes `image` to the size of `out`. `image`: u8 [height, width, channels] with 1 or 3 channels;
// rows may be strided. `out`: contiguous u8, f16, bf16 or f32, [height, width, channels] or, for
// chw, [channels, height, width]. Grey becomes three equal channels if `out` has three.
//
// The filter is a triangle, antialiased: Pillow's BILINEAR, from which the 8-bit result differs by
// at most one. Floats are computed from the 8-bit result. The result is the same on every machine.
// Throws error(invalid_argument) naming the argument that does not fit.
void resize(const tensor& image, const tensor& out, const resize_options& options = {});

}  // namespace lade::media
