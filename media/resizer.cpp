#include "resizer.hpp"
#include "colours.hpp"

#include <algorithm>

namespace lade::media {

bool plane_plan::plan(const resize_shape& next) {
  if (next == shape) return false;
  shape = {};
  columns.plan(next.x, next.width, next.mirrored);
  rows.plan(next.y, next.height);
  blocked = blocks.plan(columns);
  shape = next;
  return true;
}

bool resizer::plan(const resize_shape& next) {
  const bool planned = luma_.plan(next);
  reserve(luma_.columns.last() - luma_.columns.first());
  return planned;
}

void resizer::plan_chroma(const coarse_axis& x, const coarse_axis& y) {
  auto next = luma_.shape;
  next.x = coarser(next.x, x);
  next.y = coarser(next.y, y);
  chroma_.plan(next);
  reserve(chroma_.columns.last() - chroma_.columns.first());
}

void resizer::reserve(int columns) {
  const auto padded = static_cast<std::size_t>(columns + resize_kernels::row_padding);
  const auto grow = [](auto& row, std::size_t size) {
    if (row.size() < size) row.resize(size);
  };
  grow(blended_, 4 * padded);
  for (auto& row : split_) grow(row, padded);
  const auto width = static_cast<std::size_t>(luma_.columns.count());
  for (auto& row : filtered_) grow(row, width + pixel_kernels::row_padding);
}

void resizer::blend(const resize_plane& plane, int y) {
  const auto& plan = *plane.plan;
  const int start = plan.rows.start(y);
  const int taps = plan.rows.taps(y);
  sources_.clear();
  for (int k = 0; k < taps; ++k) sources_.push_back(plane.rows->row(start + k));
  if (taps % 2 != 0) sources_.push_back(sources_.back());
  const int columns = plan.columns.last() - plan.columns.first();
  const int count = columns * plane.channels;
  const auto* weights = plan.rows.weights(y);
  if (plane.wide != nullptr)
    kernels_->blend_16(sources_.data(), weights, taps, count, *plane.wide, blended_.data());
  else
    kernels_->blend(sources_.data(), weights, taps, count, blended_.data());
}

void resizer::split(int channels, int columns) {
  std::array<std::int16_t*, 4> out;
  for (std::size_t c = 0; c < out.size(); ++c) out[c] = split_[c].data();
  const auto kernel = channels == 2   ? kernels_->split_2
                      : channels == 3 ? kernels_->split_3
                                      : kernels_->split_4;
  kernel(blended_.data(), columns, out.data());
}

void resizer::filter(const plane_plan& plan, const std::int16_t* in, std::uint8_t* out) {
  kernels_->filter(in, plan.columns, plan.blocked ? &plan.blocks : nullptr, out);
}

void resizer::resize_row(const resize_plane& plane, int y) {
  blend(plane, y);
  const auto& plan = *plane.plan;
  if (plane.channels == 1) return filter(plan, blended_.data(), filtered_[plane.becomes[0]].data());
  split(plane.channels, plan.columns.last() - plan.columns.first());
  for (std::size_t c = 0; c < static_cast<std::size_t>(plane.channels); ++c)
    filter(plan, split_[c].data(), filtered_[plane.becomes[c]].data());
}

void resizer::convert(const colour_steps& steps) {
  const int count = luma_.columns.count();
  const std::array<std::uint8_t*, 3> rows{filtered_[0].data(), filtered_[1].data(),
                                          filtered_[2].data()};
  if (steps.yuv != nullptr) pixel_kernels_->yuv_to_rgb(rows.data(), count, *steps.yuv);
  for (std::size_t c = 0; c < static_cast<std::size_t>(steps.expand); ++c)
    pixel_kernels_->expand(rows[c], count);
  if (!steps.luma) return;
  for (std::size_t x = 0; x < static_cast<std::size_t>(count); ++x)
    rows[0][x] = luma_of(rows[0][x], rows[1][x], rows[2][x]);
}

void resizer::run(std::span<const resize_plane> planes, const colour_steps& steps,
                  pixel_writer& out) {
  const bool grey = planes.size() == 1 && planes[0].channels == 1;
  const std::array<const std::uint8_t*, 4> rows{filtered_[0].data(), filtered_[grey ? 0 : 1].data(),
                                                filtered_[grey ? 0 : 2].data(),
                                                filtered_[3].data()};
  std::ranges::fill(filtered_[3], std::uint8_t{255});
  for (int y = 0; y < luma_.rows.count(); ++y) {
    for (const auto& plane : planes) resize_row(plane, y);
    convert(steps);
    out.write(y, rows.data());
  }
  out.end();
}

void resizer::run(row_source& pixels, int channels, pixel_writer& out) {
  const resize_plane plane{.rows = &pixels, .plan = &luma_, .channels = channels};
  run({&plane, 1}, {}, out);
}

void resizer::run_yuv(row_source& y, row_source& cb, row_source& cr, pixel_writer& out) {
  static constexpr auto jpeg = conversion_of(colour_matrix::bt601, true);
  const std::array<resize_plane, 3> planes{
      resize_plane{.rows = &y, .plan = &luma_},
      resize_plane{.rows = &cb, .plan = &chroma_, .becomes = {1}},
      resize_plane{.rows = &cr, .plan = &chroma_, .becomes = {2}}};
  run(planes, {.yuv = &jpeg}, out);
}

}  // namespace lade::media
