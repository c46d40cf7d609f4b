#include "resize_axis.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace lade::media {

axis_range coarser(const axis_range& range, const coarse_axis& axis) noexcept {
  const double step = axis.step;
  const int low = std::min(static_cast<int>(range.low / step), axis.size - 1);
  const int high = std::clamp(static_cast<int>((range.high + step - 1) / step), low + 1, axis.size);
  return {(range.begin + axis.offset) / step, range.length / step, low, high, axis.blur};
}

void resize_axis::plan(const axis_range& from, int count, bool mirrored) {
  const double scale = from.length / count;
  const double support = std::hypot(std::max(1.0, scale), from.blur);  // variances add up
  const auto centre = [&](int i) {
    return from.begin + ((mirrored ? count - 1 - i : i) + 0.5) * scale;
  };
  offsets_.resize(static_cast<std::size_t>(count));
  taps_.resize(static_cast<std::size_t>(count));
  leads_.assign(static_cast<std::size_t>(count), 0);
  for (int i = 0; i < count; ++i) plan_samples(i, centre(i), support, from);
  const int low = mirrored ? count - 1 : 0;
  const int high = count - 1 - low;
  first_ = offsets_[static_cast<std::size_t>(low)];
  for (auto& offset : offsets_) offset -= first_;
  last_ = start(high) + taps(high);
  widest_ = std::ranges::max(taps_);
  stride_ = widest_ <= 4 ? 4 : widest_ <= 8 ? 8 : (widest_ + 15) / 16 * 16;
  keep_within_padding();
  weights_.assign(static_cast<std::size_t>(count) * static_cast<std::size_t>(stride_), 0);
  triangle_.resize(static_cast<std::size_t>(widest_));
  for (int i = 0; i < count; ++i) plan_weights(i, centre(i), support);
}

void resize_axis::plan_samples(int i, double centre, double support, const axis_range& from) {
  const int begin = std::clamp(static_cast<int>(centre - support + 0.5), from.low, from.high - 1);
  const int end = std::clamp(static_cast<int>(centre + support + 0.5), begin + 1, from.high);
  offsets_[static_cast<std::size_t>(i)] = begin;  // relative to sample 0 until first_ is known
  taps_[static_cast<std::size_t>(i)] = end - begin;
}

// Moves the first sample of outputs near the end of the axis back, with weights of 0. Such an
// output has about half of the widest one's taps, so with a large stride it would read past the
// padding.
void resize_axis::keep_within_padding() {
  const int most = last_ - first_ + row_padding - stride_;
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    leads_[i] = std::max(offsets_[i] - most, 0);
    offsets_[i] -= leads_[i];
  }
}

void resize_axis::plan_weights(int i, double centre, double support) {
  const int begin = start(i);
  const auto count = static_cast<std::size_t>(taps(i));
  double total = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const double distance = std::abs(begin + static_cast<int>(k) + 0.5 - centre) / support;
    triangle_[k] = total += std::max(0.0, 1 - distance);
  }
  if (total == 0) triangle_[0] = total = 1;
  // Rounding the running sum instead of each weight keeps the total exact and errors local.
  const double unit = (1 << precision) / total;
  auto* weights = weights_.data() + first_weight(i);
  int before = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const int sum = static_cast<int>(triangle_[k] * unit + 0.5);
    weights[k] = static_cast<std::int16_t>(sum - before);
    before = sum;
  }
}

// The widest span of source samples that any `group` neighbouring outputs need.
static int widest_span(const resize_axis& axis, int group) {
  int widest = 0;
  for (int begin = 0; begin < axis.count(); begin += group) {
    const int end = std::min(begin + group, axis.count());
    const int low = std::min(axis.start(begin), axis.start(end - 1));
    for (int i = begin; i < end; ++i) widest = std::max(widest, axis.start(i) + axis.taps(i) - low);
  }
  return widest;
}

bool resize_blocks::plan(const resize_axis& axis) {
  constexpr int half = outputs / 2;
  const int span = widest_span(axis, outputs);
  if (span > 64 && widest_span(axis, half) > 64) return false;
  span_ = span <= 32   ? block_span::sixteen_in_32
          : span <= 64 ? block_span::sixteen_in_64
                       : block_span::eight_in_64;
  pair_count_ = axis.widest() / 2 + 1;
  const auto blocks = static_cast<std::size_t>((axis.count() + outputs - 1) / outputs);
  bases_.clear();
  pairs_.assign(blocks * outputs, 0);
  weights_.assign(blocks * outputs * 2 * static_cast<std::size_t>(pair_count_), 0);
  const int group = span_ == block_span::eight_in_64 ? half : outputs;
  for (int begin = 0; begin < axis.count(); begin += group)
    plan_outputs(axis, begin, std::min(begin + group, axis.count()));
  bases_.resize(2 * blocks, axis.first());
  return true;
}

void resize_blocks::plan_outputs(const resize_axis& axis, int begin, int end) {
  const int base = std::min(axis.start(begin), axis.start(end - 1));
  bases_.push_back(base);
  if (span_ != block_span::eight_in_64) bases_.push_back(base);
  for (int i = begin; i < end; ++i) plan_output(axis, i, base);
}

void resize_blocks::plan_output(const resize_axis& axis, int i, int base) {
  const int offset = axis.start(i) - base;
  pairs_[static_cast<std::size_t>(i)] = offset / 2;
  auto* weights = weights_.data() + (i / outputs * pair_count_ * outputs + i % outputs) * 2;
  for (int k = 0, at = offset % 2; k < axis.taps(i); ++k, ++at)
    weights[at / 2 * 2 * outputs + at % 2] = axis.weights(i)[k];
}

}  // namespace lade::media
