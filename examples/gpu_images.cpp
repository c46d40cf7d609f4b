#include "gpu.hpp"

#include <lade/cuda/decode_jpegs.hpp>
#include <lade/cuda/to_device.hpp>
#include <lade/cuda/to_host.hpp>
#include <lade/lade.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

// What the GPU leaves to the CPU: PNG files and CMYK, for instance.
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

// Gives a file random numbers of its own, for the part of its image.
static lade::sample add_draw(lade::sample file, lade::random draw) {
  return std::move(file).with_field(lade::field("draw", std::bit_cast<std::int64_t>(draw())));
}

// As torchvision's RandomResizedCrop; nothing if ten attempts do not fit.
static std::optional<lade::cuda::crop_box> random_part(const lade::media::image_options& how,
                                                       lade::random& draw, int width, int height) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = width * draw.uniform(how.min_area, how.max_area) * height;
    const double aspect =
        std::exp(draw.uniform(std::log(how.min_aspect), std::log(how.max_aspect)));
    const double across = std::round(std::sqrt(area * aspect));
    const double down = std::round(std::sqrt(area / aspect));
    if (across < 1 || across > width || down < 1 || down > height) continue;
    return lade::cuda::crop_box{.left = std::floor(draw.uniform(0, width - across + 1)),
                                .top = std::floor(draw.uniform(0, height - down + 1)),
                                .width = across,
                                .height = down,
                                .isolated = true};
  }
  return std::nullopt;
}

// As torchvision's Resize of the shorter side and CenterCrop.
static lade::cuda::crop_box middle_part(const lade::media::image_options& how, int width,
                                        int height) {
  const auto shorter = static_cast<std::int64_t>(std::nearbyint(how.width * 256.0 / 224));
  const auto begin = [&](int size, int count) {
    const auto resized = shorter * size / std::min(width, height);
    return std::nearbyint(static_cast<double>(resized - count) / 2) / static_cast<double>(resized);
  };
  const auto share = [&](int size, int count) {
    return count / static_cast<double>(shorter * size / std::min(width, height));
  };
  return {.left = width * begin(width, how.width),
          .top = height * begin(height, how.height),
          .width = width * share(width, how.width),
          .height = height * share(height, how.height)};
}

static lade::cuda::image_view view_of_file(const lade::media::image_options& how,
                                           const lade::sample& file, int width, int height) {
  if (how.fit != lade::media::image_fit::random_crop)
    return {.crop = middle_part(how, width, height)};
  lade::random draw(std::bit_cast<std::uint64_t>(file.field("draw").integer()));
  const auto part = random_part(how, draw, width, height);
  return {.crop = part ? *part : middle_part(how, width, height),
          .flip = draw.uniform() < how.flip};
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
                                                 const options& wanted, report& result) {
  const auto bad = wanted.skip_bad ? lade::on_error::skip : lade::on_error::fail;
  const lade::cuda::device gpu(wanted.device);
  std::optional<lade::cuda::jpeg_decoder> decoder;
  try {
    decoder.emplace(gpu, decode_on_cpu());
  } catch (const lade::error& failure) {
    if (failure.code() != lade::errc::unsupported) throw;
    result.add_row("GPU", [why = std::string(failure.what())] { return why; });
    return files |
           lade::batch_into(lade::media::decode_image(image),
                            {.size = wanted.batch, .on_error = bad}) |
           lade::cuda::to_device({.device = wanted.device}) | lade::cuda::to_host();
  }
  auto view = [image](const lade::sample& of, int width, int height) {
    return view_of_file(image, of, width, height);
  };
  const lade::cuda::decode_jpegs decode(*decoder, kind_of(image), view, {.on_error = bad});
  result.add_row("GPU", [decoder, decode] { return images_by_whom(*decoder, decode); });
  // clang-format off
  return files
      | lade::map(add_draw, {.name = "draw"})
      | lade::batch(wanted.batch)
      | lade::map(decode, {.on_error = bad})
      | lade::cuda::to_host();
  // clang-format on
}
