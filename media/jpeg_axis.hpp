// How the components of a JPEG lie against the first.

#pragma once

#include "resize_axis.hpp"

#include <cmath>

namespace lade::media {

// One axis of a component of `size` samples, each of which stands for `pixels` pixels of the image
// and lies on `step` samples of the first. Where a component is stored half as fine, the exact way
// smooths it when it doubles it: weights 1, 3, 3, 1, whose variance of 3/4 pixels is that of a
// triangle of half width sqrt(6 * 3/4) pixels. So do we.
inline coarse_axis jpeg_axis(int size, double step, double pixels, bool half_as_fine) noexcept {
  return {.size = size, .step = step, .blur = half_as_fine ? std::sqrt(4.5) / pixels : 0};
}

}  // namespace lade::media
