// Conversions of pixels to 8-bit grey or RGB.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lade::media {

// Luma of Rec. ITU-R BT.601 in fixed point, rounded as in Pillow (libImaging/Convert.c, L24).
inline std::uint8_t luma_of(int red, int green, int blue) {
  return static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

// An unsigned sample of 1 to 16 bits as 8 bits. Fewer than 8 bits are scaled to 0..255; of more,
// the upper 8 are kept.
inline std::uint8_t byte_of(unsigned value, int bits) {
  return static_cast<std::uint8_t>(bits >= 8 ? value >> (bits - 8)
                                             : value * 255 / ((1U << bits) - 1));
}

// RGB from CMYK without a colour profile, as in Pillow. 255 is no ink, as in files of Adobe.
inline std::array<std::uint8_t, 3> rgb_of_inverted_inks(const std::uint8_t* cmyk) {
  std::array<std::uint8_t, 3> rgb;
  for (std::size_t c = 0; c < 3; ++c) {
    const int product = (255 - cmyk[c]) * cmyk[3] + 128;
    rgb[c] = static_cast<std::uint8_t>(cmyk[3] - (((product >> 8) + product) >> 8));
  }
  return rgb;
}

// A palette. Colours that are not set are grey.
class palette {
 public:
  using colour = std::array<std::uint8_t, 3>;

  palette() {
    for (std::size_t i = 0; i < 256; ++i) colours_[i].fill(static_cast<std::uint8_t>(i));
  }
  colour& operator[](std::size_t i) { return colours_[i]; }

  void look_up(const std::uint8_t* indices, std::size_t count, std::uint8_t* rgb) const {
    for (std::size_t i = 0; i < count; ++i, rgb += 3)
      for (std::size_t c = 0; c < 3; ++c) rgb[c] = colours_[indices[i]][c];
  }

 private:
  std::array<colour, 256> colours_;
};

}  // namespace lade::media
