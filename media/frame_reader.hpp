// The base of readers that decode the whole image before its rows are requested.

#pragma once

#include "image_reader.hpp"
#include "row_ring.hpp"
#include "scratch.hpp"

#include <cstddef>
#include <cstdint>

namespace lade::media {

// A derived reader decodes in `open`: into the memory of `make_frame`, or into its decoder's
// memory, which it passes to `show_frame`.
class frame_reader : public image_reader {
 public:
  void start_rows(int channels, const axis_range& columns, const axis_range& rows, int kept) final;
  const std::uint8_t* row(int y) final;
  void close() noexcept override { memory_.end_image(); }

 protected:
  // Allocates memory for all pixels of the shape that was set: 1 channel for a grey image, else 3.
  // Rows are contiguous. Contents are undefined.
  std::uint8_t* make_frame();

  // Sets the memory of the frame, which must stay valid until `close`. Row y is at first + y *
  // stride.
  void show_frame(const std::uint8_t* first, std::ptrdiff_t stride) noexcept;

  int frame_channels() const noexcept { return is_grey() ? 1 : 3; }
  std::size_t frame_stride() const noexcept {
    return static_cast<std::size_t>(width()) * static_cast<std::size_t>(frame_channels());
  }

 private:
  scratch memory_;
  const std::uint8_t* first_ = nullptr;
  std::ptrdiff_t stride_ = 0;
  bool to_grey_ = false;
  int left_ = 0;   // bytes before the first requested column
  row_ring ring_;  // rows of luma, if a colour image is read as grey
};

}  // namespace lade::media
