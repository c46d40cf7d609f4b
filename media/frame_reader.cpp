#include "frame_reader.hpp"
#include "colours.hpp"

namespace lade::media {

std::uint8_t* frame_reader::make_frame() {
  auto* memory = memory_.reserve(frame_stride() * static_cast<std::size_t>(height()));
  show_frame(memory, static_cast<std::ptrdiff_t>(frame_stride()));
  return memory;
}

void frame_reader::show_frame(const std::uint8_t* first, std::ptrdiff_t stride) noexcept {
  first_ = first;
  stride_ = stride;
}

void frame_reader::start_rows(int channels, const axis_range& columns, const axis_range& rows,
                              int kept) {
  to_grey_ = channels < frame_channels();
  left_ = columns.low * channels;
  if (to_grey_) ring_.reset(rows.low, kept, static_cast<std::size_t>(width()));
}

const std::uint8_t* frame_reader::row(int y) {
  if (!to_grey_) return first_ + y * stride_ + left_;
  const auto to_grey = [this](int next, std::uint8_t* out) {
    const auto* rgb = first_ + next * stride_;
    for (int x = 0; x < width(); ++x, rgb += 3) out[x] = luma_of(rgb[0], rgb[1], rgb[2]);
  };
  return ring_.row(y, to_grey) + left_;
}

}  // namespace lade::media
