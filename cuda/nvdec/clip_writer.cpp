#include "clip_writer.hpp"

#include "../../media/crop.hpp"

#include <lade/cuda/write_pictures.hpp>
#include <lade/error.hpp>
#include <lade/media/av/convert.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace lade::cuda {

static void require_gpu_option(bool condition, std::string_view reason) {
  if (!condition) throw error(errc::unsupported, "make cuda::decode_clip", reason);
}

void require_gpu_options(const media::clip_options& options) {
  const bool coloured =
      options.colour == media::image_colour::rgb || options.colour == media::image_colour::bgr;
  require_gpu_option(coloured, "the colour must be rgb or bgr");
}

static media::image_options crop_options_of(const media::clip_options& options) {
  media::image_options image{.width = options.width,
                             .height = options.height,
                             .fit = options.fit,
                             .shorter_side = options.shorter_side,
                             .min_area = options.min_area,
                             .max_area = options.max_area,
                             .min_aspect = options.min_aspect,
                             .max_aspect = options.max_aspect,
                             .flip = options.flip,
                             .square_pixels = options.square_pixels};
  image.shorter_side = media::resolved_shorter_side(image);
  return image;
}

static yuv_picture picture_of(const surface& from, const picture_colours& colours) {
  const bool planar = from.chroma == 444;
  yuv_picture picture{.width = from.width,
                      .height = from.height,
                      .layout = planar ? yuv_layout::y_cb_cr : yuv_layout::y_cbcr,
                      .bits = from.bits,
                      .shift = from.bits > 8 ? 16 - from.bits : 0,
                      .chroma_shift_x = planar ? 0 : 1,
                      .chroma_shift_y = planar ? 0 : 1,
                      .siting = colours.siting,
                      .matrix = colours.matrix,
                      .full_range = colours.full_range};
  for (std::size_t i = 0; i < picture.planes.size(); ++i)
    picture.planes[i] = {from.planes[i], from.pitch};
  return picture;
}

static crop_box box_of(const media::image_crop& crop, int width, int height) {
  const bool isolated =
      crop.x.low > 0 || crop.x.high < width || crop.y.low > 0 || crop.y.high < height;
  return {crop.x.begin, crop.y.begin, crop.x.length, crop.y.length, isolated};
}

// The colours of a video. Throws error(unsupported) if it must be rotated.
static picture_colours colours_of_upright(const media::clip_options& options, known_colours& known,
                                          const media::video& from,
                                          std::span<const std::int64_t> numbers) {
  const auto& stream = from.stream();
  if (options.orient && media::exif_orientation_of(stream) > 2)
    throw error(errc::unsupported, "decode " + stream.name() + " on the GPU", "it must be turned");
  return known.of(from, numbers);
}

clip_writer::clip_writer(const media::clip_options& options, known_colours& known,
                         const media::video& from, std::span<const std::int64_t> numbers,
                         const tensor& into, random draw)
    : options_(options),
      stream_(from.stream()),
      colours_(colours_of_upright(options, known, from, numbers)),
      into_(into),
      draw_(draw) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    slots_.emplace(numbers[i], static_cast<std::int64_t>(i));
}

image_batch clip_writer::place_of(std::int64_t index) const {
  const bool channels_last = options_.layout == media::clip_layout::thwc;
  constexpr std::int64_t channels = 3;
  const auto frame = channels * options_.width * options_.height;
  const auto bytes = frame * static_cast<std::int64_t>(element_bytes(options_.type));
  return {.data = into_.bytes() + index * bytes,
          .type = options_.type,
          .layout = channels_last ? pixel_layout::hwc : pixel_layout::chw,
          .width = options_.width,
          .height = options_.height,
          .bgr = options_.colour == media::image_colour::bgr,
          .mean = options_.mean,
          .stddev = options_.stddev};
}

void clip_writer::write(std::int64_t number, const surface& decoded, const stream& on) const {
  auto picture = picture_of(decoded, colours_);
  const auto turn =
      media::orientation_of(options_.orient ? media::exif_orientation_of(stream_) : 1);
  constexpr double widest = 256;
  const double aspect = std::clamp(stream_.sample_aspect().to_double(), 1 / widest, widest);
  const auto crop = media::plan_picture_crop(decoded.width, decoded.height, aspect, turn,
                                             crop_options_of(options_), draw_);
  picture.crop = box_of(crop, decoded.width, decoded.height);
  picture.flip = crop.turn.mirror_x;
  const auto [first, last] = slots_.equal_range(number);
  for (auto place = first; place != last; ++place)
    write_pictures(std::span(&picture, 1), place_of(place->second), on.handle());
}

}  // namespace lade::cuda
