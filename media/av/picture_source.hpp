// Converts frames and tensors to pictures for an encoder.

#pragma once

#include "picture_converter.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/media/av/frame.hpp>
#include <lade/media/resize.hpp>
#include <lade/tensor.hpp>

#include <cstddef>
#include <list>
#include <string_view>
#include <vector>

namespace lade::media {

// The indices of a picture's dimensions in the shape of a tensor.
struct picture_axes {
  std::size_t rows;
  std::size_t columns;
  std::size_t channels;
};
picture_axes axes_of(image_layout layout) noexcept;

// The pixel format of a tensor: grey, RGB or RGBA by its channels; RGB for other numbers of
// channels.
AVPixelFormat format_of_tensor(const tensor& picture, image_layout layout) noexcept;

// Makes pictures of one size and format. A picture's memory is reused when nothing else refers to
// it, and charged to the calling stage. One thread at a time.
class picture_source {
 public:
  picture_source(int width, int height, const picture_format& to) noexcept
      : width_(width), height_(height), to_(to), converter_(width, height, to) {}

  const picture_format& format() const noexcept { return to_; }

  // The picture of a frame. Shares its memory if the frame already has the format. Throws
  // error(invalid_argument) for audio and for another size, with `doing` as the operation.
  av_frame from_frame(const frame& from, std::string_view doing);

  // The picture of a u8 tensor [height, width, channels] or [channels, height, width]: grey, RGB or
  // RGBA. Throws error(invalid_argument) for another tensor.
  av_frame from_tensor(const tensor& picture, image_layout layout, std::string_view doing);

 private:
  av_frame converted(const picture_rows& rows, const picture_format& from);
  AVFrame& unused_picture();

  int width_;
  int height_;
  picture_format to_;
  picture_converter converter_;
  std::vector<av_frame> pictures_;
  std::list<memory_charge> charges_;
};

}  // namespace lade::media
