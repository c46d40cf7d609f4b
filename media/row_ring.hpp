// A ring of the last rows that a decoder has produced.

#pragma once

#include <lade/buffer.hpp>

#include <cstddef>
#include <cstdint>

namespace lade::media {

class row_ring {
 public:
  // Allocates `rows` rows of `bytes` bytes. Rows are produced from `first` on.
  void reset(int first, int rows, std::size_t bytes) {
    next_ = first;
    rows_ = static_cast<std::size_t>(rows);
    stride_ = (bytes + buffer::alignment - 1) / buffer::alignment * buffer::alignment;
    if (memory_.size() < rows_ * stride_ + offset) memory_ = buffer(rows_ * stride_ + offset);
  }

  // Returns row y. First calls produce(row, memory) for each row up to it that is not produced yet.
  template <class F>
  const std::uint8_t* row(int y, F produce) {
    for (; next_ <= y; ++next_) produce(next_, slot(next_));
    return slot(y);
  }

 private:
  // Rows are not aligned: libjpeg-turbo writes aligned rows past the caches, and reading them soon
  // after is slow.
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

}  // namespace lade::media
