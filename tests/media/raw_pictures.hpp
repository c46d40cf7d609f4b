// Pictures of random samples, for tests of what becomes of them.

#pragma once

#include "../../media/picture_planes.hpp"

#include <lade/random.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace lade::media {

// A picture that owns its samples: planes one after another, rows without gaps, as FFmpeg's
// rawvideo has them.
class raw_picture {
 public:
  // Like another one, of noise or of smooth gradients. Limited range is kept to: beyond it,
  // swscale's integers overflow where RGB is far outside of its own range.
  raw_picture(const picture& like, random& draw, bool smooth) : picture_(like) {
    const double phase = draw.uniform(0, 6);
    append_planes([&](int x, int y, int channel) {
      const double wave =
          0.5 + 0.25 * std::sin(phase + channel + x / 11.0) + 0.25 * std::cos(y / 7.0);
      return code_of(smooth ? wave : draw.uniform(0, 1));
    });
  }

  // Like another one, of one colour.
  raw_picture(const picture& like, int luma, int chroma) : picture_(like) {
    append_planes([&](int, int, int channel) { return channel == 0 ? luma : chroma; });
  }

  // The samples of another one in another layout, with more bits, and those `shift` bits up. Alpha
  // that the other one lacks is 0.
  raw_picture(const raw_picture& other, plane_layout layout, int bits, int shift)
      : picture_(other.picture_) {
    picture_.layout = layout;
    picture_.bits = bits;
    picture_.shift = shift;
    append_planes([&](int x, int y, int channel) {
      return other.sample(x, y, channel) << (bits - other.picture_.bits);
    });
  }

  raw_picture(const raw_picture&) = delete;
  raw_picture& operator=(const raw_picture&) = delete;

  const picture& get() const noexcept { return picture_; }
  const std::vector<std::uint8_t>& bytes() const noexcept { return bytes_; }

  // Channel 0 to 3 (Y, Cb, Cr or R, G, B, alpha) of the samples at a place of their plane.
  int sample(int x, int y, int channel) const {
    const auto layout = planes_of(picture_.layout);
    for (std::size_t p = 0; p < layout.count; ++p)
      for (int c = 0; c < layout.planes[p].channels; ++c) {
        if (layout.planes[p].are[static_cast<std::size_t>(c)] != channel) continue;
        const int index = x * layout.planes[p].channels + c;
        const auto* row = picture_.planes[p].data + y * picture_.planes[p].stride;
        if (picture_.bits == 8) return row[index];
        std::uint16_t word;
        std::memcpy(&word, row + 2 * index, sizeof word);
        return word >> picture_.shift;
      }
    return 0;
  }

  static int width_of(const picture& of, bool chroma) {
    return chroma ? chroma_size(of.width, of.chroma_shift_x) : of.width;
  }
  static int height_of(const picture& of, bool chroma) {
    return chroma ? chroma_size(of.height, of.chroma_shift_y) : of.height;
  }

 private:
  int code_of(double value) const {
    const double step = 1 << (picture_.bits - 8);
    const double low = picture_.full_range ? 0 : 16 * step;
    const double high = picture_.full_range ? 256 * step - 1 : 235 * step;
    return static_cast<int>(low + value * (high - low) + 0.5);
  }

  template <class F>
  void append_planes(F code) {
    const auto layout = planes_of(picture_.layout);
    std::array<std::size_t, 4> begins{};
    for (std::size_t p = 0; p < layout.count; ++p) {
      begins[p] = bytes_.size();
      append_plane(layout.planes[p], layout.is_chroma(p), code);
      picture_.planes[p].stride = std::ptrdiff_t{width_of(picture_, layout.is_chroma(p))} *
                                  layout.planes[p].channels * sample_bytes(picture_);
    }
    for (std::size_t p = 0; p < layout.count; ++p)
      picture_.planes[p].data = bytes_.data() + begins[p];
  }

  template <class F>
  void append_plane(const layout_planes::plane& plane, bool chroma, F code) {
    for (int y = 0; y < height_of(picture_, chroma); ++y)
      for (int x = 0; x < width_of(picture_, chroma); ++x)
        for (int c = 0; c < plane.channels; ++c)
          append(code(x, y, plane.are[static_cast<std::size_t>(c)]));
  }

  void append(int code) {
    const int word = code << picture_.shift;
    bytes_.push_back(static_cast<std::uint8_t>(word));
    if (picture_.bits > 8) bytes_.push_back(static_cast<std::uint8_t>(word >> 8));
  }

  picture picture_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace lade::media
