#include "quick_jpeg.hpp"

#include "jpeg_axis.hpp"

#include <algorithm>

namespace lade::media {

void quick_jpeg::find_partner() {
  auto* found = partner_();
  partner_image_ = found != nullptr ? &found->image_ : nullptr;
}

void quick_jpeg::decode(int y) {
  if (partner_ && !image_.has_row(y) && (partner_image_ == nullptr || !partner_image_->decodes()))
    find_partner();
  if (!image_.decode(y, partner_image_)) throw needs_libjpeg();
}

const std::uint8_t* quick_jpeg::component_row(std::size_t component, int y) {
  decode(y * image_.rows_of_first(component));
  return image_.plane_row(component, y);
}

coarse_axis quick_jpeg::columns(std::size_t component) const noexcept {
  return jpeg_axis(image_.plane_width(component), image_.columns_of_first(component),
                   image_.pixels_across(component), component > 0 && image_.headers().across == 2);
}

coarse_axis quick_jpeg::rows(std::size_t component, int bottom) const noexcept {
  return jpeg_axis(image_.rows_above(component, bottom), image_.rows_of_first(component),
                   image_.pixels_down(component), component > 0 && image_.headers().down == 2);
}

void quick_jpeg::start_colours(int kept) {
  left_ = part_.left / image_.headers().across * image_.headers().across;
  constexpr std::size_t padding = 2 * jpeg_kernels::row_padding;
  row_bytes_ = (static_cast<std::size_t>(part_.right - left_) + padding + 63) / 64 * 64;
  for (auto& row : upsampled_) row.resize(std::max(row.size(), row_bytes_));
  ring_.reset(part_.top, kept, 3 * row_bytes_);
}

const std::uint8_t* quick_jpeg::colour_row(std::size_t colour, int y) {
  const auto* row = ring_.row(y, [this](int next, std::uint8_t* out) { make_row(next, out); });
  return row + colour * row_bytes_ + (part_.left - left_);
}

void quick_jpeg::make_row(int y, std::uint8_t* out) {
  decode(y);
  const int count = part_.right - left_;
  std::array<const std::uint8_t*, 3> in;
  for (std::size_t c = 0; c < 3; ++c) in[c] = upsampled(c, y);
  const std::array<std::uint8_t*, 3> colours{out, out + row_bytes_, out + 2 * row_bytes_};
  if (!is_rgb()) return kernels_->to_rgb(in.data(), count, colours.data());
  for (std::size_t c = 0; c < 3; ++c) std::copy_n(in[c], count, colours[c]);
}

void quick_jpeg::repeat_columns(const std::uint8_t* in, int times,
                                std::uint8_t* out) const noexcept {
  for (int x = 0; x < part_.right - left_; ++x) out[x] = in[x / times];
}

// As in libjpeg (jdsample.c): smooth for components of half the resolution that are more than two
// samples wide; else by repetition.
const std::uint8_t* quick_jpeg::upsampled(std::size_t component, int y) {
  const int across = component == 0 ? 1 : image_.headers().across;
  const int down = component == 0 ? 1 : image_.headers().down;
  const auto row = [&](int at) {
    const int within = std::clamp(at, 0, image_.plane_height(component) - 1);
    return image_.plane_row(component, within) + left_ / across;
  };
  const auto* const near = row(y / down);
  if (across == 1 && down == 1) return near;
  const auto* const far = row(y / down + (y % 2 != 0 ? 1 : -1));
  auto* const out = upsampled_[component].data();
  const int count = (part_.right - left_ + across - 1) / across;
  if (across == 1)
    kernels_->double_rows(near, far, y % 2 != 0 ? 2 : 1, count, out);
  else if (across > 2 || image_.plane_width(component) <= 2)
    repeat_columns(near, across, out);
  else if (down == 1)
    kernels_->double_columns(near, count, out);
  else
    kernels_->double_both(near, far, count, out);
  return out;
}

}  // namespace lade::media
