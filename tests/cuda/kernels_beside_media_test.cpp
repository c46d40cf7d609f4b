// Kernels beside the module `media`, which does the same on the CPU.
#include "../../media/picture.hpp"
#include "random_pictures.hpp"

#include <lade/cuda/write_images.hpp>
#include <lade/media/resize.hpp>
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

static media::picture_view view_of(const yuv_picture& of) {
  return {.x = range_of(of.crop.left, of.crop.width, of.crop.isolated, of.width),
          .y = range_of(of.crop.top, of.crop.height, of.crop.isolated, of.height),
          .turn = {.mirror_x = of.flip}};
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
  for (int round = 0; round < 300; ++round) {
    const auto to = any_batch(any_size(150), any_size(90), 3);
    auto picture = any_picture(any_kind(), size_for(to.width), size_for(to.height));
    if (maybe()) picture.source.crop = any_crop(picture.source.width, picture.source.height);
    const auto expected = tensor_for(to);
    media::write_picture(media_picture(picture), view_of(picture.source), target_in(expected, to));
    const auto elements = written(to, 1, 0, [&](const image_batch& batch) {
      write_pictures({&picture.source, 1}, batch, nullptr);
    });
    ASSERT_LE(difference(elements, expected), most_difference) << name(to.type);
  }
}

TEST_P(KernelsBesideMedia, WriteTheSameImages) {
  for (int round = 0; round < 300; ++round) {
    auto to = any_batch(any_size(150), any_size(90), 3);
    to.bgr = false;
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
    source.crop.isolated = false;
    const auto expected = tensor_for(to);
    media::resize(
        image, expected,
        {.from = {source.crop.left, source.crop.top, source.crop.width, source.crop.height},
         .flip = source.flip,
         .layout = static_cast<media::image_layout>(to.layout),
         .mean = to.mean,
         .stddev = to.stddev});
    const auto elements = written(
        to, 1, 0, [&](const image_batch& batch) { write_images({&source, 1}, batch, nullptr); });
    ASSERT_LE(difference(elements, expected), most_difference) << name(to.type);
  }
}

LADE_KERNEL_SUITE(KernelsBesideMedia);

}  // namespace lade::cuda
