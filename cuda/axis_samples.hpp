// The source samples and weights of an antialiased resize along one axis.

#pragma once

#include "grid_code.hpp"

#include <cmath>
#include <cstdint>

#include "grid_mark.hpp"

namespace lade::cuda {

// The part of an axis to resize: `length` samples from `begin`, both possibly fractional. Only
// samples in [low, high) contribute.
struct axis_part {
  double begin = 0;
  double length = 0;
  std::int32_t low = 0;
  std::int32_t high = 0;
};

// Converts a part to a coarser axis of `size` samples, one per 2^shift samples of this axis. Its
// first sample is `offset` samples of this axis before the centre of the first 2^shift.
LADE_GRID_CODE axis_part coarser_part(const axis_part& part, int shift, double offset, int size) {
  const int step = 1 << shift;
  const int low = smaller(part.low >> shift, size - 1);
  const int high = bounded((part.high + step - 1) >> shift, low + 1, size);
  return {(part.begin + offset) / step, part.length / step, low, high};
}

// The source samples of one output sample: `taps` samples from `start`.
struct sample_taps {
  std::int32_t start;
  std::int32_t taps;
};

// The triangle filter of Pillow's BILINEAR (libImaging/Resample.c, precompute_coeffs): as wide as
// two output samples when shrinking, and as two source samples when growing. It uses double
// precision with the same operations on the CPU and on devices, so the results are equal.
struct axis_filter {
  static constexpr int weight_bits = 14;  // weights are multiples of 2^-14 and add up to 1

  axis_part part;
  double scale = 1;
  double support = 1;  // half the width of the triangle, in source samples
  std::int32_t count = 0;
  bool mirrored = false;
};

LADE_GRID_CODE axis_filter filter_of(const axis_part& part, int count, bool mirrored) {
  const double scale = part.length / count;
  return {part, scale, larger(1.0, scale), count, mirrored};
}

LADE_GRID_CODE double centre_of(const axis_filter& by, int i) {
  const int index = by.mirrored ? by.count - 1 - i : i;
  return by.part.begin + product(index + 0.5, by.scale);
}

LADE_GRID_CODE sample_taps taps_of(const axis_filter& by, int i) {
  const double centre = centre_of(by, i);
  const int begin =
      bounded(static_cast<int>(centre - by.support + 0.5), by.part.low, by.part.high - 1);
  const int end =
      bounded(static_cast<int>(centre + by.support + 0.5), begin + 1, int{by.part.high});
  return {begin, end - begin};
}

LADE_GRID_CODE double triangle_at(int sample, double centre, double support) {
  return larger(0.0, 1 - fabs(sample + 0.5 - centre) / support);
}

// Writes the weights of output sample i. Rounding the running sum instead of each weight keeps the
// sum exact. Returns the number of samples up to the last one that the triangle covers. Outputs
// before i cover no later sample.
LADE_GRID_CODE int write_weights(const axis_filter& by, int i, const sample_taps& samples,
                                 std::int16_t* weights) {
  const double centre = centre_of(by, i);
  double total = 0;
  for (int k = 0; k < samples.taps; ++k)
    total += triangle_at(samples.start + k, centre, by.support);
  const bool covers_none = total == 0;  // then the first sample has the whole weight
  const double unit = (1 << axis_filter::weight_bits) / (covers_none ? 1 : total);
  double running = 0;
  int before = 0;
  int used = 0;
  for (int k = 0; k < samples.taps; ++k) {
    const double weight = covers_none ? k == 0 : triangle_at(samples.start + k, centre, by.support);
    running += weight;
    const int sum = static_cast<int>(product(running, unit) + 0.5);
    weights[k] = static_cast<std::int16_t>(sum - before);
    before = sum;
    if (weight > 0) used = k + 1;
  }
  return used;
}

// The most samples of one output, and of `outputs` neighbouring outputs together.
LADE_GRID_CODE int most_taps(const axis_filter& by) { return static_cast<int>(2 * by.support) + 2; }
LADE_GRID_CODE int most_samples(const axis_filter& by, int outputs) {
  return static_cast<int>((outputs - 1) * by.scale + 2 * by.support) + 3;
}

}  // namespace lade::cuda

#undef LADE_GRID_CODE
