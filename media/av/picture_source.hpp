// Pictures for an encoder, from frames and tensors.

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

// Where a picture's dimensions are in the shape of a tensor.
struct picture_axes {
  std::size_t rows;
  std::size_t columns;
  std::size_t channels;
};
picture_axes axes_of(image_layout layout) noexcept;

// The pixel format of a tensor's channels: grey, RGB or RGBA; RGB for other numbers of them.
AVPixelFormat format_of_tensor(const tensor& picture, image_layout layout) noexcept;

// Makes pictures of one size and format. Their memory is used again once nobody else refers to it,
// and counts to the calling stage's budget. One thread at a time.
class picture_source {
 public:
  picture_source(int width, int height, const picture_format& to) noexcept
      : width_(width), height_(height), to_(to), converter_(width, height, to) {}

  const picture_format& format() const noexcept { return to_; }

  // The picture of a frame, which is shared if it has the format. Throws error(invalid_argument)
  // for audio and another size; `doing` is the text of errors.
  av_frame from_frame(const frame& from, std::string_view doing);

  // The picture of u8 [height, width, channels], or [channels, height, width]: grey, RGB or RGBA.
  // Throws error(invalid_argument) for another tensor.
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
