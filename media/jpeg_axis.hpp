// The sampling grids of JPEG components, relative to the first component.

#pragma once

#include "resize_axis.hpp"

#include <cmath>

namespace lade::media {

// The grid of a component of `size` samples. One sample spans `pixels` pixels of the image and
// `step` samples of the first component.
// libjpeg's smooth upsampling of a component with half the resolution applies the weights 1, 3, 3,
// 1. Their variance is 3/4 square pixels. A triangle of half width h has the variance h^2 / 6, so
// the equivalent blur is sqrt(6 * 3/4) pixels.
inline coarse_axis jpeg_axis(int size, double step, double pixels, bool half_as_fine) noexcept {
  return {.size = size, .step = step, .blur = half_as_fine ? std::sqrt(4.5) / pixels : 0};
}

}  // namespace lade::media
