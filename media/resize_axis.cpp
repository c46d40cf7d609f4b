#include "resize_axis.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace lade::media {

axis_range coarser(const axis_range& range, double step, int size, double blur) noexcept {
  const int low = std::min(static_cast<int>(range.low / step), size - 1);
  const int high = std::clamp(static_cast<int>((range.high + step - 1) / step), low + 1, size);
  return {range.begin / step, range.length / step, low, high, blur};
}

void resize_axis::plan(const axis_range& from, int count, bool mirrored) {
  const double scale = from.length / count;
  const double support = std::hypot(std::max(1.0, scale), from.blur);  // variances add up
  const int most = std::min(from.high - from.low, static_cast<int>(2 * support) + 1);
  stride_ = most <= 4 ? 4 : (most + 7) / 8 * 8;
  offsets_.resize(static_cast<std::size_t>(count));
  taps_.resize(static_cast<std::size_t>(count));
  weights_.assign(static_cast<std::size_t>(count) * static_cast<std::size_t>(stride_), 0);
  triangle_.resize(static_cast<std::size_t>(most));
  for (int i = 0; i < count; ++i)
    plan_sample(mirrored ? count - 1 - i : i, from.begin + (i + 0.5) * scale, support, from);
  const int low = mirrored ? count - 1 : 0;
  const int high = count - 1 - low;
  first_ = offsets_[static_cast<std::size_t>(low)];
  for (auto& offset : offsets_) offset -= first_;
  last_ = start(high) + taps(high);
  widest_ = *std::max_element(taps_.begin(), taps_.end());
}

void resize_axis::plan_sample(int i, double centre, double support, const axis_range& from) {
  const int begin = std::clamp(static_cast<int>(centre - support + 0.5), from.low, from.high - 1);
  const int end = std::clamp(static_cast<int>(centre + support + 0.5), begin + 1, from.high);
  const auto taps = std::min(static_cast<std::size_t>(end - begin), triangle_.size());
  double total = 0;
  for (std::size_t k = 0; k < taps; ++k) {
    const double distance = std::abs(begin + static_cast<int>(k) + 0.5 - centre) / support;
    triangle_[k] = total += std::max(0.0, 1 - distance);
  }
  if (total == 0) triangle_[0] = total = 1;
  // Rounding the running sum, not each weight, keeps the sum exact and errors local.
  const double unit = (1 << precision) / total;
  auto* weights = weights_.data() + static_cast<std::size_t>(i) * std::size_t(stride_);
  int before = 0;
  for (std::size_t k = 0; k < taps; ++k) {
    const int sum = static_cast<int>(triangle_[k] * unit + 0.5);
    weights[k] = static_cast<std::int16_t>(sum - before);
    before = sum;
  }
  offsets_[static_cast<std::size_t>(i)] = begin;  // until all are known: from sample 0
  taps_[static_cast<std::size_t>(i)] = static_cast<int>(taps);
}

bool resize_blocks::plan(const resize_axis& axis) {
  const auto blocks = static_cast<std::size_t>((axis.count() + outputs - 1) / outputs);
  pairs_ = (axis.widest() + 1) / 2;
  narrow_ = true;
  bases_.resize(blocks);
  offsets_.assign(blocks * outputs, 0);
  weights_.assign(blocks * outputs * static_cast<std::size_t>(pairs_), 0);
  for (int b = 0; b < count(); ++b)
    if (!plan_block(axis, b)) return false;
  return true;
}

bool resize_blocks::plan_block(const resize_axis& axis, int b) {
  const int begin = b * outputs;
  const int end = std::min(begin + outputs, axis.count());
  const int base = std::min(axis.start(begin), axis.start(end - 1));
  bases_[static_cast<std::size_t>(b)] = base;
  for (int i = begin; i < end; ++i) {
    const int offset = axis.start(i) - base;
    if (offset + axis.taps(i) > window) return false;
    narrow_ = narrow_ && offset + axis.taps(i) <= narrow_window;
    offsets_[static_cast<std::size_t>(i)] = offset | (offset + 1) << 16;
    auto* pair = weights_.data() + b * pairs_ * outputs + (i - begin);
    for (int k = 0; k < pairs_; ++k) std::memcpy(pair + k * outputs, axis.weights(i) + 2 * k, 4);
  }
  return true;
}

}  // namespace lade::media
