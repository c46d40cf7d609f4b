// Kernels beside the resizer of the module `media`, which does the same on the CPU.
#include "../../media/picture_planes.hpp"
#include "random_pictures.hpp"

#include <lade/cuda/write_images.hpp>
#include <lade/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace lade::cuda {

// The same steps, but for what a compiler contracts: one of 255 is allowed, and the machines of the
// tests have none.
static constexpr int most_difference = 0;

class KernelsBesideMedia : public picture_test {
 protected:
  media::pixel_target target_in(const tensor& out, const image_batch& to) {
    return {.data = out.bytes(),
            .width = to.width,
            .height = to.height,
            .bgr = to.bgr,
            .type = to.type,
            .layout = static_cast<media::image_layout>(to.layout),
            .mean = to.mean,
            .stddev = to.stddev};
  }

  tensor tensor_for(const image_batch& to) {
    return to.layout == pixel_layout::chw ? tensor(to.type, {to.channels, to.height, to.width})
                                          : tensor(to.type, {to.height, to.width, to.channels});
  }

  int size_for(int target) { return any_size(std::min(300, 100 * target)); }
};

static media::axis_range range_of(double begin, double length, bool isolated, int size) {
  const auto axis = plain_axis_of(begin, length, isolated, size);
  return {axis.begin, axis.length, axis.low, axis.high};
}

static media::resize_shape shape_of(const crop_box& crop, int width, int height, bool flip,
                                    const image_batch& to) {
  return {.x = range_of(crop.left, crop.width, crop.isolated, width),
          .y = range_of(crop.top, crop.height, crop.isolated, height),
          .width = to.width,
          .height = to.height,
          .mirrored = flip};
}

static media::coarse_axis coarse_axis_of(int luma, int shift, media::chroma_site site) {
  const double step = 1 << shift;
  return {.size = media::chroma_size(luma, shift),
          .step = step,
          .offset = site == media::chroma_site::first ? (step - 1) / 2 : 0};
}

// What lade::media::write_picture does.
static void write_by_media(const media::picture& from, const media::resize_shape& shape,
                           const media::pixel_target& to) {
  media::pixel_writer writer;
  media::resizer engine;
  writer.begin(to, {});
  engine.plan(shape);
  engine.plan_chroma(coarse_axis_of(from.width, from.chroma_shift_x, from.siting.x),
                     coarse_axis_of(from.height, from.chroma_shift_y, from.siting.y));
  const media::picture_planes planes(from, engine, to.channels);
  engine.run(planes.all(), planes.steps(), writer);
}

// What lade::media::resize does.
static void resize_by_media(const tensor& image, const media::resize_shape& shape,
                            const media::pixel_target& to) {
  media::pixel_writer writer;
  media::resizer engine;
  writer.begin(to, {});
  engine.plan(shape);
  const auto channels = static_cast<int>(image.shape()[2]);
  media::memory_rows rows(image.data<std::uint8_t>() + engine.luma().columns.first() * channels,
                          image.strides()[0]);
  engine.run(rows, channels, writer);
}

static media::picture media_picture(const random_picture& from) {
  static constexpr media::plane_layout layouts[]{
      media::plane_layout::y_cb_cr, media::plane_layout::y_cbcr, media::plane_layout::y_crcb};
  static constexpr media::chroma_siting sitings[]{media::left_siting, media::centre_siting,
                                                  media::top_left_siting};
  const auto& source = from.source;
  media::picture result{.width = source.width,
                        .height = source.height,
                        .layout = layouts[static_cast<int>(source.layout)],
                        .bits = source.bits,
                        .shift = source.shift,
                        .chroma_shift_x = source.chroma_shift_x,
                        .chroma_shift_y = source.chroma_shift_y,
                        .siting = sitings[static_cast<int>(source.siting)],
                        .matrix = static_cast<media::colour_matrix>(source.matrix),
                        .full_range = source.full_range};
  for (std::size_t p = 0; p < 3; ++p)
    result.planes[p] = {from.bytes[p].data(), source.planes[p].pitch};
  return result;
}

static int difference(const std::vector<unsigned char>& elements, const tensor& expected) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(expected.bytes());
  if (std::memcmp(elements.data(), bytes, elements.size()) == 0) return 0;
  if (expected.type() != element_type::u8) return 256;
  int largest = 0;
  for (std::size_t i = 0; i < elements.size(); ++i)
    largest = std::max(largest, std::abs(elements[i] - bytes[i]));
  return largest;
}

TEST_P(KernelsBesideMedia, WriteTheSamePictures) {
  reserved_codes = true;
  for (int round = 0; round < 300; ++round) {
    const auto to = any_batch(any_size(150), any_size(90), 3);
    auto picture = any_picture(any_kind(), size_for(to.width), size_for(to.height));
    if (maybe()) picture.source.crop = any_crop(picture.source.width, picture.source.height);
    const auto expected = tensor_for(to);
    const auto& source = picture.source;
    write_by_media(media_picture(picture),
                   shape_of(source.crop, source.width, source.height, source.flip, to),
                   target_in(expected, to));
    const auto elements = written(
        to, 1, 0, [&](const image_batch& batch) { write_pictures({&source, 1}, batch, nullptr); });
    ASSERT_LE(difference(elements, expected), most_difference) << name(to.type);
  }
}

TEST_P(KernelsBesideMedia, WriteTheSameImages) {
  for (int round = 0; round < 300; ++round) {
    const auto to = any_batch(any_size(150), any_size(90), 3);
    image_source source{.width = maybe() ? to.width : size_for(to.width),
                        .height = maybe() ? to.height : size_for(to.height),
                        .channels = maybe() ? 3 : 1,
                        .flip = maybe()};
    const tensor image(element_type::u8, {source.height, source.width, source.channels});
    const auto bytes = any_bytes(image.spec().bytes());
    std::copy(bytes.begin(), bytes.end(), image.data<std::uint8_t>());
    const auto memory = memory_of(bytes, std::size_t(below(4)));
    source.data = memory->data();
    if (maybe()) source.crop = any_crop(source.width, source.height);
    const auto expected = tensor_for(to);
    resize_by_media(image, shape_of(source.crop, source.width, source.height, source.flip, to),
                    target_in(expected, to));
    const auto elements = written(
        to, 1, 0, [&](const image_batch& batch) { write_images({&source, 1}, batch, nullptr); });
    ASSERT_LE(difference(elements, expected), most_difference) << name(to.type);
  }
}

LADE_KERNEL_SUITE(KernelsBesideMedia);

}  // namespace lade::cuda
