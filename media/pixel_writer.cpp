#include "pixel_writer.hpp"

#include <algorithm>
#include <cstring>

namespace lade::media {

// Factors for elements whose channel is that of pixel_target for (first, first + step, ...) % 3.
static normalisation make_normalisation(const pixel_target& target, int first, int step) {
  normalisation result;
  for (int i = 0; i < normalisation::period; ++i) {
    const auto channel = static_cast<std::size_t>((first + i * step) % 3);
    const double stddev = target.stddev[channel];
    result.scale[static_cast<std::size_t>(i)] = static_cast<float>(1 / (255 * stddev));
    result.bias[static_cast<std::size_t>(i)] = static_cast<float>(-target.mean[channel] / stddev);
  }
  return result;
}

void pixel_writer::begin(const pixel_target& target, row_order order) {
  target_ = target;
  order_ = order;
  for (int c = 0; c < 3; ++c)
    by_channel_[static_cast<std::size_t>(c)] = make_normalisation(target, c, 0);
  by_pixel_ = target.channels == 1 ? by_channel_[0] : make_normalisation(target, 0, 1);
  interleaved_.resize(static_cast<std::size_t>(target.width) * 3);
  if (order.transposed)
    turned_ = turned_memory_.reserve(std::size_t(target.width) * std::size_t(target.height) *
                                     std::size_t(target.channels));
}

void pixel_writer::write(int y, const std::uint8_t* const* rows) {
  if (order_.mirrored) y = row_count() - 1 - y;
  if (!order_.transposed) return write_row(y, rows);
  const auto width = static_cast<std::size_t>(row_width());
  for (int c = 0; c < target_.channels; ++c)
    std::copy_n(rows[c], width, turned_ + std::size_t(c * row_count() + y) * width);
}

void pixel_writer::end() {
  if (!order_.transposed) return;
  const auto step = static_cast<std::size_t>(row_width());
  const auto width = static_cast<std::size_t>(target_.width);
  std::vector<std::uint8_t> columns(3 * width);
  const std::array<const std::uint8_t*, 3> rows{columns.data(), columns.data() + width,
                                                columns.data() + 2 * width};
  for (int y = 0; y < target_.height; ++y) {
    const auto* from = turned_ + y;
    for (std::size_t i = 0; i < width * std::size_t(target_.channels); ++i)
      columns[i] = from[i * step];
    write_row(y, rows.data());
  }
  turned_memory_.end_image();
}

void pixel_writer::write_row(int y, const std::uint8_t* const* rows) {
  const auto width = static_cast<std::size_t>(target_.width);
  const auto row = static_cast<std::size_t>(y);
  if (target_.channels == 1) return write_elements(row * width, rows[0], target_.width, by_pixel_);
  if (target_.layout == image_layout::chw) {
    const auto plane = width * static_cast<std::size_t>(target_.height);
    for (std::size_t c = 0; c < 3; ++c)
      write_elements(c * plane + row * width, rows[c], target_.width, by_channel_[c]);
    return;
  }
  if (target_.type == element_type::u8)
    return kernels_->interleave(rows, target_.width,
                                reinterpret_cast<std::uint8_t*>(target_.data) + 3 * row * width);
  kernels_->interleave(rows, target_.width, interleaved_.data());
  write_elements(3 * row * width, interleaved_.data(), 3 * target_.width, by_pixel_);
}

void pixel_writer::write_elements(std::size_t first, const std::uint8_t* values, int count,
                                  const normalisation& by) {
  auto* out = target_.data + first * element_bytes(target_.type);
  switch (target_.type) {
    case element_type::f32:
      return kernels_->to_f32(values, count, by, reinterpret_cast<float*>(out));
    case element_type::f16:
      return kernels_->to_f16(values, count, by, reinterpret_cast<std::uint16_t*>(out));
    case element_type::bf16:
      return kernels_->to_bf16(values, count, by, reinterpret_cast<std::uint16_t*>(out));
    default: std::memcpy(out, values, static_cast<std::size_t>(count));
  }
}

}  // namespace lade::media
