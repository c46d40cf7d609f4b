#include "gpu.hpp"

#include <lade/cuda/decode_jpegs.hpp>
#include <lade/cuda/to_device.hpp>
#include <lade/cuda/to_host.hpp>
#include <lade/lade.hpp>
#include <lade/media/crop.hpp>

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

// Decodes the files that the GPU does not decode, such as PNG files and CMYK.
class decode_on_cpu {
 public:
  lade::tensor operator()(const lade::buffer& file) const {
    return decode_(lade::sample().with_data(file));
  }

 private:
  lade::media::decode_image decode_;
};

static lade::cuda::image_batch kind_of(const lade::media::image_options& image) {
  using enum lade::cuda::pixel_layout;
  return {.type = image.type,
          .layout = image.layout == lade::media::image_layout::chw ? chw : hwc,
          .width = image.width,
          .height = image.height,
          .mean = image.mean,
          .stddev = image.stddev};
}

// Adds a separate random number to a file, for the crop of its image.
static lade::sample add_draw(lade::sample file, lade::random draw) {
  return std::move(file).with_field(lade::field("draw", std::bit_cast<std::int64_t>(draw())));
}

// Chosen as decode_image does, by other random numbers: another part of the same file.
static lade::cuda::image_view view_of_file(const lade::media::image_options& options,
                                           const lade::sample& file, int width, int height) {
  const lade::random draw(std::bit_cast<std::uint64_t>(file.field("draw").integer()));
  const auto crop = lade::media::choose_crop(width, height, options, draw);
  return {.crop = {.left = crop.box.left,
                   .top = crop.box.top,
                   .width = crop.box.width,
                   .height = crop.box.height,
                   .isolated = crop.isolated},
          .flip = crop.flip};
}

static std::string images_by_whom(const lade::cuda::jpeg_decoder& decoder,
                                  const lade::cuda::decode_jpegs& decode) {
  const auto by = decoder.stats();
  auto text =
      fmt::format("{} by JPEG engines, {} by its other units, {} by the CPU", grouped(by.hardware),
                  grouped(by.gpu), grouped(by.unsupported + by.rotated + by.damaged));
  const auto without = decode.stats();
  if (without.skipped > 0)
    text += fmt::format("; {} skipped, the first: {}", grouped(without.skipped),
                        lade::printable(without.reasons.front()));
  return text;
}

lade::pipeline<lade::sample_batch> images_by_gpu(const lade::pipeline<lade::sample>& files,
                                                 const lade::media::image_options& image,
                                                 const options& settings, report& result) {
  const auto bad = settings.skip_bad ? lade::on_error::skip : lade::on_error::fail;
  const lade::cuda::device gpu(settings.device);
  std::optional<lade::cuda::jpeg_decoder> decoder;
  try {
    decoder.emplace(gpu, decode_on_cpu());
  } catch (const lade::error& failure) {
    if (failure.code() != lade::errc::unsupported) throw;
    result.add_row("GPU", [reason = std::string(failure.what())] { return reason; });
    return files |
           lade::batch_into(lade::media::decode_image(image),
                            {.size = settings.batch, .on_error = bad}) |
           lade::cuda::to_device({.device = settings.device}) | lade::cuda::to_host();
  }
  auto view = [image](const lade::sample& file, int width, int height) {
    return view_of_file(image, file, width, height);
  };
  const lade::cuda::decode_jpegs decode(*decoder, kind_of(image), view, {.on_error = bad});
  result.add_row("GPU", [decoder, decode] { return images_by_whom(*decoder, decode); });
  // clang-format off
  return files
      | lade::map(add_draw, {.name = "draw"})
      | lade::batch(settings.batch)
      | lade::map(decode, {.on_error = bad})
      | lade::cuda::to_host();
  // clang-format on
}
