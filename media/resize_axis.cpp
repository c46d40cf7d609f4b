#include "resize_axis.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

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
  widest_ = *std::max_element(taps_.begin(), taps_.end());
  stride_ = widest_ <= 4 ? 4 : widest_ <= 8 ? 8 : (widest_ + 15) / 16 * 16;
  keep_within_padding();
  weights_.assign(static_cast<std::size_t>(count) * static_cast<std::size_t>(stride_), 0);
  triangle_.resize(static_cast<std::size_t>(widest_));
  for (int i = 0; i < count; ++i) plan_weights(i, centre(i), support);
}

void resize_axis::plan_samples(int i, double centre, double support, const axis_range& from) {
  const int begin = std::clamp(static_cast<int>(centre - support + 0.5), from.low, from.high - 1);
  const int end = std::clamp(static_cast<int>(centre + support + 0.5), begin + 1, from.high);
  offsets_[static_cast<std::size_t>(i)] = begin;  // until all are known: from sample 0
  taps_[static_cast<std::size_t>(i)] = end - begin;
}

// An output at the end of the axis has about half of the widest one's taps: of a wide axis, the
// rest of a stride from its first sample on is more than the padding.
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
  // Rounding the running sum, not each weight, keeps the sum exact and errors local.
  const double unit = (1 << precision) / total;
  auto* weights = weights_.data() + first_weight(i);
  int before = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const int sum = static_cast<int>(triangle_[k] * unit + 0.5);
    weights[k] = static_cast<std::int16_t>(sum - before);
    before = sum;
  }
}

bool resize_blocks::plan(const resize_axis& axis) {
  if (axis.widest() > window) return false;
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
