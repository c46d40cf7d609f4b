// What the decoders share: the last few rows that one produced, and how grey is made.

#pragma once

#include <lade/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace lade::media {

class row_ring {
 public:
  // Room for `rows` rows of `bytes` bytes. Rows are produced from `first` on.
  void reset(int first, int rows, std::size_t bytes) {
    next_ = first;
    rows_ = static_cast<std::size_t>(rows);
    stride_ = (bytes + buffer::alignment - 1) / buffer::alignment * buffer::alignment;
    if (memory_.size() < rows_ * stride_ + offset) memory_ = buffer(rows_ * stride_ + offset);
  }

  // Row y, after produce(row, memory) of every row up to it.
  template <class F>
  const std::uint8_t* row(int y, F produce) {
    for (; next_ <= y; ++next_) produce(next_, slot(next_));
    return slot(y);
  }

 private:
  // To aligned rows libjpeg-turbo writes past the caches, and reading them soon after is slow.
  static constexpr std::size_t offset = 8;

  std::uint8_t* slot(int y) {
    return reinterpret_cast<std::uint8_t*>(memory_.data()) + offset +
           static_cast<std::size_t>(y) % rows_ * stride_;
  }

  int next_ = 0;
  std::size_t rows_ = 1;
  std::size_t stride_ = 0;
  buffer memory_;
};

// ITU-R BT.601 luma in fixed point, as Pillow rounds it.
inline std::uint8_t luma_of(int red, int green, int blue) {
  return static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

// Why an image is refused.
inline std::string too_many_pixels(int width, int height, std::int64_t max_pixels) {
  return std::to_string(width) + " x " + std::to_string(height) +
         " pixels are more than max_pixels = " + std::to_string(max_pixels);
}

}  // namespace lade::media
