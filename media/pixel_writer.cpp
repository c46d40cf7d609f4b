#include "pixel_writer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lade::media {

// The factors for elements whose channels are first, first + step, ..., modulo `channels`.
static normalisation make_normalisation(const pixel_target& target, int first, int step) {
  normalisation result;
  for (int i = 0; i < normalisation::period; ++i) {
    const auto channel = static_cast<std::size_t>((first + i * step) % target.channels);
    const double stddev = channel < 3 ? target.stddev[channel] : 1;
    const double mean = channel < 3 ? target.mean[channel] : 0;
    result.scale[static_cast<std::size_t>(i)] = static_cast<float>(1 / (255 * stddev));
    result.bias[static_cast<std::size_t>(i)] = static_cast<float>(-mean / stddev);
  }
  return result;
}

void pixel_writer::begin(const pixel_target& target, row_order order) {
  target_ = target;
  order_ = order;
  const auto pixels = std::size_t(target.width) * std::size_t(target.height);
  if (target_.plane_stride == 0) target_.plane_stride = static_cast<std::ptrdiff_t>(pixels);
  for (int c = 0; c < target.channels; ++c)
    by_channel_[static_cast<std::size_t>(c)] = make_normalisation(target, c, 0);
  by_pixel_ = make_normalisation(target, 0, 1);
  interleaved_.resize(std::size_t(target.width) * std::size_t(target.channels));
  if (order.transposed)
    turned_ = turned_memory_.reserve(std::size_t(target.channels) * whole_tiles(target.width) *
                                     whole_tiles(target.height));
}

void pixel_writer::write(int y, const std::uint8_t* const* rows) {
  if (order_.mirrored) y = row_count() - 1 - y;
  if (!order_.transposed) return write_row(y, rows);
  for (int c = 0; c < target_.channels; ++c) std::copy_n(rows[c], row_width(), turned_row(c, y));
}

std::uint8_t* pixel_writer::turned_row(int channel, int y) const noexcept {
  return turned_ + (std::size_t(channel) * whole_tiles(row_count()) + std::size_t(y)) *
                       whole_tiles(row_width());
}

// Transposes a tile of columns at a time.
void pixel_writer::end() {
  if (!order_.transposed) return;
  const auto width = whole_tiles(target_.width);
  columns_.resize(4 * tile * width);
  for (int y = 0; y < target_.height; y += tile) {
    for (int c = 0; c < target_.channels; ++c)
      for (int x = 0; x < target_.width; x += tile)
        kernels_->transpose_16(turned_row(c, x) + y, whole_tiles(row_width()),
                               columns_.data() + std::size_t(c) * tile * width + x, width);
    write_columns(y, width);
  }
  turned_memory_.end_image();
}

// Writes the rows of the target from y on, which are in columns_.
void pixel_writer::write_columns(int y, std::size_t width) {
  const int count = std::min(int{tile}, target_.height - y);
  for (int row = 0; row < count; ++row) {
    std::array<const std::uint8_t*, 4> rows;
    for (std::size_t c = 0; c < rows.size(); ++c)
      rows[c] = columns_.data() + (c * tile + std::size_t(row)) * width;
    write_row(y + row, rows.data());
  }
}

void pixel_writer::write_row(int y, const std::uint8_t* const* rows) {
  const auto width = static_cast<std::size_t>(target_.width);
  const auto pixel = static_cast<std::size_t>(y) * width;
  if (target_.channels == 1) return write_elements(pixel, rows[0], target_.width, by_pixel_);
  std::array<const std::uint8_t*, 4> ordered{rows[0], rows[1], rows[2], nullptr};
  if (target_.bgr) std::swap(ordered[0], ordered[2]);
  if (target_.channels == 4) ordered[3] = rows[3];
  if (target_.layout == image_layout::chw)
    write_planes(pixel, ordered.data());
  else
    write_pixels(pixel, ordered.data());
}

void pixel_writer::write_planes(std::size_t first, const std::uint8_t* const* rows) {
  for (std::size_t c = 0; c < static_cast<std::size_t>(target_.channels); ++c)
    write_elements(c * static_cast<std::size_t>(target_.plane_stride) + first, rows[c],
                   target_.width, by_channel_[c]);
}

void pixel_writer::write_pixels(std::size_t first, const std::uint8_t* const* rows) {
  const auto element = first * static_cast<std::size_t>(target_.channels);
  const auto interleave = target_.channels == 4 ? kernels_->interleave_4 : kernels_->interleave;
  if (target_.type == element_type::u8)
    return interleave(rows, target_.width, reinterpret_cast<std::uint8_t*>(target_.data) + element);
  interleave(rows, target_.width, interleaved_.data());
  write_elements(element, interleaved_.data(), target_.channels * target_.width, by_pixel_);
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
