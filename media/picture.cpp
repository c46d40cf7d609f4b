#include <lade/error.hpp>

#include "decoders.hpp"
#include "picture_planes.hpp"

#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace lade::media {

static constexpr int most_axis_samples = 1 << 15;  // per axis

static void require_of_picture(bool condition, const std::string& reason) {
  if (!condition) throw error(errc::invalid_argument, "write picture", reason);
}

static void require_supported(bool condition, const std::string& feature) {
  if (!condition) throw error(errc::unsupported, "write picture", feature);
}

static coarse_axis chroma_axis(int luma, int shift, chroma_site site) noexcept {
  const double step = 1 << shift;
  const double to_middle = (step - 1) / 2;
  const double offset = site == chroma_site::first  ? to_middle
                        : site == chroma_site::last ? -to_middle
                                                    : 0;
  return {.size = chroma_size(luma, shift), .step = step, .offset = offset};
}

static void check_samples(const picture& from) {
  const auto layout = planes_of(from.layout);
  require_supported(layout.count > 0, "the layout of the planes is unknown");
  const bool packed = layout.planes[0].channels > 1;
  require_supported(
      from.bits >= 8 && from.bits <= (packed ? 8 : 16),
      fmt::format("{}{} sample", from.bits, packed ? " bits per packed" : " bits per"));
  const int most_shift = from.bits > 8 ? 16 - from.bits : 0;
  require_supported(from.shift >= 0 && from.shift <= most_shift,
                    fmt::format("{} unused bits below {} significant ones", from.shift, from.bits));
  if (!layout.chroma) return;
  const int x = from.chroma_shift_x;
  const int y = from.chroma_shift_y;
  require_supported(x >= 0 && x <= 2 && y >= 0 && y <= 2,
                    fmt::format("chroma shifts of {} and {}", x, y));
  require_supported(from.matrix <= colour_matrix::bt2020, "the colour matrix is unknown");
}

static bool size_fits(int size) noexcept { return size >= 1 && size <= most_axis_samples; }

static void check_planes(const picture& from) {
  require_of_picture(
      size_fits(from.width) && size_fits(from.height),
      fmt::format("the picture is {} x {}: both must be 1 to 32768", from.width, from.height));
  const auto layout = planes_of(from.layout);
  for (std::size_t p = 0; p < layout.count; ++p) {
    const int width =
        layout.is_chroma(p) ? chroma_size(from.width, from.chroma_shift_x) : from.width;
    const auto bytes = std::ptrdiff_t{width} * layout.planes[p].channels * sample_bytes(from);
    require_of_picture(from.planes[p].data != nullptr && std::abs(from.planes[p].stride) >= bytes,
                       fmt::format("plane {} has no data, or rows that overlap", p));
  }
}

static void check_axis(const axis_range& part, int size, std::string_view axis) {
  require_of_picture(part.begin >= 0 && part.length > 0 && part.begin + part.length <= size &&
                         part.low >= 0 && part.low < part.high && part.high <= size,
                     "the view must have an area and lie inside of the picture: " +
                         std::string(axis) + " does not");
  require_of_picture(std::isfinite(part.blur) && part.blur >= 0 && part.blur <= size,
                     "the blur of a view must be at least 0 and no more than the picture");
}

static void check_target(const pixel_target& to) {
  require_of_picture(to.data != nullptr && size_fits(to.width) && size_fits(to.height),
                     "the result must have memory, a width and a height of 1 to 32768");
  require_supported(to.channels == 1 || to.channels == 3 || to.channels == 4,
                    fmt::format("a result of {} channels", to.channels));
  require_supported(to.type == element_type::u8 || to.type == element_type::f16 ||
                        to.type == element_type::bf16 || to.type == element_type::f32,
                    "a result of " + std::string(name(to.type)));
  const auto pixels = std::ptrdiff_t{to.width} * to.height;
  require_of_picture(to.plane_stride == 0 || to.plane_stride >= pixels,
                     "the planes of the result overlap");
  for (std::size_t c = 0; c < to.mean.size(); ++c)
    require_of_picture(std::isfinite(to.mean[c]) && std::isnormal(to.stddev[c]),
                       "mean and stddev must be finite, stddev not 0");
}

static void plan_picture(image_lane& lane, const picture& from, const picture_view& view,
                         const pixel_target& to) {
  const auto& turn = view.turn;
  lane.writer.begin(to, {.mirrored = turn.mirror_y, .transposed = turn.transposed});
  lane.resize.plan({.x = view.x,
                    .y = view.y,
                    .width = lane.writer.row_width(),
                    .height = lane.writer.row_count(),
                    .mirrored = turn.mirror_x});
  if (planes_of(from.layout).chroma && to.channels > 1)
    lane.resize.plan_chroma(chroma_axis(from.width, from.chroma_shift_x, from.siting.x),
                            chroma_axis(from.height, from.chroma_shift_y, from.siting.y));
}

void write_picture(const picture& from, const picture_view& view, const pixel_target& to) {
  check_samples(from);
  check_planes(from);
  check_axis(view.x, from.width, "x");
  check_axis(view.y, from.height, "y");
  check_target(to);
  const used_decoders used;
  auto& lane = used->lanes[0];
  plan_picture(lane, from, view, to);
  picture_planes planes(from, lane.resize, to.channels);
  lane.resize.run(planes.all(), planes.steps(), lane.writer);
}

}  // namespace lade::media
