#include "picture_planes.hpp"

#include <cmath>

namespace lade::media {

layout_planes planes_of(plane_layout layout) noexcept {
  switch (layout) {
    case plane_layout::grey: return {1, false, {{{1, {0}}}}};
    case plane_layout::y_cb_cr: return {3, true, {{{1, {0}}, {1, {1}}, {1, {2}}}}};
    case plane_layout::y_cb_cr_a: return {4, true, {{{1, {0}}, {1, {1}}, {1, {2}}, {1, {3}}}}};
    case plane_layout::y_cbcr: return {2, true, {{{1, {0}}, {2, {1, 2}}}}};
    case plane_layout::y_crcb: return {2, true, {{{1, {0}}, {2, {2, 1}}}}};
    case plane_layout::g_b_r: return {3, false, {{{1, {1}}, {1, {2}}, {1, {0}}}}};
    case plane_layout::g_b_r_a: return {4, false, {{{1, {1}}, {1, {2}}, {1, {0}}, {1, {3}}}}};
    case plane_layout::rgb: return {1, false, {{{3, {0, 1, 2}}}}};
    case plane_layout::bgr: return {1, false, {{{3, {2, 1, 0}}}}};
    case plane_layout::rgba: return {1, false, {{{4, {0, 1, 2, 3}}}}};
    case plane_layout::bgra: return {1, false, {{{4, {2, 1, 0, 3}}}}};
  }
  return {};
}

// The steps from rows of a result to RGB or, if `grey`, to full-range grey.
static colour_steps steps_for(const picture& from, const layout_planes& layout, bool grey,
                              const colour_conversion& conversion) {
  if (layout.chroma && !grey) return {.yuv = &conversion};
  const bool one_row = layout.chroma || from.layout == plane_layout::grey;
  return {.expand = from.full_range ? 0 : one_row ? 1 : 3, .luma = grey && !one_row};
}

// The scaling of samples of more than 8 bits to 8 (Rec. ITU-T H.273, 8.3). In limited range, the
// codes differ by a power of two. In full range, the highest code becomes 255, and the middle of
// chroma 128.
static wide_samples wide_samples_of(const picture& from, bool full_range, bool chroma) {
  wide_samples result{.left = 16 - from.bits - from.shift};
  if (!full_range) return result;
  const double most = ((1 << from.bits) - 1) / static_cast<double>(1 << (from.bits - 8));
  result.gain = static_cast<std::int16_t>(std::lrint((255 / most - 1) * 32768));
  if (chroma) result.centre = 128 << resize_kernels::blend_precision;
  return result;
}

picture_planes::picture_planes(const picture& from, const resizer& engine, int channels)
    : conversion_(conversion_of(from.matrix, from.full_range)) {
  const auto layout = planes_of(from.layout);
  const bool grey = channels == 1;
  steps_ = steps_for(from, layout, grey, conversion_);
  for (std::size_t p = 0; p < layout.count; ++p) {
    const bool alpha = p == 3;
    if ((grey && layout.is_chroma(p)) || (alpha && channels < 4)) continue;
    wide_[p] = wide_samples_of(from, from.full_range || alpha, layout.is_chroma(p));
    add(from, p, layout.is_chroma(p) ? engine.chroma() : engine.luma());
  }
}

void picture_planes::add(const picture& from, std::size_t p, const plane_plan& plan) {
  const auto plane = planes_of(from.layout).planes[p];
  const auto left = std::ptrdiff_t{plan.columns.first()} * plane.channels * sample_bytes(from);
  rows_[p] = memory_rows(from.planes[p].data + left, from.planes[p].stride);
  planes_[count_++] = {&rows_[p], &plan, plane.channels, plane.are,
                       from.bits > 8 ? &wide_[p] : nullptr};
}

}  // namespace lade::media
