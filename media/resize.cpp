#include <lade/error.hpp>
#include <lade/media/resize.hpp>

#include "decoders.hpp"

#include <cmath>
#include <string>

namespace lade::media {

static void require_resizable(bool condition, std::string_view reason) {
  if (!condition) throw error(errc::invalid_argument, "resize image", reason);
}

static pixel_target target_of(const tensor& out, const resize_options& options) {
  const bool planes = options.layout == image_layout::chw;
  const auto extent = [&](std::size_t i) { return static_cast<int>(out.shape()[i]); };
  return {.data = out.bytes(),
          .width = extent(planes ? 2 : 1),
          .height = extent(planes ? 1 : 0),
          .channels = extent(planes ? 0 : 2),
          .type = out.type(),
          .layout = options.layout,
          .mean = options.mean,
          .stddev = options.stddev};
}

static void check_tensors(const tensor& image, const tensor& out) {
  require_resizable(image.type() == element_type::u8 && image.rank() == 3 &&
                        image.strides()[2] == 1 && image.strides()[1] == image.shape()[2],
                    "the image must be u8 [height, width, channels] with contiguous rows");
  require_resizable(out.rank() == 3 && out.contiguous(), "the result must be contiguous, rank 3");
  require_resizable(out.type() == element_type::u8 || out.type() == element_type::f16 ||
                        out.type() == element_type::bf16 || out.type() == element_type::f32,
                    "the result must be u8, f16, bf16 or f32");
}

static void check_scaling(const resize_options& options) {
  for (std::size_t c = 0; c < 3; ++c)
    require_resizable(std::isfinite(options.mean[c]) && std::isnormal(options.stddev[c]),
                      "mean and stddev must be finite, stddev not 0");
}

static image_box box_of(const tensor& image, const image_box& from) {
  const auto height = static_cast<double>(image.shape()[0]);
  const auto width = static_cast<double>(image.shape()[1]);
  const image_box box = from.width == 0 ? image_box{0, 0, width, height} : from;
  require_resizable(box.left >= 0 && box.top >= 0 && box.width > 0 && box.height > 0 &&
                        box.left + box.width <= width && box.top + box.height <= height,
                    "the box must have an area and lie inside of the image");
  return box;
}

void resize(const tensor& image, const tensor& out, const resize_options& options) {
  check_tensors(image, out);
  check_scaling(options);
  const auto box = box_of(image, options.from);
  const auto target = target_of(out, options);
  const auto channels = static_cast<int>(image.shape()[2]);
  require_resizable(target.width > 0 && target.height > 0, "the result is empty");
  require_resizable(channels == 1 || channels == 3, "the image must have 1 or 3 channels");
  require_resizable(target.channels == channels || target.channels == 3,
                    "the result must have as many channels, or 3");

  const used_decoders used;
  auto& engine = used->lanes[0].resize;
  auto& writer = used->lanes[0].writer;
  engine.plan({.x = {box.left, box.width, 0, static_cast<int>(image.shape()[1])},
               .y = {box.top, box.height, 0, static_cast<int>(image.shape()[0])},
               .width = target.width,
               .height = target.height,
               .mirrored = options.flip});
  writer.begin(target, {});
  memory_rows rows(image.data<std::uint8_t>() + engine.luma().columns.first() * channels,
                   image.strides()[0]);
  engine.run(rows, channels, writer);
}

}  // namespace lade::media
