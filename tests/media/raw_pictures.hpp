// Pictures of random samples, for tests of what becomes of them.

#pragma once

#include "../../media/picture_planes.hpp"

#include <lade/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace lade::media {

// A picture like another one, with samples of its own: planes one after another, rows without gaps,
// as FFmpeg's rawvideo has them. The samples are noise of all values or smooth gradients.
class raw_picture {
 public:
  raw_picture(const picture& like, random& draw, bool smooth) : picture_(like) {
    const auto layout = planes_of(like.layout);
    std::vector<std::size_t> begins;
    for (std::size_t p = 0; p < layout.count; ++p) {
      begins.push_back(bytes_.size());
      append_plane(layout, p, draw, smooth);
    }
    for (std::size_t p = 0; p < layout.count; ++p)
      picture_.planes[p].data = bytes_.data() + begins[p];
  }
  raw_picture(const raw_picture&) = delete;
  raw_picture& operator=(const raw_picture&) = delete;

  const picture& get() const noexcept { return picture_; }
  const std::vector<std::uint8_t>& bytes() const noexcept { return bytes_; }

 private:
  void append_plane(const layout_planes& layout, std::size_t p, random& draw, bool smooth) {
    const bool chroma = p > 0 && layout.chroma;
    const int width =
        chroma ? chroma_size(picture_.width, picture_.chroma_shift_x) : picture_.width;
    const int height =
        chroma ? chroma_size(picture_.height, picture_.chroma_shift_y) : picture_.height;
    const int channels = layout.planes[p].channels;
    const double phase = draw.uniform(0, 6);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        for (int c = 0; c < channels; ++c) {
          const double wave = 0.5 + 0.25 * std::sin(phase + c + 5.0 * x / width) +
                              0.25 * std::cos(7.0 * y / height);
          append(smooth ? wave : draw.uniform(0, 1));
        }
    picture_.planes[p].stride =
        static_cast<std::ptrdiff_t>(width) * channels * (picture_.bits > 8 ? 2 : 1);
  }

  // Limited range is kept to: beyond it, swscale's integers overflow where RGB is far outside of
  // its own range.
  void append(double value) {
    const double step = 1 << (picture_.bits - 8);
    const double low = picture_.full_range ? 0 : 16 * step;
    const double high = picture_.full_range ? 256 * step - 1 : 235 * step;
    const int sample = static_cast<int>(low + value * (high - low) + 0.5) << picture_.shift;
    bytes_.push_back(static_cast<std::uint8_t>(sample));
    if (picture_.bits > 8) bytes_.push_back(static_cast<std::uint8_t>(sample >> 8));
  }

  picture picture_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace lade::media
