#include "resizer.hpp"

#include <algorithm>

namespace lade::media {

void plane_plan::plan(const resize_shape& wanted) {
  if (wanted == shape) return;
  shape = {};
  columns.plan(wanted.x, wanted.width, wanted.mirrored);
  rows.plan(wanted.y, wanted.height);
  blocked = blocks.plan(columns);
  shape = wanted;
}

void resizer::plan(const resize_shape& wanted) {
  luma_.plan(wanted);
  reserve(luma_.columns.last() - luma_.columns.first());
}

void resizer::plan_chroma(const coarse_axis& x, const coarse_axis& y) {
  auto wanted = luma_.shape;
  wanted.x = coarser(wanted.x, x.step, x.size, x.blur);
  wanted.y = coarser(wanted.y, y.step, y.size, y.blur);
  chroma_.plan(wanted);
  reserve(chroma_.columns.last() - chroma_.columns.first());
}

void resizer::reserve(int columns) {
  const auto padded = static_cast<std::size_t>(columns + resize_kernels::row_padding);
  const auto grow = [](auto& row, std::size_t size) {
    if (row.size() < size) row.resize(size);
  };
  grow(blended_, 3 * padded);
  for (auto& row : split_) grow(row, padded);
  const auto width = static_cast<std::size_t>(luma_.columns.count());
  for (auto& row : filtered_) grow(row, width + resize_kernels::row_padding);
}

void resizer::blend(row_source& from, const plane_plan& plan, int y, int channels,
                    std::int16_t* out) {
  const int start = plan.rows.start(y);
  const int taps = plan.rows.taps(y);
  sources_.clear();
  for (int k = 0; k < taps; ++k) sources_.push_back(from.row(start + k));
  if (taps % 2 != 0) sources_.push_back(sources_.back());
  const int columns = plan.columns.last() - plan.columns.first();
  kernels_->blend(sources_.data(), plan.rows.weights(y), taps, columns * channels, out);
}

void resizer::filter(const plane_plan& plan, const std::int16_t* in, std::size_t channel) {
  kernels_->filter(in, plan.columns, plan.blocked ? &plan.blocks : nullptr,
                   filtered_[channel].data());
}

void resizer::run(row_source& pixels, int channels, pixel_writer& out) {
  const std::array<std::int16_t*, 3> split{split_[0].data(), split_[1].data(), split_[2].data()};
  const auto last = static_cast<std::size_t>(channels - 1);
  const std::array<const std::uint8_t*, 3> rows{filtered_[0].data(),
                                                filtered_[std::min<std::size_t>(1, last)].data(),
                                                filtered_[std::min<std::size_t>(2, last)].data()};
  for (int y = 0; y < luma_.rows.count(); ++y) {
    blend(pixels, luma_, y, channels, blended_.data());
    if (channels == 1) {
      filter(luma_, blended_.data(), 0);
    } else {
      kernels_->split(blended_.data(), luma_.columns.last() - luma_.columns.first(), split.data());
      for (std::size_t c = 0; c < 3; ++c) filter(luma_, split[c], c);
    }
    out.write(y, rows.data());
  }
  out.end();
}

void resizer::run_yuv(row_source& y, row_source& cb, row_source& cr, pixel_writer& out) {
  const std::array<row_source*, 3> sources{&y, &cb, &cr};
  const std::array<std::uint8_t*, 3> rows{filtered_[0].data(), filtered_[1].data(),
                                          filtered_[2].data()};
  for (int row = 0; row < luma_.rows.count(); ++row) {
    for (std::size_t c = 0; c < 3; ++c)
      blend(*sources[c], c == 0 ? luma_ : chroma_, row, 1, split_[c].data());
    for (std::size_t c = 0; c < 3; ++c) filter(c == 0 ? luma_ : chroma_, split_[c].data(), c);
    kernels_->yuv_to_rgb(rows.data(), luma_.columns.count());
    out.write(row, rows.data());
  }
  out.end();
}

}  // namespace lade::media
