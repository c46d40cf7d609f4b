// What becomes of a picture, in double precision and without a thought for speed.

#pragma once

#include "raw_pictures.hpp"

#include <lade/tensor.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace lade::media {

// One output sample of an antialiased triangle: the sum over all samples that it covers.
template <class F>
double triangle_sum(const axis_range& part, int index, int count, F sample) {
  const double scale = part.length / count;
  const double support = std::max(1.0, scale);
  const double centre = part.begin + (index + 0.5) * scale;
  double sum = 0;
  double total = 0;
  for (int i = part.low; i < part.high; ++i) {
    const double weight = 1 - std::abs(i + 0.5 - centre) / support;
    if (weight <= 0) continue;
    sum += weight * sample(i);
    total += weight;
  }
  if (total > 0) return sum / total;
  return sample(std::clamp(static_cast<int>(centre), part.low, part.high - 1));
}

// The part of a plane of chroma that lies under a part of the luma.
inline axis_range naive_chroma(const axis_range& luma, int size, int shift, chroma_site site) {
  const double step = 1 << shift;
  const double before_middle = site == chroma_site::middle ? 0 : (step - 1) / 2;
  const double moved = luma.begin + (site == chroma_site::last ? -before_middle : before_middle);
  return {moved / step, luma.length / step, 0, chroma_size(size, shift)};
}

// Y, Cb and Cr (or only Y) of an output pixel, in 0..1 and -0.5..0.5.
inline std::array<double, 3> naive_yuv(const raw_picture& raw, const picture_view& view, int x,
                                       int width, int y, int height, std::size_t planes) {
  const auto& from = raw.get();
  const double step = 1 << (from.bits - 8);
  const double most = (1 << from.bits) - 1;
  std::array<double, 3> yuv{};
  for (std::size_t p = 0; p < planes; ++p) {
    const auto columns =
        p == 0 ? view.x : naive_chroma(view.x, from.width, from.chroma_shift_x, from.siting.x);
    const auto rows =
        p == 0 ? view.y : naive_chroma(view.y, from.height, from.chroma_shift_y, from.siting.y);
    const double code = triangle_sum(rows, y, height, [&](int row) {
      return triangle_sum(columns, x, width, [&](int column) {
        return double(raw.sample(column, row, static_cast<int>(p)));
      });
    });
    const double black = step * (p > 0 ? 128 : from.full_range ? 0 : 16);
    yuv[p] = (code - black) / (from.full_range ? most : step * (p > 0 ? 224 : 219));
  }
  return yuv;
}

inline std::uint8_t naive_byte(double value) {
  return static_cast<std::uint8_t>(std::lrint(255 * std::clamp(value, 0.0, 1.0)));
}

inline tensor naive_rgb(const raw_picture& from, const picture_view& view, int width, int height) {
  tensor out(element_type::u8, {height, width, 3});
  auto* pixel = out.data<std::uint8_t>();
  static constexpr double red[]{0.299, 0.2126, 0.2627};
  static constexpr double blue[]{0.114, 0.0722, 0.0593};
  const double kr = red[static_cast<std::size_t>(from.get().matrix)];
  const double kb = blue[static_cast<std::size_t>(from.get().matrix)];
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x, pixel += 3) {
      const auto yuv = naive_yuv(from, view, x, width, y, height, 3);
      const double r = yuv[0] + 2 * (1 - kr) * yuv[2];
      const double b = yuv[0] + 2 * (1 - kb) * yuv[1];
      pixel[0] = naive_byte(r);
      pixel[1] = naive_byte((yuv[0] - kr * r - kb * b) / (1 - kr - kb));
      pixel[2] = naive_byte(b);
    }
  return out;
}

inline tensor naive_grey(const raw_picture& from, const picture_view& view, int width, int height) {
  tensor out(element_type::u8, {height, width, 1});
  auto* pixel = out.data<std::uint8_t>();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      *pixel++ = naive_byte(naive_yuv(from, view, x, width, y, height, 1)[0]);
  return out;
}

}  // namespace lade::media
