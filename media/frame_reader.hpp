// Images that are decoded as a whole, before their rows are asked for.

#pragma once

#include "image_reader.hpp"
#include "row_ring.hpp"
#include "scratch.hpp"

#include <cstddef>
#include <cstdint>

namespace lade::media {

// A reader derived from it decodes in `open`: into the memory of `make_frame`, or into memory of a
// decoder, which it names by `show_frame`.
class frame_reader : public image_reader {
 public:
  void start_rows(int channels, const axis_range& columns, const axis_range& rows, int kept) final;
  const std::uint8_t* row(int y) final;
  void close() noexcept override { memory_.end_image(); }

 protected:
  // Returns room for all pixels of the shape that was set: 1 channel for a grey image, else 3.
  // Rows follow each other without gaps. Contents are undefined.
  std::uint8_t* make_frame();

  // Names memory that stays valid until `close`. Row y begins at first + y * stride.
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
  int left_ = 0;   // bytes before the first wanted
  row_ring ring_;  // rows of luma, if an image in colour is read as grey
};

}  // namespace lade::media
