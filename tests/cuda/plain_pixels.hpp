// What kernels make of images, in double precision and without a thought for speed.

#pragma once

#include <lade/cuda/image_batch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace lade::cuda {

// A part of an axis: `length` samples from `begin`; those in [low, high) contribute.
struct plain_axis {
  double begin = 0;
  double length = 0;
  int low = 0;
  int high = 0;
};

inline plain_axis plain_axis_of(double begin, double length, bool isolated, int size) {
  if (length == 0) return {0, double(size), 0, size};
  if (!isolated) return {begin, length, 0, size};
  return {begin, length, int(std::floor(begin)), int(std::ceil(begin + length))};
}

// Sample i of `count`: the mean of all samples, weighted by a triangle around its centre that is as
// wide as two output samples, or as two source samples if that is more.
template <class F>
double plain_triangle(const plain_axis& axis, int i, int count, F sample) {
  const double scale = axis.length / count;
  const double half_width = std::max(scale, 1.0);
  const double centre = axis.begin + (i + 0.5) * scale;
  double sum = 0;
  double weights = 0;
  for (int s = axis.low; s < axis.high; ++s) {
    const double weight = std::max(0.0, 1 - std::abs(s + 0.5 - centre) / half_width);
    if (weight > 0) sum += weight * sample(s);
    weights += weight;
  }
  return sum / weights;
}

inline double plain_byte(double value) { return std::nearbyint(std::clamp(value, 0.0, 255.0)); }

inline float plain_half(std::uint16_t code) {
  const int exponent = (code >> 10) & 31;
  const double fraction = (code & 1023) / 1024.0;
  const double size = exponent == 0    ? std::ldexp(fraction, -14)
                      : exponent == 31 ? (code & 1023 ? NAN : INFINITY)
                                       : std::ldexp(1 + fraction, exponent - 15);
  return static_cast<float>(code & 0x8000 ? -size : size);
}

// Element `index` of memory of a type.
inline double plain_element(const std::vector<unsigned char>& memory, element_type type,
                            std::size_t index) {
  if (type == element_type::u8) return memory[index];
  if (type == element_type::f32) {
    float value;
    std::memcpy(&value, memory.data() + 4 * index, 4);
    return value;
  }
  std::uint16_t code;
  std::memcpy(&code, memory.data() + 2 * index, 2);
  if (type == element_type::f16) return plain_half(code);
  const std::uint32_t bits = std::uint32_t{code} << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

// The distance between a value and its element is at most this: half of the distance between
// neighbours of the type, and what is lost in computing it.
inline double plain_rounding(element_type type, double value) {
  const double size = std::abs(value);
  const double computing = 0x1p-20 * std::max(size, 1.0);
  switch (type) {
    case element_type::f16: return std::max(size * 0x1p-11, 0x1p-25) + computing;
    case element_type::bf16: return size * 0x1p-8 + computing;
    default: return computing;
  }
}

// What an 8-bit value of a channel becomes.
inline double plain_normalised(const image_batch& to, int channel, double byte) {
  if (to.type == element_type::u8) return byte;
  return (byte / 255 - to.mean[std::size_t(channel)]) / to.stddev[std::size_t(channel)];
}

// The position of a channel of a pixel of image i.
inline std::size_t plain_index(const image_batch& of, std::size_t i, int x, int y, int c) {
  const auto width = std::size_t(of.width);
  const auto channels = std::size_t(of.channels);
  const auto plane = width * std::size_t(of.height);
  const auto pixel = std::size_t(y) * width + std::size_t(x);
  return i * plane * channels + (of.layout == pixel_layout::chw
                                     ? std::size_t(c) * plane + pixel
                                     : pixel * channels + std::size_t(c));
}

}  // namespace lade::cuda
